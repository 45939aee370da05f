"""Many records at once: both variants put the same bytes into the same batches as appends one by one."""

from contextlib import nullcontext
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.logs.record_data import fields

from ottla.records.kernels import load_variant


class Variant(NamedTuple):
    accumulate: Any
    many: Any


def load(pure: bool) -> Variant | None:
    modules = [load_variant(name, pure=pure) for name in ("kernel_accumulate", "kernel_many")]
    return None if None in modules else Variant(*modules)


VARIANTS = [variant for variant in (load(pure=True), load(pure=False)) if variant is not None]
each_variant = pytest.mark.parametrize("variant", VARIANTS, ids=["pure", "compiled"][: len(VARIANTS)])
EMPTY = memoryview(b"")


def topic_of(
    variant: Variant, partitions: int = 3, size_max: int = 1 << 20, sticky: int = 1, sticky_size: int = 1 << 20
) -> Any:
    memory = variant.accumulate.BufferMemory(1 << 30)
    topic = variant.accumulate.TopicBatches(partitions, nullcontext(), False, sticky_size)
    for partition in range(partitions):
        topic.open[partition] = variant.accumulate.OpenBatch(memory, 1 << 10, size_max)
    topic.sticky, topic.sticky_left = sticky, sticky_size
    return topic


def contents(topic: Any) -> list[Any]:
    return [
        (batch.count, batch.base_timestamp, batch.max_timestamp, bytes(batch.buffer[61 : batch.end])) for batch in topic.open
    ]


def located(places: Any) -> list[tuple[Any, int]]:
    found = []
    for number in range(places.run_count()):
        start, batch, index, count = places.run(number)
        assert start == len(found)
        found += [(batch, index + each) for each in range(count)]
    assert len(found) == places.count
    return found


PACKED = [b"\x00", b"\x02\x02k\x02v", b"\x02\x02k\x01"]


@given(st.lists(st.tuples(fields, fields, st.sampled_from(PACKED)), max_size=60), st.sampled_from([-1, 0, 2]), st.booleans())
def test_a_list_gives_the_same_batches_as_single_appends(
    rows: list[tuple[Any, Any, bytes]], partition: int, has_headers: bool
) -> None:
    for variant in VARIANTS:
        one, many = (topic_of(variant, sticky_size=120) for _ in range(2))
        for topic in (one, many):
            topic.upcoming.extend([0, 2, 1] * 20)
        single = [one.append(partition, 9, key, value, packed if has_headers else b"\x00", None) for key, value, packed in rows]
        places = variant.many.Places()
        keys, values, packed = [[row[field] for row in rows] for field in range(3)]
        headers = packed if has_headers else None
        assert variant.many.append_list(many, partition, 9, values, keys, headers, 0, places) == len(rows)
        assert contents(one) == contents(many)
        assert (one.sticky, one.sticky_left, one.upcoming) == (many.sticky, many.sticky_left, many.upcoming)
        wanted = [(one.open.index(each.batch), each.index) for each in single]
        assert [(many.open.index(batch), index) for batch, index in located(places)] == wanted
        for record, (batch, index) in enumerate(located(places)):
            start, found, first, _ = places.run(places.run_of(record))
            assert (found, first + record - start) == (batch, index)


@each_variant
def test_a_list_stops_where_the_caller_must_act(variant: Variant) -> None:
    topic = topic_of(variant, 1, size_max=61 + 8 * 4)
    topic.append(0, 1, None, b"a", b"\x00", None)
    places = variant.many.Places()
    append = variant.many.append_list
    assert append(topic, 0, 1, [b"b", "c", b"d", b"e", b"f"], None, None, 0, places) == 1
    assert append(topic, 0, 1, [b"b", "c", b"d", b"e", b"f"], None, None, 2, places) == 4
    assert [index for _, index in located(places)] == [1, 2, 3]
    assert append(topic, 0, 1, [b"b"], ["no bytes"], None, 0, places) == 0
    assert append(topic, 0, 1, [b"b", b"c"], [], None, 0, places) == 0  # a list that another thread has shortened
    assert append(topic, 1, 1, [b"b"], None, None, 0, places) == 0
    topic.open[0] = None
    assert append(topic, 0, 1, [b"b"], None, None, 0, places) == 0
    topic.sticky = -1
    assert append(topic, -1, 1, [b"b"], None, None, 0, places) == 0


@each_variant
def test_calls_of_two_threads_may_share_a_batch(variant: Variant) -> None:
    topic = topic_of(variant, 1)
    one, other = variant.many.Places(), variant.many.Places()
    for places in (one, other, one):
        variant.many.append_list(topic, 0, 1, [b"x", b"y"], None, None, 0, places)
    assert [index for _, index in located(one)] == [0, 1, 4, 5]
    assert [index for _, index in located(other)] == [2, 3]
    with pytest.raises(IndexError):
        one.run(2)
    with pytest.raises(IndexError):
        one.run_of(4)


def bitmap_of(items: list[Any], first: int) -> memoryview:
    bits = bytearray((first + len(items) + 7) // 8)
    for row, item in enumerate(items, first):
        if item is not None:
            bits[row >> 3] |= 1 << (row & 7)
    return memoryview(bytes(bits)) if None in items else EMPTY


def bytes_column(variant: Variant, items: list[bytes | None], first: int, is_wide: bool) -> Any:
    """A column whose slice begins at row `first`."""
    data, ends = bytearray(b"before"), [6] * (first + 1)
    for item in items:
        data += item or b""
        ends.append(len(data))
    size = 8 if is_wide else 4
    packed = b"".join(end.to_bytes(size, "little") for end in ends)
    return variant.many.BytesColumn(bitmap_of(items, first), memoryview(packed), memoryview(data), first, is_wide)


def numbers_column(variant: Variant, items: list[int | None], first: int) -> Any:
    packed = bytes(8 * first) + b"".join((item or 0).to_bytes(8, "little", signed=True) for item in items)
    return variant.many.NumbersColumn(bitmap_of(items, first), memoryview(packed), first)


def headers_column(variant: Variant, lists: list[list[tuple[bytes, bytes | None]]], first: int, is_wide: bool) -> Any:
    ends, entries = [0] * (first + 1), [each for one in lists for each in one]
    for one in lists:
        ends.append(ends[-1] + len(one))
    packed = memoryview(b"".join(end.to_bytes(4, "little") for end in ends))
    return variant.many.HeadersColumn(
        variant.many.BytesColumn(EMPTY, packed, EMPTY, first, False, len(entries)),
        bytes_column(variant, [key for key, _ in entries], 0, is_wide),
        bytes_column(variant, [value for _, value in entries], 2, is_wide),
    )


header_lists = st.lists(st.tuples(st.binary(max_size=20), fields), max_size=4)
row_items = st.tuples(fields, fields, header_lists, st.none() | st.integers(0, 2), st.none() | st.integers(0, 2**42))


@given(st.lists(row_items, max_size=30), st.integers(0, 9), st.booleans(), st.booleans())
def test_columns_give_the_same_batches_as_single_appends(
    items: list[Any], first: int, is_wide: bool, has_headers: bool
) -> None:
    for variant in VARIANTS:
        one, many = topic_of(variant), topic_of(variant)
        wanted = []
        for key, value, headers, partition, stamp in items:
            packed = variant.accumulate.pack_headers([(name.decode("latin-1"), each) for name, each in headers])
            if any(name != name.decode("latin-1").encode() for name, _ in headers) or not has_headers:
                packed = b"\x00"
                headers.clear()
            record = (-1 if partition is None else partition, 7 if stamp is None else stamp, key, value, packed)
            wanted.append(record)
            assert one.append(*record, None) is not None
        columns = variant.many.RecordColumns(
            len(items),
            bytes_column(variant, [item[0] for item in items], first, is_wide),
            bytes_column(variant, [item[1] for item in items], first, not is_wide),
            headers_column(variant, [item[2] for item in items], first, is_wide) if has_headers else None,
            numbers_column(variant, [item[3] for item in items], first),
            numbers_column(variant, [item[4] for item in items], first),
        )
        places = variant.many.Places()
        assert columns.append(many, -1, 7, 0, places) == len(items)
        assert contents(one) == contents(many)
        assert [columns.record(row, -1, 7) for row in range(len(items))] == wanted
        located(places)


def columns_of(variant: Variant, **changes: Any) -> Any:
    rows = ("rows", "keys", "values", "headers", "partitions", "timestamps")
    nulls = variant.many.BytesColumn(EMPTY, EMPTY, EMPTY, 0, False)
    none = variant.many.NumbersColumn(EMPTY, EMPTY, 0)
    found = {"rows": 2, "keys": nulls, "values": nulls, "headers": None, "partitions": none, "timestamps": none, **changes}
    return variant.many.RecordColumns(*(found[name] for name in rows))


@each_variant
@pytest.mark.parametrize(
    ("ends", "bad"),
    [((0, 1, 9), 1), ((0, 1, -1), 1), ((0, 2, 1), 1), ((-1, 1, 2), 0), ((0, 1), 1)],
    ids=["beyond", "negative", "back", "before", "missing"],
)
def test_damaged_positions_stop_at_their_row(variant: Variant, ends: tuple[int, ...], bad: int) -> None:
    packed = memoryview(b"".join(end.to_bytes(4, "little", signed=True) for end in ends))
    column = variant.many.BytesColumn(EMPTY, packed, memoryview(b"abc"), 0, False)
    columns = columns_of(variant, values=column)
    assert columns.append(topic_of(variant), 0, 1, 0, variant.many.Places()) == bad
    with pytest.raises(ValueError, match="positions of its value"):
        columns.record(bad, 0, 1)


@each_variant
def test_other_wrong_rows_are_named(variant: Variant) -> None:
    places, topic = variant.many.Places(), topic_of(variant)
    for name in ("partitions", "timestamps"):
        columns = columns_of(variant, **{name: numbers_column(variant, [1, -5], 0)})
        assert columns.append(topic, 0, 1, 0, places) == 1
        with pytest.raises(ValueError, match=f"its {name[:-1]} is negative"):
            columns.record(1, 0, 1)
    short = columns_of(variant, timestamps=numbers_column(variant, [1], 0))
    assert short.append(topic, 0, 1, 0, places) == 1
    headers = headers_column(variant, [[], [(b"a", b"b")]], 0, False)
    keyless = variant.many.HeadersColumn(
        variant.many.BytesColumn(EMPTY, memoryview(b"\0\0\0\0\0\0\0\0\1\0\0\0"), EMPTY, 0, False, 1),
        bytes_column(variant, [None], 0, False),
        bytes_column(variant, [b"v"], 0, False),
    )
    assert columns_of(variant, headers=headers).append(topic, 0, 1, 0, places) == 2
    columns = columns_of(variant, headers=keyless)
    assert columns.append(topic, 0, 1, 0, places) == 1
    with pytest.raises(ValueError, match="a header has no key"):
        columns.record(1, 0, 1)
