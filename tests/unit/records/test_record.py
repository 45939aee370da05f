"""A record as a value, in both variants."""

import pytest
from hypothesis import given
from tests.support.logs.record_data import Headers, fields, headers, timestamps


@given(timestamps, timestamps, fields, fields, headers)
def test_a_record_holds_what_it_was_given(variant, offset, timestamp, key, value, found: Headers) -> None:  # type: ignore[no-untyped-def]
    record = variant.kernel.Record(offset, timestamp, key, value, found)
    assert (record.offset, record.timestamp, record.key, record.value, record.headers) == (offset, timestamp, key, value, found)
    assert record.astuple() == (offset, timestamp, key, value, found)
    assert record == variant.kernel.Record(*record.astuple())
    assert hash(record) == hash(variant.kernel.Record(*record.astuple()))


def test_records_differ_in_any_field(variant) -> None:  # type: ignore[no-untyped-def]
    fields = (1, 2, b"k", b"v", (("h", b"x"),))
    changes = (9, 9, None, b"", ())
    base = variant.kernel.Record(*fields)
    for position, change in enumerate(changes):
        assert base != variant.kernel.Record(*fields[:position], change, *fields[position + 1 :])
    assert base != fields


def test_repr_can_be_read(variant) -> None:  # type: ignore[no-untyped-def]
    record = variant.kernel.Record(1, 2, None, b"v", (("h", None),))
    assert repr(record) == "Record(offset=1, timestamp=2, key=None, value=b'v', headers=(('h', None),))"


def test_the_compiled_variant_is_immutable(variants) -> None:  # type: ignore[no-untyped-def]
    record = variants[1].kernel.Record(1, 2, b"k", b"v")
    for name in ("offset", "key", "headers"):
        with pytest.raises(AttributeError):
            setattr(record, name, None)
