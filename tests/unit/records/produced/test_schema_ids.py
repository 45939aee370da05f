"""Marks of schemas in batches: both wire formats, nulls, short values, headers; the same as the clients' framing reads."""

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.errors import CorruptRecords
from ottla.records.batch import BatchView
from ottla.records.builder import build_produce_batch
from ottla.records.compression import Codec
from ottla.records.produced import schema_ids
from ottla.records.produced.schema_ids import UNMARKED, describe_mark, guid_of, id_of, read_marks
from ottla.schemas.framing import NotFramed, unframe

GUID = uuid.UUID(int=7)
BY_ID, BY_GUID = b"\0\0\0\0\x07", b"\x01" + GUID.bytes

Rec = tuple[bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]


def view_of(*records: Rec, codec: Codec = Codec.NONE) -> BatchView:
    return BatchView(build_produce_batch([(1000, *record) for record in records], codec=codec))


@pytest.mark.parametrize("codec", list(Codec))
def test_marks_of_keys_and_values(codec: Codec) -> None:
    view = view_of(
        (BY_ID + b"key", BY_GUID + b"value", ()),
        (None, None, ()),
        (b"", b"\0\0\0", ()),
        (b"text", BY_GUID[:-1], ()),
        (BY_ID, BY_GUID, ()),
        codec=codec,
    )
    assert read_marks(view, (True, False), 1 << 20) == {
        True: [BY_ID, None, UNMARKED, UNMARKED, BY_ID],
        False: [BY_GUID, None, UNMARKED, UNMARKED, BY_GUID],
    }


def test_a_short_value_does_not_borrow_the_next_one() -> None:
    view = view_of((None, b"\0\0", ()), (None, b"\0\0\0\0\x07x", ()))
    assert read_marks(view, [False], 1 << 20) == {False: [UNMARKED, BY_ID]}


def test_a_header_comes_before_the_bytes() -> None:
    other = ("trace", b"1")
    view = view_of(
        (b"k", b"bare", (other, ("__value_schema_id", BY_GUID))),
        (b"k", BY_ID + b"x", (other,)),
        (b"k", None, (("__value_schema_id", BY_GUID),)),
        (b"k", BY_ID + b"x", (("__value_schema_id", None), ("__key_schema_id", BY_ID))),
        (b"k", b"bare", (("__value_schema_id", b"no mark"),)),
    )
    assert read_marks(view, (True, False), 1 << 20) == {
        True: [UNMARKED, UNMARKED, UNMARKED, BY_ID, UNMARKED],
        False: [BY_GUID, BY_ID, None, BY_ID, UNMARKED],
    }


def test_a_batch_of_many_schemas_is_refused_and_equal_marks_are_one_object(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema_ids, "ROWS_PER_PIECE", 7)
    monkeypatch.setattr(schema_ids, "MARKS_MAX", 20)
    values = [b"\0" + (index % 20).to_bytes(4, "big") + b"x" for index in range(100)]
    (marks,) = read_marks(view_of(*((None, value, ()) for value in values)), [False], 1 << 20).values()
    assert marks == [value[:5] for value in values]
    assert len({id(mark) for mark in marks}) == 20
    with_null = view_of((None, None, ()), *((None, value, ()) for value in values))
    assert read_marks(with_null, [False], 1 << 20)[False] == [None, *marks]
    with pytest.raises(CorruptRecords, match="name more than 20 schemas"):
        read_marks(view_of(*((None, value, ()) for value in [*values, BY_GUID])), [False], 1 << 20)


def test_marks_are_told_in_words() -> None:
    assert (describe_mark(BY_ID), id_of(BY_ID)) == ("schema id 7", 7)
    assert (describe_mark(BY_GUID), id_of(BY_GUID), guid_of(BY_GUID)) == (f"schema GUID {GUID}", -1, str(GUID))


FRAMES = st.one_of(
    st.none(),
    st.binary(max_size=20),
    st.binary(max_size=20).map(lambda rest: b"\0" + rest),
    st.binary(max_size=20).map(lambda rest: b"\x01" + rest),
)
HEADERS = st.lists(st.tuples(st.sampled_from(["a", "__value_schema_id", "__key_schema_id"]), FRAMES), max_size=3).map(tuple)


@given(st.lists(st.tuples(FRAMES, FRAMES, HEADERS), min_size=1, max_size=5))
def test_they_are_what_clients_read(records: list[Rec]) -> None:
    marks = read_marks(view_of(*records), (True, False), 1 << 20)
    for is_key in (True, False):
        for index, record in enumerate(records):
            data = record[0 if is_key else 1]
            mark = marks[is_key][index]
            if data is None:
                assert mark is None
                continue
            try:
                framed = unframe(data, record[2], is_key=is_key)
            except NotFramed:
                assert mark == UNMARKED
            else:
                assert mark
                assert (id_of(mark), "" if id_of(mark) != -1 or mark[0] == 0 else guid_of(mark)) == (framed.id, framed.guid)
