"""From a time to an offset, within one segment: the time index says where to begin, the records say where exactly.

The answer for a time is the first record, in the order of offsets, whose timestamp is at or after it. A time index entry is
believed only if the batch it points to has the largest timestamp it claims; else the indexes are built anew.
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
    """The answer to a question of time. The timestamp is -1 where only the offset was asked for; the epoch -1 if unknown."""

    timestamp: int
    offset: int
    leader_epoch: int


def find_by_time(segment: Segment, timestamp: int, start_offset: int) -> TimedOffset | None:
    """The first record of the segment from `start_offset` on that is not older than `timestamp`."""
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
            "The index is built anew from the records of its segment",
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
