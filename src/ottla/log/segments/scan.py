"""Scanning the batches of a log file: by header alone to find one, or whole and CRC-checked to recover.

Reads are in chunks and headers are walked in memory: one system call per chunk, not per batch. Every header is checked before
it is used: a batch that is not of magic 2, is shorter than its header, goes backwards or reaches past the end of the file
raises `CorruptFile`, and never gives a wrong result or an endless loop.
"""

from collections.abc import Iterator
from typing import NamedTuple

from ottla.env import File
from ottla.errors import CorruptFile, CorruptRecords
from ottla.records.batch import BatchView
from ottla.records.layout import BATCH_LENGTH_MIN, HEADER_FRONT, HEADER_SIZE, LENGTH_AT, LOG_OVERHEAD, MAGIC

FIND_CHUNK_BYTES = 4096
"""Chunk size for finding an offset: its index entry is at most about index.interval.bytes (4096 by default) before it."""
HEADERS_CHUNK_BYTES = 64 * 1024
BATCHES_CHUNK_BYTES = 1 << 20

REMEDY = (
    "Restore the file from a copy, or move the partition's folder away and let it be replicated again; "
    "after an unclean stop, recovery cuts damaged bytes off by itself"
)


class BatchPlace(NamedTuple):
    """The place of a batch, in offsets and in bytes."""

    base_offset: int
    last_offset: int
    position: int
    size: int


def damage(file: File, position: int, what: str) -> CorruptFile:
    return CorruptFile(file.path, position, what, REMEDY)


def _place_in(file: File, data: bytes, at: int, position: int, end: int) -> BatchPlace:
    """The batch whose header is at index `at` of `data`, which is `position` in the file."""
    base_offset, length, _epoch, magic, _crc, _attributes, delta = HEADER_FRONT.unpack_from(data, at)
    if magic != MAGIC or length < BATCH_LENGTH_MIN or delta < 0 or base_offset < 0:
        raise damage(file, position, f"no batch of magic {MAGIC} begins here (magic {magic}, length {length})")
    if length > end - position - LOG_OVERHEAD:
        raise damage(file, position, f"the batch says it is {LOG_OVERHEAD + length} bytes long; {end - position} are left")
    return BatchPlace(base_offset, base_offset + delta, position, LOG_OVERHEAD + length)


def find_offset(file: File, offset: int, position: int, end: int, indexed_offset: int | None = None) -> BatchPlace | None:
    """The first batch from `position` on that ends at or after `offset`; None if all of them end before it.

    If `position` comes from an index, `indexed_offset` is the offset of that entry: `CorruptFile` unless a batch begins there
    that does not end after it.
    """
    data, start = b"", 0
    while position < end:
        at = position - start
        if at + HEADER_SIZE > len(data):
            data, start, at = file.read(position, min(FIND_CHUNK_BYTES, end - position)), position, 0
            if len(data) < HEADER_SIZE:
                raise damage(file, position, f"{len(data)} bytes are left, less than the header of a batch")
        place = _place_in(file, data, at, position, end)
        if indexed_offset is not None:
            if place.last_offset > indexed_offset:
                raise damage(
                    file, position, f"the index has offset {indexed_offset} here, the batch ends with {place.last_offset}"
                )
            indexed_offset = None
        if place.last_offset >= offset:
            return place
        position += place.size
    return None


def batch_at(file: File, position: int, end: int) -> BatchPlace | None:
    """The batch that begins at `position`; None if no batch does."""
    data = file.read(position, HEADER_SIZE)
    if len(data) < HEADER_SIZE:
        return None
    try:
        return _place_in(file, data, 0, position, end)
    except CorruptFile:
        return None


def headers(file: File, position: int, end: int, chunk_bytes: int = HEADERS_CHUNK_BYTES) -> Iterator[tuple[int, BatchView]]:
    """Position and header of every batch from `position` to `end`. A view is sure to hold only the header, not the records."""
    data, start = b"", 0
    while position < end:
        at = position - start
        if at + HEADER_SIZE > len(data):
            data, start, at = file.read(position, min(chunk_bytes, end - position)), position, 0
            if len(data) < HEADER_SIZE:
                raise damage(file, position, f"{len(data)} bytes are left, less than the header of a batch")
        place = _place_in(file, data, at, position, end)
        yield position, BatchView(data, at)
        position += place.size


def whole_batch(file: File, position: int, size: int) -> BatchView:
    """The batch at `position`, read whole."""
    data = file.read(position, size)
    if len(data) != size:
        raise damage(file, position, "the file has become shorter")
    return BatchView(data)


def checked_batches(file: File, position: int, end: int) -> Iterator[tuple[int, BatchView]]:
    """Position and view of every whole batch from `position` to `end`, length and CRC checked.

    `CorruptRecords`, with the position in the file, at the first that is cut short or damaged.
    """
    data, start = b"", position
    while position < end:
        at = position - start
        if at + LOG_OVERHEAD > len(data):
            data, start, at = file.read(position, min(BATCHES_CHUNK_BYTES, end - position)), position, 0
        if len(data) - at < HEADER_SIZE and len(data) - at == end - position:
            raise CorruptRecords(f"{end - position} bytes are left, less than the header of a batch", position)
        length = int.from_bytes(data[at + LENGTH_AT : at + LOG_OVERHEAD], "big", signed=True)
        if length < BATCH_LENGTH_MIN or length > end - position - LOG_OVERHEAD:
            raise CorruptRecords(
                f"a batch of {length + LOG_OVERHEAD} bytes cannot begin where {end - position} are left", position
            )
        if at + LOG_OVERHEAD + length > len(data):
            wanted = max(LOG_OVERHEAD + length, min(BATCHES_CHUNK_BYTES, end - position))
            data, start, at = file.read(position, wanted), position, 0
        view = BatchView(data, at)
        try:
            view.check()
        except CorruptRecords as error:
            raise CorruptRecords(str(error), position) from None
        yield position, view
        position += view.size
