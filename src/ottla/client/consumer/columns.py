"""Fetched batches as columns and Arrow tables, without an object per record. pyarrow is imported with the first table."""

from __future__ import annotations

from functools import cache
from struct import pack
from typing import TYPE_CHECKING, Any

from ottla.client.consumer.reader import Views
from ottla.errors import CorruptBatchError, CorruptRecords, IllegalStateError
from ottla.ids import TopicPartition
from ottla.records.batch import BatchView
from ottla.records.builder import build_batch
from ottla.records.columns import BinaryColumn, Columns, columns_from_batches
from ottla.records.reader import read_records
from ottla.records.spare_buffers import SPARE_BYTES_MIN, SpareBuffers

if TYPE_CHECKING:
    import pyarrow

OFFSET_MAX = (1 << 63) - 1


def trimmed(views: Views, end: int = OFFSET_MAX) -> list[BatchView]:
    """The batches without records before the views' first offset and from `end` on. Only those at the ends are rebuilt."""
    found: list[BatchView] = []
    for batch in views.batches:
        if batch.base_offset >= end or batch.next_offset <= views.first:
            continue
        if batch.base_offset >= views.first and batch.next_offset <= end:
            found.append(batch)
            continue
        kept = [record for record in read_records(batch) if views.first <= record.offset < end]
        if kept:
            found.append(BatchView(build_batch(kept, leader_epoch=batch.leader_epoch)))
    return found


def to_columns(partition: TopicPartition, views: Views, end: int = OFFSET_MAX, spare: SpareBuffers | None = None) -> Columns:
    """The records of one partition's batches as columns."""
    try:
        return columns_from_batches(trimmed(views, end), spare=spare)
    except CorruptRecords as damage:
        topic, number = partition
        after = views.batches[-1].next_offset
        raise CorruptBatchError(
            f"{partition} is damaged between offsets {views.first} and {after}: {damage}. Seek to {after} to step past it",
            topic=topic,
            partition=number,
            offset=views.first,
            next_offset=after,
        ) from None


def to_all_columns(views: dict[TopicPartition, Views], spare: SpareBuffers | None = None) -> dict[TopicPartition, Columns]:
    """The records of every partition as columns. Large buffers come from `spare`, if given."""
    if spare is not None and sum(batch.size for found in views.values() for batch in found.batches) < SPARE_BYTES_MIN:
        spare.clear()  # answers are small now
    return {each: to_columns(each, found, spare=spare) for each, found in views.items()}


def _pyarrow() -> Any:
    try:
        import pyarrow
    except ImportError:
        raise IllegalStateError("Arrow tables need pyarrow: pip install pyarrow") from None
    return pyarrow


@cache
def arrow_schema() -> pyarrow.Schema:
    """The columns of the tables that consumers make."""
    arrow = _pyarrow()
    header = arrow.struct([arrow.field("key", arrow.string(), nullable=False), arrow.field("value", arrow.binary())])
    return arrow.schema(
        [
            arrow.field("topic", arrow.dictionary(arrow.int32(), arrow.string()), nullable=False),
            arrow.field("partition", arrow.int32(), nullable=False),
            arrow.field("offset", arrow.int64(), nullable=False),
            arrow.field("timestamp", arrow.timestamp("ms", tz="UTC"), nullable=False),
            arrow.field("key", arrow.binary()),
            arrow.field("value", arrow.binary()),
            arrow.field("headers", arrow.list_(arrow.field("element", header, nullable=False)), nullable=False),
        ]
    )


def to_arrow(partition: TopicPartition, columns: Columns) -> pyarrow.RecordBatch:
    """Columns as an Arrow record batch, over the same memory."""
    arrow = _pyarrow()
    schema, rows = arrow_schema(), columns.rows

    def plain(kind: Any, buffer: Any) -> Any:
        return arrow.Array.from_buffers(kind, rows, [None, arrow.py_buffer(buffer)])

    def binary(kind: Any, length: int, column: BinaryColumn) -> Any:
        bitmap = None if column.bitmap is None else arrow.py_buffer(column.bitmap)
        buffers = [bitmap, arrow.py_buffer(column.positions), arrow.py_buffer(column.data)]
        return arrow.Array.from_buffers(kind, length, buffers, column.null_count)

    headers_type = schema.field("headers").type
    count = memoryview(columns.header_lists).cast("i")[rows] if len(columns.header_lists) else 0
    keys = binary(arrow.string(), count, columns.header_keys)
    values = binary(arrow.binary(), count, columns.header_values)
    pairs = arrow.StructArray.from_buffers(headers_type.value_type, count, [None], children=[keys, values])
    lists = columns.header_lists if len(columns.header_lists) else bytes(4 * (rows + 1))
    numbers = partition.partition.to_bytes(4, "little") * rows  # Arrow is little endian, as are the machines that it runs on
    # Not pyarrow.array(): its first call imports pandas, which takes half a second.
    name = partition.topic.encode()
    names = arrow.Array.from_buffers(
        arrow.string(), 1, [None, arrow.py_buffer(pack("=ii", 0, len(name))), arrow.py_buffer(name)]
    )
    return arrow.RecordBatch.from_arrays(
        [
            arrow.DictionaryArray.from_arrays(plain(arrow.int32(), bytes(4 * rows)), names, safe=False),
            plain(arrow.int32(), numbers),
            plain(arrow.int64(), columns.offsets),
            plain(schema.field("timestamp").type, columns.timestamps),
            binary(arrow.binary(), rows, columns.keys),
            binary(arrow.binary(), rows, columns.values),
            arrow.Array.from_buffers(headers_type, rows, [None, arrow.py_buffer(lists)], children=[pairs]),
        ],
        schema=schema,
    )


def to_table(views: dict[TopicPartition, Views], spare: SpareBuffers | None = None) -> pyarrow.Table:
    """Everything in one table, with a chunk for each partition."""
    batches = [to_arrow(each, found) for each, found in to_all_columns(views, spare).items()]
    return _pyarrow().Table.from_batches(batches, schema=arrow_schema())
