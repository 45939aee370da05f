"""`StreamReader`: reads topics batch by batch. Spark keeps the offsets in the query's checkpoint.

Spark writes the end of a batch into the checkpoint before the batch runs, but not the start of the first batch: it asks
`initialOffset` again when that batch is planned, and once more if the query is restarted before the batch is done. Where the
answer would be another one then (latest, a group's offsets), the first batch is left empty. Its end, which is in the
checkpoint, is where the stream starts.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, ReadMinRows, SupportsTriggerAvailableNow

from ottla import TopicPartition
from ottla.ids import Uuid
from ottla.spark.errors import plain_errors
from ottla.spark.source import lookup
from ottla.spark.source.columns import checked_names
from ottla.spark.source.limits import Delay, limit_offsets
from ottla.spark.source.loss import DataLoss
from ottla.spark.source.offsets import Offsets, from_json, to_json
from ottla.spark.source.options import SourceOptions
from ottla.spark.source.plan import OffsetRange, split_ranges
from ottla.spark.source.reading import read_range
from ottla.spark.source.topics import find_partitions

Json = dict[str, dict[str, int]]


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a stream."""

    def __init__(self, options: SourceOptions, schema: Any) -> None:
        self._options = options
        self._names = checked_names(schema)
        self._loss = DataLoss(options.fail_on_data_loss)
        self._delay = Delay(options.offsets_per_trigger_min, options.trigger_delay_max_ms)
        self._initial: Offsets | None = None
        self._is_first_empty = False
        self._is_available_now = False
        self._last: Offsets | None = None
        """Where trigger(availableNow=True) ends."""
        self._latest: Offsets = {}
        """The ends of the partitions when the last batch was planned."""
        self._topic_ids: dict[str, Uuid] = {}
        self._restarted: Offsets = {}
        """Partitions of topics that were deleted and created again, and the positions in the old ones."""

    def initialOffset(self) -> Json:
        """Where a new query starts."""
        with plain_errors():
            if self._initial is None:
                self._initial = self._starts()
                self._is_first_empty = not self._options.starting.is_repeatable
            return to_json(self._initial)

    def prepareForTriggerAvailableNow(self) -> None:
        """The query ends where the partitions end when its first batch is planned."""
        self._is_available_now = True

    def getDefaultReadLimit(self) -> Any:
        """`maxOffsetsPerTrigger` or `minOffsetsPerTrigger`, if given. Spark replaces it by "all" for trigger(once=True)."""
        if self._options.offsets_per_trigger_max is not None:
            return ReadMaxRows(self._options.offsets_per_trigger_max)
        if self._options.offsets_per_trigger_min is not None:
            return ReadMinRows(self._options.offsets_per_trigger_min)
        return ReadAllAvailable()

    def latestOffset(self, start: Json, limit: Any) -> Json:
        """Where the next batch ends."""
        with plain_errors():
            starts = from_json(start)
            # After its first batch a new topic can reach the old position by itself: it must not be read again then.
            self._restarted = {each: old for each, old in self._restarted.items() if starts.get(each) == old}
            if self._is_first_empty and starts == self._initial:
                self._is_first_empty = False
                return start
            ends = self._ends(starts)
            if isinstance(limit, ReadAllAvailable):
                return to_json(self._moved(ends, ends))
            begins = self._begins(starts, ends)
            if not self._is_available_now and self._delay.is_due_later(begins, ends, time.monotonic() * 1000):
                return start
            most = self._options.offsets_per_trigger_max
            return to_json(self._moved(ends if most is None else limit_offsets(begins, ends, most), ends))

    def reportLatestOffset(self) -> Json:
        """The ends of the partitions, for the query's progress."""
        return to_json(self._latest)

    def partitions(self, start: Json, end: Json) -> Sequence[OffsetRange]:
        """The ranges of a batch, one for each task."""
        with plain_errors():
            self._is_first_empty = False
            starts, ends = from_json(start), from_json(end)
            if ends.keys() - self._latest.keys():  # another process has planned this batch
                there = set(find_partitions(self._options, must_exist=False).partitions)
                self._loss.gone_partitions(ends.keys() - there)
                ends = {each: offset for each, offset in ends.items() if each in there}
            firsts = lookup.first_offsets(self._options, [each for each in ends if starts.get(each) != ends[each]])
            begins = {each: self._begin(each, starts, ends[each], first) for each, first in firsts.items()}
            bounds = {each: ends[each] for each in begins}
            return split_ranges(begins, bounds, self._options.partitions_min, self._options.records_per_task_max)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The records of one range."""
        return read_range(self._options, partition, self._names)

    # Offsets

    def _starts(self) -> Offsets:
        options = self._options
        found = find_partitions(options)
        self._topic_ids = found.topic_ids
        starts = lookup.find_offsets(options, options.starting, found.partitions)
        if options.starting.offsets is None and options.starting.group is None:
            return starts
        starts = self._loss.starts(starts, lookup.first_offsets(options, found.partitions))
        for each, end in lookup.end_offsets(options, found.partitions).items():
            if starts[each] > end:
                self._loss.tell(f"{options.starting.option} is {starts[each]} for {each}, which ends at offset {end}")
                starts[each] = end
        return starts

    def _ends(self, starts: Offsets) -> Offsets:
        """Where the partitions end now; of an AvailableNow query, where they ended at first."""
        if self._last is not None:
            return self._last
        found = find_partitions(self._options, must_exist=False)
        self._loss.gone_partitions(starts.keys() - set(found.partitions))
        old_ids, self._topic_ids = self._topic_ids, found.topic_ids
        same = {
            each
            for each in found.partitions
            if old_ids.get(each.topic, found.topic_ids[each.topic]) == found.topic_ids[each.topic]
        }
        ends = self._settled_ends(found.partitions, {each: starts[each] for each in same if each in starts})
        for each, position in starts.items():
            if each in ends and (ends[each] < position or each not in same) and position > 0:
                self._loss.recreated(each, position, ends[each])
                self._restarted[each] = position
        self._latest = ends
        if self._is_available_now:
            self._last = ends
        return ends

    def _settled_ends(self, partitions: list[TopicPartition], starts: Offsets) -> Offsets:
        """The ends. Asked again while one lies before its start: after an election a leader learns its end a moment later."""
        for attempt in range(self._options.lookup_attempts):
            if attempt:
                time.sleep(self._options.lookup_interval_ms / 1000)
            ends = lookup.end_offsets(self._options, partitions)
            if all(ends[each] >= start for each, start in starts.items()):
                break
        return ends

    def _begins(self, starts: Offsets, ends: Offsets) -> Offsets:
        """Where reading goes on: at the first offset in partitions that are new, or were made again."""
        fresh = [each for each, end in ends.items() if self._is_fresh(each, starts, end)]
        return {**starts, **lookup.first_offsets(self._options, fresh)}

    def _moved(self, chosen: Offsets, ends: Offsets) -> Offsets:
        """The chosen ends, but not at the old position of a topic that was made again: Spark would see nothing new there."""
        still = [each for each, old in self._restarted.items() if chosen.get(each) == old]
        found = dict(chosen)
        for each, first in lookup.first_offsets(self._options, still).items():
            end = chosen[each]
            found[each] = end - 1 if first < end - 1 else min(end + 1, ends[each])
        return found

    def _is_fresh(self, each: TopicPartition, starts: Offsets, end: int) -> bool:
        return each not in starts or starts[each] > end or self._restarted.get(each) == starts[each]

    def _begin(self, each: TopicPartition, starts: Offsets, end: int, first: int) -> int:
        """Where to begin in a partition that ends at `end` and whose first record has offset `first`."""
        begin = starts.get(each)
        if begin is None:
            self._loss.new_partition(each, first)
            return min(first, end)
        if starts == self._initial and begin > end:
            return end  # the first batch was planned before this process looked for the start
        if self._is_fresh(each, starts, end):
            if each not in self._restarted:
                self._loss.recreated(each, begin, end)
            return min(first, end)
        return min(self._loss.starts({each: begin}, {each: first})[each], end)
