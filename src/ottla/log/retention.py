"""Retention: which segments a log deletes, and why. `expired_segments` decides, `apply_retention` deletes.

Whole segments are deleted, oldest first, up to the first that must stay. The reasons, tried in this order, each starting where
the one before ended:

1. log start: all records of the segment are before the log start offset (DeleteRecords). Applies under every cleanup policy.
2. size, with the `delete` policy: the log without the segment still has retention.bytes or more.
3. time, with the `delete` policy: the segment's largest record timestamp is more than retention.ms ago. For a segment without
   timestamps, the time its file was last written counts.

A segment that reaches the high watermark stays: its records are not yet on all in-sync replicas. The active segment is deleted
too if it is due; the log first rolls a new one. An empty active segment stays, else every check would replace it by another.
"""

from __future__ import annotations

import logging
from typing import NamedTuple

from ottla.log.partition_log import PartitionLog
from ottla.log.segments.deletion import delete_chosen
from ottla.log.segments.segment import Segment

logger = logging.getLogger("ottla.log")


class Expired(NamedTuple):
    """A segment to delete, and the reason as text."""

    segment: Segment
    reason: str


def expired_segments(log: PartitionLog, now_ms: int) -> list[Expired]:
    """The segments of `log` to delete at `now_ms`, oldest first."""
    segments = list(log.segments)
    ends = [segment.base_offset for segment in segments[1:]] + [log.log_end_offset]
    removable = 0
    for segment, end_offset in zip(segments, ends, strict=True):
        if end_offset > log.high_watermark or (segment is segments[-1] and segment.size == 0):
            break
        removable += 1
    candidates = segments[:removable]
    expired = _before_log_start(log, candidates, ends)
    if log.config.delete:
        expired += _beyond_size(log, candidates[len(expired) :], segments[len(expired) :])
        expired += _beyond_time(log, candidates[len(expired) :], now_ms)
    return expired


def _before_log_start(log: PartitionLog, candidates: list[Segment], ends: list[int]) -> list[Expired]:
    expired = []
    for segment, end_offset in zip(candidates, ends, strict=False):
        if segment is log.segments.active or end_offset > log.log_start_offset:
            break
        expired.append(Expired(segment, f"all its records lie before the log's start {log.log_start_offset}"))
    return expired


def _beyond_size(log: PartitionLog, candidates: list[Segment], remaining: list[Segment]) -> list[Expired]:
    limit = log.config.retention_bytes
    size = sum(segment.size for segment in remaining)
    if limit < 0:
        return []
    expired = []
    for segment in candidates:
        if size - segment.size < limit:
            break
        expired.append(Expired(segment, f"the log has {size} bytes, retention.bytes={limit}"))
        size -= segment.size
    return expired


def _beyond_time(log: PartitionLog, candidates: list[Segment], now_ms: int) -> list[Expired]:
    limit = log.config.retention_ms
    if limit < 0:
        return []
    expired = []
    for segment in candidates:
        age_ms = now_ms - segment.largest_timestamp
        if age_ms <= limit:
            break
        what = "its newest record is" if segment.max_timestamp >= 0 else "no record has a timestamp, and its file is"
        expired.append(Expired(segment, f"{what} {age_ms} ms old, retention.ms={limit}"))
    return expired


async def apply_retention(log: PartitionLog, now_ms: int) -> list[Expired]:
    """Delete what is due; returns what was deleted. Files are removed after file.delete.delay.ms: see `deletion_deadline_s`.

    `LogDirectoryFailed` if the disk fails.
    """
    expired: list[Expired] = []

    def choose() -> list[Segment]:
        expired.extend(expired_segments(log, now_ms))
        for segment, reason in expired:
            logger.info("%s: segment %d (%d bytes) goes: %s", log.partition, segment.base_offset, segment.size, reason)
        return [segment for segment, _ in expired]

    try:
        if expired_segments(log, now_ms):
            await delete_chosen(log, choose)
    except OSError as error:  # from reading a file's modification time
        raise log.fail(error) from error
    return expired
