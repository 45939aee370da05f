"""Batches to columns in Arrow's layout, without an object per record.

A `Columns` holds plain buffers in native byte order, which pyarrow, Spark's Python workers and others take over without a copy:

    offsets, timestamps   int64
    keys, values          nullable binary: bitmap (None where nothing is null), int32 positions, bytes
    headers               list of struct(key: utf8, value: nullable binary): int32 list positions and the two children

Positions are 32-bit, so one `Columns` holds less than 2 GiB of keys, of values and of headers each; pass fewer batches at a
time if there are more. Header keys are the bytes as they were written, which Kafka does not promise to be valid UTF-8.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from ottla.errors import CorruptRecords
from ottla.records.batch import BatchView
from ottla.records.compression import decompress
from ottla.records.kernels import ColumnWriter, new_buffers, walk_records
from ottla.records.reader import DECOMPRESSED_BYTES_MAX
from ottla.records.spare_buffers import SPARE_BYTES_MIN, SpareBuffers

Buffer = bytes | bytearray | memoryview
POSITION_MAX = 0x7FFFFFFF
BYTES_COLUMNS = ("key", "value", "headers")
"""The columns that cost a copy of the records' bytes."""
_WRITTEN_WHOLE = (0, 1, 4, 7, 10, 13)
"""The buffers of `ColumnWriter` that need not be zeroed: numbers and bytes."""


class BinaryColumn(NamedTuple):
    """A column of bytes."""

    bitmap: Buffer | None
    """Bit i (of byte i // 8, lowest first) says that row i is not null; None where no row is."""
    positions: Buffer
    """int32, one more than there are rows: row i is `data[positions[i] : positions[i + 1]]`."""
    data: Buffer
    null_count: int


class Columns(NamedTuple):
    """Records as columns."""

    rows: int
    offsets: Buffer
    """int64."""
    timestamps: Buffer
    keys: BinaryColumn
    values: BinaryColumn
    header_lists: Buffer
    """int32, one more than there are rows: which headers are row i's."""
    header_keys: BinaryColumn
    header_values: BinaryColumn


def columns_from_batches(
    views: Sequence[BatchView],
    *,
    decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX,
    wanted: Collection[str] = BYTES_COLUMNS,
    spare: SpareBuffers | None = None,
) -> Columns:
    """The records of all batches, in order, control records included: leave out batches whose records are not to be seen.

    Sizes are checked here, CRCs are not. `decompressed_bytes_max` bounds what all batches together may expand to. Those of
    `BYTES_COLUMNS` that are not in `wanted` are not copied: they stay null. Large buffers come from `spare`, if given.
    """
    parts: list[tuple[BatchView, memoryview]] = []
    totals = [0] * 8
    left = decompressed_bytes_max
    for view in views:
        view.check_size()
        data = view.payload
        if view.is_compressed and view.count:
            plain = decompress(view.codec, data, left)
            left -= len(plain)
            data = memoryview(plain)
        found = walk_records(data, 0, len(data), view.count, view.base_timestamp)
        totals = [total + part for total, part in zip(totals, (view.count, *found[3:]), strict=True)]
        parts.append((view, data))
    has_keys, has_values, has_headers = (name in wanted for name in BYTES_COLUMNS)
    if not has_keys:
        totals[1], totals[3] = totals[0], 0
    if not has_values:
        totals[2], totals[4] = totals[0], 0
    if not has_headers:
        totals[5:] = 0, 0, 0
    rows, keyless, valueless, key_bytes, value_bytes, headers, header_key_bytes, header_value_bytes = totals
    if max(totals) > POSITION_MAX:
        raise CorruptRecords(f"{len(views)} batches hold more than the 2 GiB that 32-bit positions reach: pass fewer at a time")
    bits, ends, header_bits, header_ends = (rows + 7) // 8, rows * 4 + 4, (headers + 7) // 8, headers * 4 + 4
    sizes = [rows * 8, rows * 8, bits, ends, key_bytes, bits, ends, value_bytes]
    sizes += [ends, header_ends, header_key_bytes, header_bits, header_ends, header_value_bytes]
    buffers = _buffers(sizes, spare)
    writer = ColumnWriter(buffers, has_keys, has_values, has_headers)
    for view, data in parts:
        base = view.max_timestamp if view.is_append_time else view.base_timestamp
        writer.add(data, 0, len(data), view.count, view.base_offset, base, view.is_append_time)
    null_headers = headers - sum(byte.bit_count() for byte in buffers[11])
    return Columns(
        rows,
        buffers[0],
        buffers[1],
        BinaryColumn(buffers[2] if keyless else None, buffers[3], buffers[4], keyless),
        BinaryColumn(buffers[5] if valueless else None, buffers[6], buffers[7], valueless),
        buffers[8],
        BinaryColumn(None, buffers[9], buffers[10], 0),
        BinaryColumn(buffers[11] if null_headers else None, buffers[12], buffers[13], null_headers),
    )


def _buffers(sizes: list[int], spare: SpareBuffers | None) -> list[bytearray | memoryview]:
    if spare is None:
        return [*new_buffers(sizes)]
    large = [index for index in _WRITTEN_WHOLE if sizes[index] >= SPARE_BYTES_MIN]
    buffers: list[bytearray | memoryview] = [*new_buffers([0 if index in large else size for index, size in enumerate(sizes)])]
    for index in large:
        buffers[index] = spare.take(sizes[index])
    return buffers
