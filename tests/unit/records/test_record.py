"""A record as a value, in both twins."""

import pytest
from hypothesis import given
from tests.support.logs.record_data import Headers, fields, headers, timestamps


@given(timestamps, timestamps, fields, fields, headers)
def test_a_record_holds_what_it_was_given(twin, offset, timestamp, key, value, found: Headers) -> None:  # type: ignore[no-untyped-def]
    record = twin.kernel.Record(offset, timestamp, key, value, found)
    assert (record.offset, record.timestamp, record.key, record.value, record.headers) == (offset, timestamp, key, value, found)
    assert record.astuple() == (offset, timestamp, key, value, found)
    assert record == twin.kernel.Record(*record.astuple())
    assert hash(record) == hash(twin.kernel.Record(*record.astuple()))


def test_records_differ_in_any_field(twin) -> None:  # type: ignore[no-untyped-def]
    fields = (1, 2, b"k", b"v", (("h", b"x"),))
    changes = (9, 9, None, b"", ())
    base = twin.kernel.Record(*fields)
    for position, change in enumerate(changes):
        assert base != twin.kernel.Record(*fields[:position], change, *fields[position + 1 :])
    assert base != fields


def test_repr_can_be_read(twin) -> None:  # type: ignore[no-untyped-def]
    record = twin.kernel.Record(1, 2, None, b"v", (("h", None),))
    assert repr(record) == "Record(offset=1, timestamp=2, key=None, value=b'v', headers=(('h', None),))"


def test_the_compiled_twin_is_immutable(twins) -> None:  # type: ignore[no-untyped-def]
    record = twins[1].kernel.Record(1, 2, b"k", b"v")
    for name in ("offset", "key", "headers"):
        with pytest.raises(AttributeError):
            setattr(record, name, None)
