"""Which log is compacted next, and which part of it.

A log's dirty part begins where the last pass ended (cleaner-offset-checkpoint). It can be cleaned, in whole segments, up to the
first of: the active segment, the last stable offset, the first segment with a record younger than min.compaction.lag.ms.
A log is due if its cleanable share exceeds min.cleanable.dirty.ratio, or if its oldest dirty record is older than
max.compaction.lag.ms. Among those due, the one with the largest share comes first.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from ottla.log.compaction.plan import CleanerSettings, CompactionPlan, LastRecord, SegmentPlan
from ottla.log.segments.offset_index import ENTRY_SIZE as OFFSET_ENTRY_BYTES
from ottla.log.segments.segment import Segment
from ottla.log.segments.sparse_index import CorruptIndex
from ottla.log.segments.time_index import ENTRY_SIZE as TIME_ENTRY_BYTES

if TYPE_CHECKING:
    from ottla.log.partition_log import PartitionLog


class Candidate(NamedTuple):
    """A log that could be compacted."""

    log: PartitionLog
    first_dirty_offset: int
    first_uncleanable_offset: int
    """The base offset of the first segment that may not be cleaned."""
    clean_bytes: int
    cleanable_bytes: int
    overdue_ms: int
    """How far the oldest dirty record is past max.compaction.lag.ms; 0 if it is not."""
    checkpoint_is_wrong: bool
    """Whether the checkpoint has an offset outside the log."""

    @property
    def dirty_ratio(self) -> float:
        total = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / total if total else 0.0

    @property
    def is_due(self) -> bool:
        if self.overdue_ms > 0 and self.cleanable_bytes > 0:
            return True
        return self.dirty_ratio > self.log.config.min_cleanable_dirty_ratio


def candidate_of(log: PartitionLog, checkpoint: int | None, now_ms: int) -> Candidate:
    """How dirty `log` is. `checkpoint` is where its last pass ended; None: there was none."""
    first_dirty = log.log_start_offset if checkpoint is None else checkpoint
    is_wrong = not log.log_start_offset <= first_dirty <= log.log_end_offset
    if is_wrong:
        first_dirty = log.log_start_offset
    limit = max(first_dirty, _first_uncleanable(log, first_dirty, now_ms))
    first_uncleanable = next(iter(_closed_from(log, limit)), log.segments.active).base_offset
    cleanable = log.segments.between(min(first_dirty, first_uncleanable), first_uncleanable)
    return Candidate(
        log,
        first_dirty,
        first_uncleanable,
        clean_bytes=sum(segment.size for segment in log.segments if segment.base_offset < first_dirty),
        cleanable_bytes=sum(segment.size for segment in cleanable),
        overdue_ms=_overdue_ms(log, first_dirty, now_ms),
        checkpoint_is_wrong=is_wrong,
    )


def _closed_from(log: PartitionLog, offset: int) -> list[Segment]:
    """The segments from the one that holds `offset` up to, not including, the active one."""
    return log.segments.between(offset, log.segments.active.base_offset)


def _first_uncleanable(log: PartitionLog, first_dirty: int, now_ms: int) -> int:
    limit = min(log.last_stable_offset, log.segments.active.base_offset)
    lag_ms = log.config.min_compaction_lag_ms
    if lag_ms > 0:
        for segment in _closed_from(log, first_dirty):
            if segment.largest_timestamp > now_ms - lag_ms:
                return min(limit, segment.base_offset)
    return limit


def _overdue_ms(log: PartitionLog, first_dirty: int, now_ms: int) -> int:
    lag_ms = max(log.config.max_compaction_lag_ms, 0)
    if lag_ms >= now_ms:
        return 0
    timestamps = (segment.first_timestamp for segment in _closed_from(log, first_dirty))
    oldest = min((timestamp for timestamp in timestamps if timestamp > 0), default=None)
    if oldest is None:
        return 0
    return max(0, now_ms - lag_ms - oldest)


def dirtiest(candidates: Iterable[Candidate]) -> Candidate | None:
    """The candidate to compact next; None if none is due."""
    return max((candidate for candidate in candidates if candidate.is_due), key=lambda due: due.dirty_ratio, default=None)


def plan_for(candidate: Candidate, settings: CleanerSettings, now_ms: int) -> CompactionPlan:
    """The plan of a pass over the candidate."""
    log = candidate.log
    config = log.config
    segments = log.segments.between(0, candidate.first_uncleanable_offset)
    first_offset = segments[0].base_offset if segments else 0
    limit = settings.io_max_bytes_per_second
    return CompactionPlan(
        folder=log.folder,
        segments=tuple(_segment_plan(segment) for segment in segments),
        first_dirty_offset=candidate.first_dirty_offset,
        first_uncleanable_offset=candidate.first_uncleanable_offset,
        now_ms=now_ms,
        delete_retention_ms=config.delete_retention_ms,
        segment_bytes=config.segment_bytes,
        segment_index_bytes=config.segment_index_bytes,
        index_interval_bytes=config.index_interval_bytes,
        aborted=tuple(log.aborted_transactions(first_offset, candidate.first_uncleanable_offset)),
        producers={key: LastRecord(entry.last_offset, entry.epoch) for key, entry in log.producers.producers.items()},
        dedupe_buffer_bytes=settings.dedupe_buffer_bytes,
        dedupe_load_factor=settings.dedupe_load_factor,
        bytes_per_second=limit if limit != float("inf") else None,
    )


def _segment_plan(segment: Segment) -> SegmentPlan:
    try:
        segment.offset_index.open()
        segment.time_index.open()
    except CorruptIndex as damage:
        segment.rebuild_indexes(damage)
    offset_entries, time_entries = segment.offset_index.count, segment.time_index.count
    segment.release_indexes()  # a log may have thousands of segments
    return SegmentPlan(segment.base_offset, segment.size, offset_entries * OFFSET_ENTRY_BYTES, time_entries * TIME_ENTRY_BYTES)
