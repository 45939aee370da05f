"""Finding the offset for a timestamp in one segment: the time index gives the start of the search, the records the result.

The result is the first record, in the order of offsets, whose timestamp is at or after the requested one. A time index entry is
used only if the batch it points to has that timestamp as its largest; else the indexes are rebuilt.

A search may be long: a header can claim a later timestamp than any of its records has, and a few kilobytes can decompress to
`DECOMPRESSED_BYTES_MAX`. So it is done in steps. `next_batch` reads one batch that may hold the record, `search_batch` looks
into it, in a worker thread if it is large. Between two steps the segment may be gone: callers start again from the log.
"""

from functools import partial
from typing import NamedTuple

from ottla.env import OffLoop, Steps, run_to_end
from ottla.errors import CorruptRecords
from ottla.log.segments.scan import damage, headers, whole_batch
from ottla.log.segments.segment import Segment
from ottla.log.segments.sparse_index import CorruptIndex
from ottla.log.segments.time_index import TimestampOffset
from ottla.records.batch import BatchView
from ottla.records.compression import Codec, ExpandsTooFar, decompress_large
from ottla.records.kernels import RecordScan
from ottla.records.layout import NO_TIMESTAMP
from ottla.records.reader import DECOMPRESSED_BYTES_MAX

HEADERS_PER_STEP = 2000
"""So many headers are looked at in one step: about 3 ms."""
RECORDS_PER_STEP = 250_000
"""So many records are scanned in one go: about 3 ms."""
LOOP_BYTES_MAX = 1 << 20
"""Batches of up to this size, stored and decompressed, are searched on the loop."""

_ANY_TIME = -0x8000000000000000


class TimedOffset(NamedTuple):
    """An offset with its timestamp and leader epoch. The timestamp is -1 for log start and end, the epoch -1 if unknown."""

    timestamp: int
    offset: int
    leader_epoch: int


class BatchFound(NamedTuple):
    """A batch that may hold the record, and where it is."""

    view: BatchView
    segment: Segment
    position: int


def next_batch(segment: Segment, timestamp: int, start_offset: int) -> tuple[BatchFound | None, int | None]:
    """(the next batch from `start_offset` on whose header claims `timestamp` or later; the offset to continue from).

    No batch and an offset: there may be one further on. No offset: the segment has no more batches.
    """
    entry = _trusted_entry(segment, timestamp)
    place = segment.find(max(entry.offset, start_offset))
    if place is None:
        return None, None
    for count, (position, view) in enumerate(headers(segment.file, place.position, segment.size)):
        if view.max_timestamp >= timestamp and view.last_offset >= start_offset:
            return BatchFound(whole_batch(segment.file, position, view.size), segment, position), view.next_offset
        if count >= HEADERS_PER_STEP:
            return None, view.next_offset
    return None, None


def find_by_time(segment: Segment, timestamp: int, start_offset: int) -> TimedOffset | None:
    """The first record of the segment, from `start_offset` on, whose timestamp is `timestamp` or later."""
    offset: int | None = start_offset
    while offset is not None:
        batch, offset = next_batch(segment, timestamp, offset)
        if batch is not None and (found := run_to_end(search_batch(batch, timestamp, start_offset))) is not None:
            return found
    return None


def search_batch(batch: BatchFound, timestamp: int, start_offset: int) -> Steps[TimedOffset | None]:
    """The first record of the batch, from `start_offset` on, whose timestamp is `timestamp` or later."""
    view = batch.view
    search = partial(_search, view, timestamp, start_offset)
    try:
        if view.size <= LOOP_BYTES_MAX:
            try:
                return search(LOOP_BYTES_MAX)
            except ExpandsTooFar:
                pass
        found: TimedOffset | None = yield OffLoop(partial(search, DECOMPRESSED_BYTES_MAX), DECOMPRESSED_BYTES_MAX)
        return found
    except CorruptRecords as error:
        raise damage(batch.segment.file, batch.position, str(error)) from None


def _search(view: BatchView, timestamp: int, start_offset: int, decompressed_bytes_max: int) -> TimedOffset | None:
    """Pure: may run in another thread. `ExpandsTooFar` if the batch decompresses to more than that."""
    view.check()
    if view.count == 0:
        return None
    codec = view.codec
    plain = view.payload if codec == Codec.NONE else decompress_large(codec, view.payload, decompressed_bytes_max)
    if view.is_append_time:  # the records' own timestamps do not count
        if view.max_timestamp < timestamp:
            return None
        timestamp = _ANY_TIME
    scan = RecordScan()
    while scan.index + 1 < view.count:  # in pieces: between them another thread can have the interpreter lock
        if scan.find(plain, view.count, view.base_timestamp, timestamp, start_offset - view.base_offset, RECORDS_PER_STEP):
            found_ms = view.max_timestamp if view.is_append_time else scan.timestamp
            return TimedOffset(found_ms, view.base_offset + scan.offset_delta, view.leader_epoch)
    return None


def _trusted_entry(segment: Segment, timestamp: int) -> TimestampOffset:
    try:
        entry = segment.time_index.lookup(timestamp)
        if entry.timestamp == NO_TIMESTAMP or _has_timestamp(segment, entry):
            return entry
        raise CorruptIndex(
            segment.time_index.path,
            0,
            f"no batch at offset {entry.offset} has the timestamp {entry.timestamp} that the index claims",
            "The index is rebuilt from the records of its segment",
        )
    except CorruptIndex as error:
        segment.rebuild_indexes(error)
        return segment.time_index.lookup(timestamp)


def _has_timestamp(segment: Segment, entry: TimestampOffset) -> bool:
    place = segment.find(entry.offset)
    if place is None:
        return False
    view = BatchView(segment.file.read(place.position, min(place.size, 64)))
    return view.base_offset <= entry.offset and view.max_timestamp == entry.timestamp


def batch_with_max_timestamp(segment: Segment) -> BatchFound | None:
    """The first batch whose header claims the segment's largest timestamp."""
    largest = segment.max_timestamp
    if largest == NO_TIMESTAMP:
        return None
    place = segment.find(segment.max_timestamp_offset)
    if place is None:
        return None
    for position, view in headers(segment.file, place.position, segment.size):
        if view.max_timestamp == largest:
            return BatchFound(whole_batch(segment.file, position, view.size), segment, position)
    return None


def find_max_timestamp(segment: Segment) -> TimedOffset | None:
    """The first record that has the segment's largest timestamp."""
    batch = batch_with_max_timestamp(segment)
    return None if batch is None else run_to_end(search_batch(batch, batch.view.max_timestamp, 0))
