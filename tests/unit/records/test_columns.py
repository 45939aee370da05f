"""Columns: as pyarrow reads them, from batches and back, and inconsistent columns."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.logs.record_data import Row, golden_batches, golden_records, plain, records, rows

from ottla.errors import CorruptRecords
from ottla.records import columns as columns_module
from ottla.records.batch import BatchView
from ottla.records.builder import build_batch, build_produce_batch
from ottla.records.columns import BYTES_COLUMNS, BinaryColumn, Columns, batch_from_columns, columns_from_batches
from ottla.records.compression import Codec
from ottla.records.kernels import Record
from ottla.records.reader import read_records


@pytest.fixture(autouse=True)
def chosen(variant: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test here runs with each variant."""
    for name in ("ColumnReader", "ColumnWriter", "walk_records"):
        monkeypatch.setattr(columns_module, name, getattr(variant.columns, name))


@pytest.fixture(scope="session")
def both(variants: Any) -> Callable[[Callable[[], Any]], tuple[Any, Any]]:
    """Run something with each variant."""

    def run(call: Callable[[], Any]) -> tuple[Any, Any]:
        found = []
        for variant in variants:
            with pytest.MonkeyPatch.context() as patch:
                for name in ("ColumnReader", "ColumnWriter", "walk_records"):
                    patch.setattr(columns_module, name, getattr(variant.columns, name))
                found.append(call())
        return found[0], found[1]

    return run


def binary(column: BinaryColumn, rows: int, kind: pa.DataType) -> pa.Array:
    bitmap = None if column.bitmap is None else pa.py_buffer(column.bitmap)
    buffers = [bitmap, pa.py_buffer(column.positions), pa.py_buffer(column.data)]
    array = pa.Array.from_buffers(kind, rows, buffers, column.null_count)
    array.validate(full=kind == pa.binary())
    return array


def as_tuples(columns: Columns) -> list[tuple[Any, ...]]:
    """What pyarrow finds in columns, as records."""
    count = columns.rows
    headers = memoryview(columns.header_lists).cast("i")[count]
    keys = binary(columns.header_keys, headers, pa.binary())
    values = binary(columns.header_values, headers, pa.binary())
    structs = pa.StructArray.from_arrays([keys, values], ["key", "value"])
    lists = pa.Array.from_buffers(pa.list_(structs.type), count, [None, pa.py_buffer(columns.header_lists)], children=[structs])
    offsets, stamps = (
        pa.Array.from_buffers(pa.int64(), count, [None, pa.py_buffer(part)]) for part in (columns.offsets, columns.timestamps)
    )
    found = []
    for offset, stamp, key, value, header_list in zip(
        *(
            part.to_pylist()
            for part in (
                offsets,
                stamps,
                binary(columns.keys, count, pa.binary()),
                binary(columns.values, count, pa.binary()),
                lists,
            )
        ),
        strict=True,
    ):
        headers_found = tuple((one["key"].decode("utf-8", "surrogateescape"), one["value"]) for one in header_list)
        found.append((offset, stamp, key, value, headers_found))
    return found


@pytest.mark.parametrize("name", sorted(golden_batches()))
def test_apache_kafkas_batches_as_columns(name: str) -> None:
    golden = golden_batches()[name]
    columns = columns_from_batches([BatchView(bytes.fromhex(golden["bytes"]))])
    assert as_tuples(columns) == golden_records(golden["batches"][0])


@given(st.lists(st.tuples(records(), st.sampled_from(list(Codec)), st.none() | st.integers(0, 2**40)), max_size=3), st.data())
def test_several_batches_are_one_table(both: Any, made: list[Any], data: st.DataObject) -> None:
    views = [BatchView(build_batch(one, codec=codec, append_time_ms=stamp)) for one, codec, stamp in made]
    first, second = both(lambda: columns_from_batches(views))
    assert first == second
    assert as_tuples(first) == [plain(record) for view in views for record in read_records(view)]


@given(rows(max_size=20), st.data())
def test_columns_become_the_batch_they_came_from(both: Any, made: list[Row], data: st.DataObject) -> None:
    batch = bytes(build_produce_batch(made, producer_id=3, producer_epoch=1, base_sequence=7, transactional=True))
    columns = columns_from_batches([BatchView(batch)])
    options: dict[str, Any] = {"producer_id": 3, "producer_epoch": 1, "base_sequence": 7, "transactional": True}
    assert both(lambda: bytes(batch_from_columns(columns, **options))) == (batch, batch)
    first = data.draw(st.integers(0, len(made) - 1))
    count = data.draw(st.integers(1, len(made) - first))
    some = both(lambda: bytes(batch_from_columns(columns, first, count, codec=Codec.NONE)))
    assert some == (bytes(build_produce_batch(made[first : first + count])),) * 2


def test_no_batches_are_an_empty_table() -> None:
    columns = columns_from_batches([])
    assert (columns.rows, as_tuples(columns)) == (0, [])
    with pytest.raises(ValueError, match="at least one row"):
        batch_from_columns(columns)


def test_columns_without_headers_and_nulls_need_no_buffers_for_them() -> None:
    nothing = BinaryColumn(None, b"", b"", 0)
    ends = memoryview(bytearray(12)).cast("i")
    ends[1], ends[2] = 2, 5
    text = BinaryColumn(None, ends, b"abcde", 0)
    stamps = memoryview(bytearray(16)).cast("q")
    stamps[0], stamps[1] = 7, 8
    columns = Columns(2, b"", stamps, text, text, b"", nothing, nothing)
    assert [plain(record) for record in read_records(BatchView(batch_from_columns(columns)))] == [
        (0, 7, b"ab", b"ab", ()),
        (1, 8, b"cde", b"cde", ()),
    ]


def test_a_slice_of_a_pyarrow_column_can_be_produced() -> None:
    values = pa.array([b"one", None, b"three"])
    stamps = pa.array([1, 2, 3], pa.int64())
    nothing = BinaryColumn(None, b"", b"", 0)
    column = BinaryColumn(*(memoryview(part) for part in values.buffers()), values.null_count)
    columns = Columns(3, b"", memoryview(stamps.buffers()[1]), column, column, b"", nothing, nothing)
    made = read_records(BatchView(batch_from_columns(columns, 1, 2)))
    assert [(one.timestamp, one.key, one.value) for one in made] == [(2, None, None), (3, b"three", b"three")]


def ints(*numbers: int) -> memoryview:
    view = memoryview(bytearray(4 * len(numbers))).cast("i")
    for index, number in enumerate(numbers):
        view[index] = number
    return view


@pytest.mark.parametrize(
    "change",
    [
        {"keys": BinaryColumn(None, ints(0, 9, 9), b"abc", 0)},
        {"keys": BinaryColumn(None, ints(2, 1, 1), b"abc", 0)},
        {"keys": BinaryColumn(None, ints(-5, 1, 1), b"abc", 0)},
        {"keys": BinaryColumn(None, ints(0, 1), b"abc", 0)},
        {"keys": BinaryColumn(None, b"", b"abc", 0)},
        {"values": BinaryColumn(None, ints(0, 1, 2**31 - 1), b"abc", 0)},
        {"header_lists": ints(0, 1)},
        {"header_lists": ints(0, 3, 1)},
        {"header_lists": ints(-1, 1, 1)},
        {"header_lists": ints(0, 1, 5)},
        {"header_keys": BinaryColumn(b"\x00", ints(0, 9), b"abc", 0)},
        {"header_values": BinaryColumn(None, ints(0, 4), b"abc", 0)},
        {"timestamps": bytes(8)},
        {"timestamps": b""},
    ],
)
def test_inconsistent_columns_are_refused(change: dict[str, Any]) -> None:
    one = BinaryColumn(None, ints(0, 1, 3), b"abc", 0)
    good = Columns(2, b"", bytes(16), one, one, ints(0, 1, 1), BinaryColumn(None, ints(0, 1), b"h", 0), one)
    assert BatchView(batch_from_columns(good)).count == 2
    with pytest.raises(ValueError, match=r"row|columns"):
        batch_from_columns(good._replace(**change))


@pytest.mark.parametrize(("first", "count"), [(-1, 1), (0, 3), (2, 1), (1, 2), (0, 0)])
def test_rows_out_of_range_are_refused(first: int, count: int) -> None:
    columns = columns_from_batches([BatchView(build_batch([Record(0, 1, b"k", b"v"), Record(1, 1, b"k", b"v")]))])
    with pytest.raises(ValueError, match="row"):
        batch_from_columns(columns, first, count)


def test_damaged_batch_gives_no_columns() -> None:
    data = build_batch([Record(0, 1, b"k", b"v")])
    data[61] = 0x7F
    with pytest.raises(CorruptRecords):
        columns_from_batches([BatchView(data)])


def test_decompressed_size_of_all_batches_is_limited() -> None:
    views = [BatchView(build_batch([Record(0, 1, None, bytes(1_000_000))], codec=Codec.ZSTD))] * 3
    assert columns_from_batches(views, decompressed_bytes_max=3_100_000).rows == 3
    with pytest.raises(CorruptRecords, match="allowed here"):
        columns_from_batches(views, decompressed_bytes_max=2_900_000)


def test_a_writer_keeps_within_its_buffers(variant: Any) -> None:
    """Even if the records change after they were measured."""
    view = BatchView(build_batch([Record(0, 1, b"key", b"value", (("h", b"x"),))]))
    sizes = [8, 8, 1, 8, 3, 1, 8, 5, 8, 8, 1, 1, 8, 1]
    for short in (0, 4, 7, 9, 10, 13):
        buffers = [bytearray(size) for size in sizes]
        buffers[short] = bytearray(len(buffers[short]) - 4 if short == 9 else 0)
        writer = variant.columns.ColumnWriter(buffers)
        with pytest.raises(CorruptRecords):
            writer.add(view.payload, 0, len(view.payload), 1, 0, 1, False)
    writer = variant.columns.ColumnWriter([bytearray(size) for size in sizes])
    writer.add(view.payload, 0, len(view.payload), 1, 0, 1, False)
    with pytest.raises(CorruptRecords):
        writer.add(view.payload, 0, len(view.payload), 1, 0, 1, False)


@given(records(), st.sets(st.sampled_from(BYTES_COLUMNS)))
def test_columns_that_are_not_wanted_stay_null(both: Any, made: list[Any], wanted: set[str]) -> None:
    views = [BatchView(build_batch(made))] * 2
    first, second = both(lambda: columns_from_batches(views, wanted=wanted))
    assert first == second
    expected = [
        (
            offset,
            stamp,
            key if "key" in wanted else None,
            value if "value" in wanted else None,
            pairs if "headers" in wanted else (),
        )
        for offset, stamp, key, value, pairs in (plain(record) for view in views for record in read_records(view))
    ]
    assert as_tuples(first) == expected
