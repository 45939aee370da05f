"""Columns of batches, as pyarrow reads them."""

import sys
import threading
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.logs.record_data import golden_batches, golden_records, plain, records

from ottla.errors import CorruptRecords
from ottla.records import columns as columns_module
from ottla.records.batch import BatchView
from ottla.records.builder import build_batch
from ottla.records.columns import BYTES_COLUMNS, BinaryColumn, Columns, columns_from_batches
from ottla.records.compression import Codec
from ottla.records.kernels import PURE_ASKED, Record
from ottla.records.reader import read_records


@pytest.fixture(autouse=True)
def chosen(variant: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test here runs with each variant."""
    for name in ("ColumnWriter", "walk_records"):
        monkeypatch.setattr(columns_module, name, getattr(variant.columns, name))


@pytest.fixture(scope="session")
def both(variants: Any) -> Callable[[Callable[[], Any]], tuple[Any, Any]]:
    """Run something with each variant."""

    def run(call: Callable[[], Any]) -> tuple[Any, Any]:
        found = []
        for variant in variants:
            with pytest.MonkeyPatch.context() as patch:
                for name in ("ColumnWriter", "walk_records"):
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


def test_no_batches_are_an_empty_table() -> None:
    columns = columns_from_batches([])
    assert (columns.rows, as_tuples(columns)) == (0, [])


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


@pytest.mark.skipif(PURE_ASKED, reason="the pure variant releases no lock")
@pytest.mark.parametrize("part", ["walk", "copy"])
def test_other_threads_run_while_large_batches_are_decoded(variants: Any, part: str) -> None:
    """A consumer's thread decodes while the event loop of its client receives the next answer."""
    # Work of a millisecond: the other thread needs some of it to wake up.
    count, value = (100_000, b"v") if part == "walk" else (1, bytes(10_000_000))
    payload = BatchView(build_batch([Record(index, 1, b"key", value) for index in range(count)])).payload
    columns = variants[1].columns
    sizes = [8, 8, 1, 8, 3, 1, 8, len(value), 8, 4, 0, 0, 4, 0]
    waiting, has_run = threading.Event(), threading.Event()

    def run() -> None:
        waiting.wait()
        has_run.set()

    thread = threading.Thread(target=run)
    thread.start()
    interval_s = sys.getswitchinterval()
    sys.setswitchinterval(60)  # the other thread gets the lock only if the kernel releases it
    try:
        waiting.set()
        for _ in range(1000):
            if part == "walk":
                columns.walk_records(payload, 0, len(payload), count, 1)
            else:
                columns.ColumnWriter(columns.new_buffers(sizes)).add(payload, 0, len(payload), 1, 0, 1, False)
            if has_run.is_set():
                break
        assert has_run.is_set()
    finally:
        sys.setswitchinterval(interval_s)
        thread.join()


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
