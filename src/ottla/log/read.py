"""Reading a partition log: ranges by offset, offsets by time, aborted transactions.

A read ends at a bound: the log end offset for replicas, the high watermark for consumers, the last stable offset for
read_committed consumers. The bound's position in its segment is cached until the bound moves.
"""

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from ottla.env import FileRange, Steps
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.log.segments.segment import Segment
from ottla.log.segments.time_lookup import BatchFound, TimedOffset, batch_with_max_timestamp, next_batch, search_batch
from ottla.log.segments.txn_index import AbortedTxn
from ottla.records.layout import NO_LEADER_EPOCH, NO_TIMESTAMP

if TYPE_CHECKING:
    from ottla.log.partition_log import PartitionLog

BOUND_PLACES_MAX = 8


class Isolation(Enum):
    """The bound of a read."""

    LOG_END = "log end"
    HIGH_WATERMARK = "high watermark"
    COMMITTED = "committed"


class ReadInfo(NamedTuple):
    """The result of a read, and the log's offsets at that time."""

    records: FileRange | None
    """Batches from the one that holds the requested offset on; the last may be cut. None if there is nothing to read."""
    offset: int
    segment_base_offset: int
    position: int
    log_start_offset: int
    log_end_offset: int
    high_watermark: int
    last_stable_offset: int
    first_batch_incomplete: bool
    aborted: list[AbortedTxn] | None
    """With `Isolation.COMMITTED`: the aborted transactions whose records a consumer must skip."""


def read(log: "PartitionLog", offset: int, max_bytes: int, isolation: Isolation, min_one_batch: bool) -> ReadInfo:
    """See `PartitionLog.read`."""
    log.check_usable()
    if not log.log_start_offset <= offset <= log.log_end_offset:
        raise KafkaError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"offset {offset} of {log.partition} is not there: the log has offsets {log.log_start_offset} up to "
            f"{log.log_end_offset}. Go on from its start or its end",
        )
    try:
        if isolation is Isolation.LOG_END:
            bound = log.log_end_offset
        elif isolation is Isolation.HIGH_WATERMARK:
            bound = log.high_watermark
        else:
            bound = log.last_stable_offset
        if offset >= bound:
            base_offset, position = _place_of(log, offset)
            return _info(log, None, offset, base_offset, position, False, [] if isolation is Isolation.COMMITTED else None)
        return _read_below(log, offset, max_bytes, bound, isolation, min_one_batch)
    except OSError as error:
        raise log.cannot_read(error) from error


def _read_below(
    log: "PartitionLog", offset: int, max_bytes: int, bound: int, isolation: Isolation, min_one_batch: bool
) -> ReadInfo:
    """Read from the segment that holds `offset`, or from the next one with records."""
    bound_base, bound_position = _place_of(log, bound)
    segment = log.segments.floor(offset) or log.segments.first
    if isolation is Isolation.LOG_END and log.cut_place is None:
        # A follower goes on where its last read ended, which was the log's end then.
        begin = log.bound_places.get(offset)
        _remember_place(log, bound, (bound_base, bound_position))
        if begin is not None and begin[0] == segment.base_offset == bound_base and bound_position - begin[1] <= max_bytes:
            records = segment.file.range(begin[1], bound_position - begin[1])
            return _info(log, records, offset, bound_base, begin[1], False, None)
    while True:
        if segment.base_offset < bound_base:
            max_position: int | None = segment.size
        else:
            max_position = bound_position if segment.base_offset == bound_base else None
        found = segment.read(offset, max_bytes, max_position, min_one_batch)
        if found is not None:
            aborted = None
            if isolation is Isolation.COMMITTED:
                aborted = _aborted_in(log, segment, offset, found.range) if found.range is not None else []
            position = found.place.position
            return _info(log, found.range, offset, segment.base_offset, position, found.first_batch_incomplete, aborted)
        above = log.segments.above(segment.base_offset)
        if above is None:
            # Everything from `offset` on has been compacted away.
            aborted = [] if isolation is Isolation.COMMITTED else None
            return _info(log, None, offset, segment.base_offset, segment.size, False, aborted)
        segment = above


def _info(
    log: "PartitionLog",
    records: FileRange | None,
    offset: int,
    base_offset: int,
    position: int,
    incomplete: bool,
    aborted: list[AbortedTxn] | None,
) -> ReadInfo:
    return ReadInfo(
        records,
        offset,
        base_offset,
        position,
        log.log_start_offset,
        log.log_end_offset,
        log.high_watermark,
        log.last_stable_offset,
        incomplete,
        aborted,
    )


def _place_of(log: "PartitionLog", offset: int) -> tuple[int, int]:
    """(base offset of the segment, position in it) of the first batch that ends at or after `offset`."""
    if offset >= log.log_end_offset:
        if log.cut_place is not None:
            return log.cut_place
        active = log.segments.active
        return active.base_offset, active.size
    place = log.bound_places.get(offset)
    if place is None:
        place = _find_place(log, offset)
        _remember_place(log, offset, place)
    return place


def _remember_place(log: "PartitionLog", offset: int, place: tuple[int, int]) -> None:
    places = log.bound_places
    if len(places) >= BOUND_PLACES_MAX and offset not in places:
        places.clear()
    places[offset] = place


def _find_place(log: "PartitionLog", offset: int) -> tuple[int, int]:
    for segment in log.segments.all_from(offset):
        found = segment.find(offset)
        if found is not None:
            return segment.base_offset, found.position
    active = log.segments.active
    return active.base_offset, active.size


# -- aborted transactions


def _aborted_in(log: "PartitionLog", segment: Segment, offset: int, records: FileRange) -> list[AbortedTxn]:
    """The aborted transactions for a range, up to the offset index entry after its end: may include a few more."""
    upper = segment.offset_index.offset_at_or_after(records.position + records.length)
    if upper is None:
        above = log.segments.above(segment.base_offset)
        upper = above.base_offset if above is not None else log.log_end_offset
    return _collect(log, segment, offset, upper)


def aborted_transactions(log: "PartitionLog", start_offset: int, upper_offset: int) -> list[AbortedTxn]:
    """See `PartitionLog.aborted_transactions`."""
    log.check_usable()
    try:
        segment = log.segments.floor(start_offset) or log.segments.first
        return _collect(log, segment, start_offset, upper_offset)
    except OSError as error:
        raise log.cannot_read(error) from error


def _collect(log: "PartitionLog", segment: Segment, start_offset: int, upper_offset: int) -> list[AbortedTxn]:
    found: list[AbortedTxn] = []
    for each in log.segments.all_from(segment.base_offset):
        if each.txn_index.collect(start_offset, upper_offset, found):
            break
    return found


# -- offsets by time


def search_by_time(log: "PartitionLog", timestamp: int) -> Steps[TimedOffset | None]:
    """See `PartitionLog.search_by_time`."""
    offset: int | None = log.log_start_offset
    while offset is not None:
        # Segments may have been deleted, compacted or truncated since the last step: they are looked up again by offset.
        batch, offset = _next_batch(log, timestamp, max(offset, log.log_start_offset))
        if batch is not None:
            found = yield from search_batch(batch, timestamp, log.log_start_offset)
            if found is not None:
                return found
        yield None
    return None


def _next_batch(log: "PartitionLog", timestamp: int, offset: int) -> tuple[BatchFound | None, int | None]:
    """The next batch that may hold a record of that time; the offset to continue from, None at the end of the log."""
    log.check_usable()
    try:
        for segment in log.segments.all_from(offset):
            if segment.largest_timestamp >= timestamp:
                batch, next_offset = next_batch(segment, timestamp, offset)
                if next_offset is not None:
                    return batch, next_offset
                above = log.segments.above(segment.base_offset)
                return None, None if above is None else above.base_offset
        return None, None
    except OSError as error:
        raise log.cannot_read(error) from error


def earliest_offset(log: "PartitionLog") -> TimedOffset:
    """The log start offset, with its leader epoch if known."""
    entry = log.epochs.earliest_entry
    known = entry is not None and entry[1] <= log.log_start_offset
    return TimedOffset(NO_TIMESTAMP, log.log_start_offset, entry[0] if known and entry is not None else NO_LEADER_EPOCH)


def latest_offset(log: "PartitionLog") -> TimedOffset:
    """The log end offset, with the newest leader epoch."""
    latest = log.epochs.latest
    return TimedOffset(NO_TIMESTAMP, log.log_end_offset, NO_LEADER_EPOCH if latest is None else latest)


def search_max_timestamp(log: "PartitionLog") -> Steps[TimedOffset | None]:
    """See `PartitionLog.search_max_timestamp`."""
    log.check_usable()
    try:
        batch = batch_with_max_timestamp(max(log.segments, key=lambda segment: segment.max_timestamp))
    except OSError as error:
        raise log.cannot_read(error) from error
    if batch is None:
        return None
    return (yield from search_batch(batch, batch.view.max_timestamp, 0))
