"""Plans: how much a trigger takes, and which range of which partition each task reads; and what was lost of it. Pure.

Data loss is records that were to be read and are not there. With failOnDataLoss=true it ends the read with a `SourceError`;
with false it is logged and reading goes on with what is there. Records are lost to retention or deletion (the log starts later
than the read), with a topic that was deleted and maybe created again (its id is another one), or to an unclean election (the
log of the same topic ends before the read).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from pyspark.sql.datasource import InputPartition

from ottla import TopicPartition
from ottla.ids import Uuid
from ottla.spark.errors import SourceError
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


logger = logging.getLogger("ottla.spark")

NAMES_SHOWN = 8
REMEDY = "set failOnDataLoss to false to go on with what is there"


class DataLoss:
    """Tells losses, as failOnDataLoss says."""

    def __init__(self, is_fatal: bool) -> None:
        self._is_fatal = is_fatal

    def tell(self, sentence: str) -> None:
        """Raise the loss, or log it."""
        if self._is_fatal:
            raise SourceError(f"{sentence}; {REMEDY}")
        logger.warning("%s; reading goes on with what is there, as failOnDataLoss=false says", sentence)

    def starts(self, starts: Offsets, firsts: Offsets) -> Offsets:
        """`starts`, not before the first offsets that are there."""
        found = dict(starts)
        for each, first in firsts.items():
            if starts[each] < first:
                self.tell(aged_out(each, starts[each], first))
                found[each] = first
        return found

    def gone_partitions(self, gone: Iterable[TopicPartition]) -> None:
        """Partitions that were read before and are not there any more."""
        names = [str(each) for each in sorted(gone)]
        if names:
            more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
            self.tell(
                f"{', '.join(names[:NAMES_SHOWN])}{more} was read before and is gone: its topic was deleted, or the options do "
                "not name it any more"
            )

    def recreated(self, each: TopicPartition, position: int, end: int) -> None:
        """The topic of a partition is another one than the one that was read before."""
        self.tell(made_again(each, position, end))

    def cut_off(self, each: TopicPartition, position: int, end: int) -> None:
        """A partition ends before the position, and its topic is the same."""
        self.tell(cut_short(each, position, end))

    def new_partition(self, each: TopicPartition, first: int) -> None:
        """A partition that was not there before does not start at 0."""
        if first > 0:
            self.tell(f"{each} is new, and {aged_out(each, 0, first)}")


def aged_out(each: TopicPartition, start: int, first: int) -> str:
    """What is missing when a log starts at `first`."""
    return (
        f"the records of {each} from offset {start} to {first - 1} are gone: retention or a deletion removed them before they "
        f"were read, and the first one there has offset {first}"
    )


def made_again(each: TopicPartition, position: int, end: int) -> str:
    """What is missing when a log ends before the position."""
    return (
        f"{each} was read up to offset {position} and now ends at {end}: the topic was deleted and created again, and what the "
        "old one still had is gone"
    )


def cut_short(each: TopicPartition, position: int, end: int) -> str:
    """What is missing when the log of the same topic ends before the position."""
    return (
        f"{each} was read up to offset {position} and now ends at {end}: an unclean election, or a disk that lost what it had "
        f"stored, has removed the records from offset {end} on, and others may take their offsets"
    )
