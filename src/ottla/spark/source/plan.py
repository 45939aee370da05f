"""Plans: how much a trigger takes, and which range of which partition each task reads. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from pyspark.sql.datasource import InputPartition

from ottla import TopicPartition
from ottla.ids import Uuid
from ottla.spark.source.offsets import Offsets, TopicIds


@dataclass
class OffsetRange(InputPartition):
    """What one task reads: the records of a partition from `first` up to, but without, `end`."""

    partition: TopicPartition
    first: int
    end: int
    topic_id: Uuid | None = None
    """The topic that the offsets belong to, if its id is known."""

    def __len__(self) -> int:
        return self.end - self.first


def split_ranges(
    starts: Offsets,
    ends: Offsets,
    partitions_min: int | None = None,
    records_per_task_max: int | None = None,
    ids: TopicIds | None = None,
) -> list[OffsetRange]:
    """A range for each partition that has records to read; large ones are cut until there are `partitions_min` ranges.

    As in Spark's own source: cuts are in proportion to size, so tasks are of about the same size.
    """
    whole = [
        OffsetRange(each, starts[each], end, (ids or {}).get(each.topic))
        for each, end in sorted(ends.items())
        if end > starts[each]
    ]
    if records_per_task_max is not None:
        whole = [part for each in whole for part in _cut(each, -(-len(each) // records_per_task_max))]
    if partitions_min is None or not whole or len(whole) >= partitions_min:
        return whole
    total = sum(map(len, whole))
    small: list[OffsetRange] = []
    large: list[OffsetRange] = []
    for each in whole:
        (small if round(len(each) / total * partitions_min) <= 1 else large).append(each)
    left, large_total = partitions_min - len(small), sum(map(len, large))
    parts = [part for each in large for part in _cut(each, max(1, round(len(each) / large_total * left)))]
    return sorted([*small, *parts], key=lambda part: (part.partition, part.first))


def _cut(whole: OffsetRange, count: int) -> list[OffsetRange]:
    count = max(1, min(count, len(whole)))
    bounds = [whole.first + len(whole) * number // count for number in range(count + 1)]
    return [OffsetRange(whole.partition, first, end, whole.topic_id) for first, end in pairwise(bounds)]


def limit_offsets(starts: Offsets, ends: Offsets, records_max: int) -> Offsets:
    """Offsets at most `records_max` records behind `starts` in all, shared out in proportion to what each partition has."""
    sizes = {each: max(0, end - starts.get(each, 0)) for each, end in ends.items()}
    total = sum(sizes.values())
    if total <= records_max:
        return ends
    found: Offsets = {}
    for each, size in sizes.items():
        # At least one record where there is any: a small partition beside a huge one must not starve.
        taken = max(records_max * size // total, 1) if size else 0
        found[each] = min(starts.get(each, 0) + taken, ends[each])
    return found


class Delay:
    """Lets a trigger pass while there is too little to read, but not longer than the option says."""

    def __init__(self, records_min: int | None, delay_max_ms: int) -> None:
        self._records_min = records_min
        self._delay_max_ms = delay_max_ms
        self._triggered_ms: float | None = None

    def is_due_later(self, starts: Offsets, ends: Offsets, now_ms: float) -> bool:
        """Whether to read nothing yet. The first batch of a run is never delayed, as in Spark's own source."""
        if self._records_min is None:
            return False
        records = sum(max(0, end - starts.get(each, 0)) for each, end in ends.items())
        is_late = self._triggered_ms is None or now_ms - self._triggered_ms >= self._delay_max_ms
        if records < self._records_min and not is_late:
            return True
        self._triggered_ms = now_ms
        return False
