"""From a batch to its records."""

from ottla.records.batch import BatchView
from ottla.records.compression import Codec, decompress
from ottla.records.kernels import Record, RecordIterator
from ottla.records.layout import HEADER_SIZE

DECOMPRESSED_BYTES_MAX = 128 * 1024 * 1024
"""How far a batch may expand where the caller sets no bound of its own."""


def read_records(view: BatchView, *, decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX) -> list[Record]:
    """Every record of the batch, in order. The batch's size is checked here, its CRC is not: `view.check()` does that."""
    return list(iterate_records(view, decompressed_bytes_max=decompressed_bytes_max))


def iterate_records(view: BatchView, *, decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX) -> RecordIterator:
    """The records of the batch one at a time. Damage in a record is found only when the iterator comes to it."""
    view.check_size()
    append_time_ms = view.max_timestamp if view.is_append_time else None
    codec = view.codec
    if codec == Codec.NONE and isinstance(view.buffer, bytes):
        data, start, end = view.buffer, view.position + HEADER_SIZE, view.position + view.size
    else:
        data = (
            bytes(view.payload)
            if codec == Codec.NONE or view.count == 0
            else decompress(codec, view.payload, decompressed_bytes_max)
        )
        start, end = 0, len(data)
    return RecordIterator(data, start, end, view.count, view.base_offset, view.base_timestamp, append_time_ms)
