"""Fetched batches as Arrow record batches with the columns that Spark asks for, without an object per record."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import pyarrow as pa

from ottla import TopicPartition
from ottla.client.consumer.reader import Views
from ottla.errors import CorruptRecords
from ottla.records.batch import BatchView
from ottla.records.columns import BinaryColumn, Columns, columns_from_batches
from ottla.spark.errors import SourceError, SparkOptionError
from ottla.spark.schema import SOURCE_COLUMNS

HEADER = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
TYPES: dict[str, Any] = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestampType": pa.int32(),
    "headers": pa.list_(pa.field("element", HEADER)),
}

ROWS_MAX = 50_000
BYTES_MAX = 2 << 20
"""The size of a record batch: enough to make its fixed costs small, little enough that decoding the next
overlaps with Spark taking it."""
TIME_MS_MAX = (1 << 63) // 1000
"""Spark's timestamps are microseconds in 64 bits."""
CONSTANTS_MAX = 64
_constants: dict[tuple[Any, Any], Any] = {}


def checked_names(schema: Any, decoded: Collection[str] = ()) -> list[str]:
    """The names of the columns to read, in the order of the schema. A column of another name or type is refused.

    Those that are `decoded` have types of their own.
    """
    for field in schema:
        if field.name in decoded:
            continue
        kind = SOURCE_COLUMNS.get(field.name)
        if kind is None:
            raise SparkOptionError(f"the source has no column {field.name}: there are {', '.join(SOURCE_COLUMNS)}")
        if field.dataType.simpleString() != kind.simpleString():
            wanted, given = kind.simpleString(), field.dataType.simpleString()
            raise SparkOptionError(f"the column {field.name} is {wanted}, not {given}: cast it after reading")
    return [field.name for field in schema]


def record_batches(partition: TopicPartition, views: Views, end: int, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The records from offset `views.first` up to, but without, `end`, in record batches of a size that suits Spark."""
    schema = pa.schema([pa.field(name, TYPES[name]) for name in names])
    for run in _runs(views.batches):
        for columns in _decoded(partition, run, names):
            low, high = _rows_within(run, columns, views.first, end)
            if low >= high:
                continue
            made = [_MAKERS[name](partition, columns, run[0].is_append_time) for name in names]
            whole = pa.RecordBatch.from_arrays(made, schema=schema)
            yield whole if high - low == columns.rows else whole.slice(low, high - low)


def _runs(batches: Sequence[BatchView]) -> Iterator[list[BatchView]]:
    """Runs of batches with the same timestamp type, of no more than about `ROWS_MAX` records and `BYTES_MAX` bytes."""
    run: list[BatchView] = []
    rows = size = 0
    for batch in batches:
        is_full = rows + batch.count > ROWS_MAX or size + batch.size > BYTES_MAX
        if run and (is_full or batch.is_append_time != run[0].is_append_time):
            yield run
            run, rows, size = [], 0, 0
        run.append(batch)
        rows += batch.count
        size += batch.size
    if run:
        yield run


def _decoded(partition: TopicPartition, run: list[BatchView], names: Sequence[str]) -> Iterator[Columns]:
    """The columns of a run; batch by batch, if together they are too large when decompressed."""
    try:
        yield columns_from_batches(run, wanted=names)
        return
    except CorruptRecords as damage:
        if len(run) == 1:
            raise SourceError(
                f"{partition} is damaged between offsets {run[0].base_offset} and {run[0].last_offset}: {damage}; skip them "
                f"with startingOffsets {run[0].next_offset}, or restore the partition from a replica"
            ) from None
    for batch in run:
        yield from _decoded(partition, [batch], names)


def _rows_within(run: list[BatchView], columns: Columns, first: int, end: int) -> tuple[int, int]:
    """The rows whose offsets lie in the range. Only batches at its ends reach beyond it."""
    if run[0].base_offset >= first and run[-1].next_offset <= end:
        return 0, columns.rows
    offsets = memoryview(columns.offsets).cast("q")
    return bisect_left(offsets, first), bisect_left(offsets, end)


def _repeated(value: Any, kind: Any, rows: int) -> Any:
    """A column of one value. The longest one made is kept and cut: its value is the same for a whole range."""
    key = (value, kind)
    found = _constants.get(key)
    if found is None or len(found) < rows:
        if len(_constants) >= CONSTANTS_MAX:
            _constants.clear()
        found = _constants[key] = pa.repeat(pa.scalar(value, kind), rows)
    return found.slice(0, rows)


def _numbers(kind: Any, rows: int, buffer: Any) -> Any:
    return pa.Array.from_buffers(kind, rows, [None, pa.py_buffer(buffer)])


def _binary(kind: Any, rows: int, column: BinaryColumn) -> Any:
    bitmap = None if column.bitmap is None else pa.py_buffer(column.bitmap)
    return pa.Array.from_buffers(
        kind, rows, [bitmap, pa.py_buffer(column.positions), pa.py_buffer(column.data)], column.null_count
    )


def _timestamps(partition: TopicPartition, columns: Columns) -> Any:
    found = _numbers(pa.timestamp("ms", tz="UTC"), columns.rows, columns.timestamps)
    try:
        return found.cast(TYPES["timestamp"])
    except pa.ArrowInvalid:
        times, offsets = (memoryview(each).cast("B").cast("q") for each in (columns.timestamps, columns.offsets))
        row = next(row for row, time_ms in enumerate(times) if abs(time_ms) > TIME_MS_MAX)
        raise SourceError(
            f"the record of {partition} at offset {offsets[row]} has the timestamp {times[row]} ms, which Spark's timestamps "
            'cannot hold; read without that column: .schema("key binary, value binary, offset long")'
        ) from None


def _headers(columns: Columns) -> Any:
    """Null where a record has no headers, as in Spark's own source."""
    rows = columns.rows
    positions = columns.header_lists if len(columns.header_lists) else bytes(4 * (rows + 1))
    ends = memoryview(positions).cast("B").cast("i")
    count = ends[rows]
    if not count:
        return pa.nulls(rows, TYPES["headers"])
    keys = _binary(pa.string(), count, columns.header_keys)
    values = _binary(pa.binary(), count, columns.header_values)
    pairs = pa.StructArray.from_arrays([keys, values], fields=list(HEADER))
    lists = pa.Array.from_buffers(TYPES["headers"], rows, [None, pa.py_buffer(positions)], children=[pairs])
    import pyarrow.compute as pc  # late: takes 0.1 s, and only headers need it

    return pc.if_else(pc.greater(pc.list_value_length(lists), 0), lists, pa.scalar(None, TYPES["headers"]))


_MAKERS: dict[str, Callable[[TopicPartition, Columns, bool], Any]] = {
    "key": lambda partition, columns, is_append_time: _binary(pa.binary(), columns.rows, columns.keys),
    "value": lambda partition, columns, is_append_time: _binary(pa.binary(), columns.rows, columns.values),
    "topic": lambda partition, columns, is_append_time: _repeated(partition.topic, pa.string(), columns.rows),
    "partition": lambda partition, columns, is_append_time: _repeated(partition.partition, pa.int32(), columns.rows),
    "offset": lambda partition, columns, is_append_time: _numbers(pa.int64(), columns.rows, columns.offsets),
    "timestamp": lambda partition, columns, is_append_time: _timestamps(partition, columns),
    "timestampType": lambda partition, columns, is_append_time: _repeated(int(is_append_time), pa.int32(), columns.rows),
    "headers": lambda partition, columns, is_append_time: _headers(columns),
}
