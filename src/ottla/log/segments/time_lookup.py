"""Finding the offset for a timestamp in one segment: the time index gives the start of the search, the records the result.

The result is the first record, in the order of offsets, whose timestamp is at or after the requested one. A time index entry is
used only if the batch it points to has that timestamp as its largest; else the indexes are rebuilt.
"""

from typing import NamedTuple

from ottla.errors import CorruptRecords
from ottla.log.segments.scan import damage, headers, whole_batch
from ottla.log.segments.segment import Segment
from ottla.log.segments.sparse_index import CorruptIndex
from ottla.log.segments.time_index import TimestampOffset
from ottla.records.batch import BatchView
from ottla.records.layout import NO_TIMESTAMP
from ottla.records.reader import read_records


class TimedOffset(NamedTuple):
    """An offset with its timestamp and leader epoch. The timestamp is -1 for log start and end, the epoch -1 if unknown."""

    timestamp: int
    offset: int
    leader_epoch: int


def find_by_time(segment: Segment, timestamp: int, start_offset: int) -> TimedOffset | None:
    """The first record of the segment, from `start_offset` on, whose timestamp is `timestamp` or later."""
    entry = _trusted_entry(segment, timestamp)
    place = segment.find(max(entry.offset, start_offset))
    if place is None:
        return None
    for position, view in headers(segment.file, place.position, segment.size):
        if view.max_timestamp >= timestamp and view.last_offset >= start_offset:
            found = _first_in_batch(segment, position, view.size, timestamp, start_offset)
            if found is not None:
                return found
    return None


def _first_in_batch(segment: Segment, position: int, size: int, timestamp: int, start_offset: int) -> TimedOffset | None:
    batch = whole_batch(segment.file, position, size)
    try:
        batch.check()
        for record in read_records(batch):
            if record.timestamp >= timestamp and record.offset >= start_offset:
                return TimedOffset(record.timestamp, record.offset, batch.leader_epoch)
    except CorruptRecords as error:
        raise damage(segment.file, position, str(error)) from None
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


def find_max_timestamp(segment: Segment) -> TimedOffset | None:
    """The first record that has the segment's largest timestamp."""
    largest = segment.max_timestamp
    if largest == NO_TIMESTAMP:
        return None
    place = segment.find(segment.max_timestamp_offset)
    if place is None:
        return None
    for position, view in headers(segment.file, place.position, segment.size):
        if view.max_timestamp == largest:
            return _first_in_batch(segment, position, view.size, largest, 0)
    return None
