"""Retention: which segments a log lets go, and why. The decision is a plain function; `apply_retention` carries it out.

Whole segments go, from the oldest on, up to the first that has to stay. In this order, each counting on from the one before:

1. log start: everything in the segment lies before the log's start (records deleted on request). Whatever the policy.
2. size, with the `delete` policy: as long as the log without the segment is still retention.bytes long or longer.
3. time, with the `delete` policy: the segment's largest record timestamp is more than retention.ms ago. A segment without any
   timestamp goes by the time its file was last written.

A segment that reaches up to or past the high watermark stays: its records are not yet safe on the replicas. The active segment
goes as well if it is due; the log then first begins a new one. An empty active segment stays, or there would be no end of it.
"""

from __future__ import annotations

import logging
from typing import NamedTuple

from ottla.log.partition_log import PartitionLog
from ottla.log.segments.deletion import delete_chosen
from ottla.log.segments.segment import Segment

logger = logging.getLogger("ottla.log")


class Expired(NamedTuple):
    """A segment that has to go, and why, in words."""

    segment: Segment
    reason: str


def expired_segments(log: PartitionLog, now_ms: int) -> list[Expired]:
    """The segments that `log` should let go at `now_ms`, the oldest first."""
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
    """Let go what is due; returns what went. The files follow after file.delete.delay.ms: see `deletion_deadline_s`.

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
    except OSError as error:  # a file's age was asked for
        raise log.fail(error) from error
    return expired
