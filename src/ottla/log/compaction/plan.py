"""The input and output of a compaction pass, convertible to JSON for a helper process (`cleaner.py`).

A pass over one log reads the segments in its plan and writes a `.cleaned` segment for each group of them. It changes nothing
else: the node swaps the new segments in, group by group, as they are reported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ottla.config.topic import LogConfig
from ottla.errors.texts import counted, sized
from ottla.log.segments.offset_index import RELATIVE_OFFSET_MAX
from ottla.log.segments.txn_index import AbortedTxn

DEDUPE_BUFFER_BYTES = 128 * 1024 * 1024
DEDUPE_LOAD_FACTOR = 0.9


class CleanerSettings(NamedTuple):
    """The broker's settings for compaction (log.cleaner.…)."""

    dedupe_buffer_bytes: int = DEDUPE_BUFFER_BYTES
    dedupe_load_factor: float = DEDUPE_LOAD_FACTOR
    io_max_bytes_per_second: float = float("inf")
    backoff_ms: int = 15_000


class SegmentPlan(NamedTuple):
    """One segment to read, with its sizes when the pass was planned."""

    base_offset: int
    size_bytes: int
    offset_index_bytes: int
    time_index_bytes: int


class LastRecord(NamedTuple):
    """An active producer: the last offset of its last data batch (-1: none), and its epoch."""

    last_data_offset: int
    epoch: int


class CompactionPlan(NamedTuple):
    """One pass over one log."""

    folder: str
    segments: tuple[SegmentPlan, ...]
    """All of the log below `first_uncleanable_offset`, in order."""
    first_dirty_offset: int
    first_uncleanable_offset: int
    """The base offset of the first segment that may not be cleaned."""
    now_ms: int
    delete_retention_ms: int
    segment_bytes: int
    segment_index_bytes: int
    index_interval_bytes: int
    aborted: tuple[AbortedTxn, ...] = ()
    producers: Mapping[int, LastRecord] | None = None
    dedupe_buffer_bytes: int = DEDUPE_BUFFER_BYTES
    dedupe_load_factor: float = DEDUPE_LOAD_FACTOR
    bytes_per_second: float | None = None

    @property
    def size_bytes(self) -> int:
        return sum(segment.size_bytes for segment in self.segments)

    @property
    def records_max(self) -> int:
        """An upper bound for the records to read: the number of offsets."""
        return self.first_uncleanable_offset - self.segments[0].base_offset if self.segments else 0

    @property
    def dirty_records_max(self) -> int:
        return max(0, self.first_uncleanable_offset - self.first_dirty_offset)

    def log_config(self) -> LogConfig:
        """The settings that matter to a segment being written."""
        return LogConfig(
            segment_bytes=self.segment_bytes,
            segment_index_bytes=self.segment_index_bytes,
            index_interval_bytes=self.index_interval_bytes,
        )

    def to_json(self) -> dict[str, object]:
        fields: dict[str, object] = self._asdict()
        fields["segments"] = [segment._asdict() for segment in self.segments]
        fields["producers"] = [[key, entry.last_data_offset, entry.epoch] for key, entry in (self.producers or {}).items()]
        return fields

    @classmethod
    def from_json(cls, job: Mapping[str, Any]) -> CompactionPlan:
        fields = dict(job)
        fields["segments"] = tuple(SegmentPlan(**segment) for segment in job["segments"])
        fields["aborted"] = tuple(AbortedTxn(*txn) for txn in job["aborted"])
        fields["producers"] = {key: LastRecord(last, epoch) for key, last, epoch in job["producers"]}
        return cls(**fields)


class CleanedGroup(NamedTuple):
    """A group of old segments, and the new one that replaces them: it has the base offset of the first of them."""

    base_offset: int
    old_base_offsets: list[int]


@dataclass(slots=True)
class CompactionStats:
    """What a pass did."""

    end_offset: int = 0
    """The first offset not cleaned: the next pass begins there."""
    bytes_read: int = 0
    bytes_written: int = 0
    records_read: int = 0
    records_written: int = 0
    records_without_key: int = 0
    batches_emptied: int = 0
    batches_unreadable: int = 0
    """In the dirty part. They stay as they are."""
    first_unreadable: tuple[int, str] | None = None
    """The base offset of the first of them, and why it cannot be read."""
    keys: int = 0
    map_utilization: float = 0.0

    def note_unreadable(self, base_offset: int, reason: str) -> None:
        """Count a batch that cannot be read."""
        self.batches_unreadable += 1
        if self.first_unreadable is None:
            self.first_unreadable = base_offset, reason

    def __str__(self) -> str:
        """For the log: what went in, what came out."""
        text = (
            f"{counted(self.records_read, 'record')} ({sized(self.bytes_read)}) became {self.records_written:,} "
            f"({sized(self.bytes_written)}), with {counted(self.keys, 'key')} in a map that was {self.map_utilization:.0%} full"
        )
        return text + (
            f"; {counted(self.records_without_key, 'record')} without key dropped" if self.records_without_key else ""
        )


# Which old segments become one new segment. Without grouping, compaction would leave more and more small segments.
#
# Neighbours are grouped as long as their current sizes fit into segment.bytes and segment.index.bytes, and the last offset is
# at most 2^31 - 1 above the base offset: an index stores relative offsets as int32.


def group_segments(
    segments: Sequence[SegmentPlan], segment_bytes: int, segment_index_bytes: int, first_uncleanable_offset: int
) -> list[list[SegmentPlan]]:
    """All segments in groups, in order. A segment that is too large by itself is its own group."""
    groups: list[list[SegmentPlan]] = []
    size = offset_index_size = time_index_size = 0
    for number, segment in enumerate(segments):
        following = segments[number + 1].base_offset if number + 1 < len(segments) else first_uncleanable_offset
        size += segment.size_bytes
        offset_index_size += segment.offset_index_bytes
        time_index_size += segment.time_index_bytes
        fits = (
            bool(groups)
            and size <= segment_bytes
            and offset_index_size <= segment_index_bytes
            and time_index_size <= segment_index_bytes
            and (not segment.size_bytes or following - 1 - groups[-1][0].base_offset <= RELATIVE_OFFSET_MAX)
        )
        if fits:
            groups[-1].append(segment)
        else:
            groups.append([segment])
            size = segment.size_bytes
            offset_index_size, time_index_size = segment.offset_index_bytes, segment.time_index_bytes
    return groups
