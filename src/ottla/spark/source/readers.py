"""The readers that Spark calls: `BatchReader` between two sets of offsets, `StreamReader` batch by batch, tasks range by range.

Spark keeps a stream's offsets in the query's checkpoint. It writes the end of a batch there before the batch runs, but not the
start of the first batch: it asks `initialOffset` again when that batch is planned, and once more if the query is restarted
before the batch is done. Where the answer would be another one then (latest, a group's offsets), the first batch is left
empty. Its end, which is in the checkpoint, is where the stream starts.

The checkpoint holds the ids of the topics beside the offsets (`offsets.py`). A position under another id belongs to a topic
that was deleted and created again: the new one is read from its start. Under the same id a partition that ends before the
position has lost records: it is read on from its end, as in Spark's own source. Without an id in the checkpoint, such a
partition is taken for one of a new topic: some records may be read twice, and none is left out.

A task's consumer fetches the next answer while Spark takes the last one, and nothing beyond the end of the range. A task that
is cancelled or fails closes its consumer."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, ReadMinRows, SupportsTriggerAvailableNow

from ottla import TopicPartition
from ottla.errors import OffsetOutOfRangeError, TimeoutError, UnknownTopicIdError, UnknownTopicOrPartitionError
from ottla.spark import clients
from ottla.spark.errors import SourceError, SparkOptionError, plain_errors
from ottla.spark.source import lookup
from ottla.spark.source.columns import checked_names, record_batches
from ottla.spark.source.lookup import find_partitions, settled_partitions
from ottla.spark.source.offsets import Offsets, TopicIds, from_json, ids_from_json, is_replaced, to_json
from ottla.spark.source.options import SourceOptions
from ottla.spark.source.plan import DataLoss, Delay, OffsetRange, aged_out, cut_short, limit_offsets, made_again, split_ranges

if TYPE_CHECKING:
    from ottla.spark.registry.reading import Decoding

logger = logging.getLogger("ottla.spark")

LOOK_AROUND_S = 10.0
"""When nothing came for this long, look whether the topic and its records are still there."""
LOST = (OffsetOutOfRangeError, UnknownTopicIdError, UnknownTopicOrPartitionError)


def _decoding(options: SourceOptions, schema: Any) -> Decoding | None:
    """How keys and values are decoded, by the schemas of a registry; None if they are binary."""
    if not options.registry.sides:
        return None
    from ottla.spark.registry.reading import decoding_of

    return decoding_of(options.registry, options.named_topics, schema)


def _decoded_names(options: SourceOptions) -> list[str]:
    return [each.side for each in options.registry.sides]


def read_decoded(
    options: SourceOptions, wanted: InputPartition, names: Sequence[str], decoding: Decoding | None
) -> Iterator[Any]:
    """The records of a range as Arrow record batches, with decoded keys and values where that is asked for."""
    if decoding is None or not isinstance(wanted, OffsetRange):
        yield from read_range(options, wanted, names)
        return
    with plain_errors():
        for batch in read_range(options, wanted, decoding.read_names):
            yield decoding.applied(wanted.partition, batch)


def read_range(options: SourceOptions, wanted: InputPartition, names: Sequence[str]) -> Iterator[Any]:
    """The records of a range as Arrow record batches."""
    if not isinstance(wanted, OffsetRange):
        return  # Spark makes an empty partition of its own for a plan without any
    each, begin, end = wanted.partition, wanted.first, wanted.end
    came_s = time.monotonic()
    with plain_errors():
        while begin < end:
            try:
                with clients.consumer(options.client) as consumer:
                    limit_s = min(LOOK_AROUND_S, options.poll_timeout_ms / 1000)
                    for _, views in consumer.read_ranges({each: (begin, end)}, form="views", timeout=limit_s):
                        yield from record_batches(each, views, end, names)
                        begin = max(begin, views.batches[-1].next_offset)
                        came_s = time.monotonic()
                return
            except (*LOST, TimeoutError) as error:
                begin, end = _what_is_left(options, replace(wanted, first=begin, end=end), error, time.monotonic() - came_s)


def _what_is_left(options: SourceOptions, wanted: OffsetRange, error: Exception, waited_s: float) -> tuple[int, int]:
    """The part of a range that can still be read, after `error`; raises if failOnDataLoss says so."""
    loss, each = DataLoss(options.fail_on_data_loss), wanted.partition
    ids = {} if wanted.topic_id is None else {each.topic: wanted.topic_id}
    found = settled_partitions(options, [each], ids)
    if each not in found.partitions:
        loss.gone_partitions([each])
        return wanted.end, wanted.end
    first = lookup.first_offsets(options, [each])[each]
    last = lookup.settled_ends(options, [each], {each: wanted.end})[each]
    if is_replaced(each.topic, ids, found.topic_ids):
        loss.tell(made_again(each, wanted.first, last))
        return wanted.end, wanted.end  # the new topic is read from its start, in a later batch
    if wanted.first < first:
        loss.tell(aged_out(each, wanted.first, min(first, wanted.end)))
        return min(first, wanted.end), min(last, wanted.end)
    if last < wanted.end or (isinstance(error, UnknownTopicIdError) and not ids):
        loss.tell((cut_short if ids else made_again)(each, wanted.first, last))
        return min(wanted.first, last), min(last, wanted.end)
    if not isinstance(error, (TimeoutError, UnknownTopicIdError)):
        raise SourceError(f"{each} cannot be read from offset {wanted.first} on: {error}") from None
    if waited_s * 1000 >= options.poll_timeout_ms:
        raise SourceError(
            f"offsets {wanted.first} to {wanted.end - 1} of {each} did not come from {options.bootstrap_servers} within "
            f"{options.poll_timeout_ms / 1000:g} s; raise kafkaConsumer.pollTimeoutMs if its brokers are only slow"
        ) from None
    logger.warning("waiting for %s from offset %d on, for %.0f s already: %s", each, wanted.first, waited_s, error)
    if isinstance(error, UnknownTopicIdError):
        time.sleep(options.lookup_interval_ms / 1000)  # a broker that lags: it is not asked again at once
    return wanted.first, wanted.end


class BatchReader(DataSourceReader):
    """Reads a batch."""

    def __init__(self, options: SourceOptions, schema: Any) -> None:
        self._options = options
        self._names = checked_names(schema, _decoded_names(options))
        self._decoding = _decoding(options, schema)

    def partitions(self) -> Sequence[OffsetRange]:
        """The ranges to read, one for each task."""
        with plain_errors():
            return self._plan()

    def _plan(self) -> Sequence[OffsetRange]:
        options, loss = self._options, DataLoss(self._options.fail_on_data_loss)
        there = find_partitions(options)
        found = there.partitions
        if not found:
            raise SourceError(f"no topic at {options.bootstrap_servers} matches subscribePattern {options.pattern!r}")
        starts = lookup.find_offsets(options, options.starting, found)
        ends = lookup.find_offsets(options, options.ending, found)
        for each in found:
            if options.starting.offsets is not None and options.ending.offsets is not None and starts[each] > ends[each]:
                raise SourceError(
                    f"{each} would be read from offset {starts[each]} to {ends[each]}: the end is before the start"
                )
        for each, end in lookup.end_offsets(options, found).items():
            for option, offset in ((options.starting.option, starts[each]), (options.ending.option, ends[each])):
                if offset > end:
                    loss.tell(f"{option} is {offset} for {each}, which ends at offset {end}")
            ends[each] = min(ends[each], end)
            starts[each] = min(starts[each], ends[each])
        # A range without records has none to lose.
        whole = [each for each in found if starts[each] < ends[each]]
        begins = loss.starts({each: starts[each] for each in whole}, lookup.first_offsets(options, whole))
        bounds = {each: ends[each] for each in whole}
        return split_ranges(begins, bounds, options.partitions_min, options.records_per_task_max, there.topic_ids)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The records of one range."""
        return read_decoded(self._options, partition, self._names, self._decoding)


Json = dict[str, dict[str, int]]


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a stream."""

    def __init__(self, options: SourceOptions, schema: Any) -> None:
        self._options = options
        self._names = checked_names(schema, _decoded_names(options))
        self._decoding = _decoding(options, schema)
        self._loss = DataLoss(options.fail_on_data_loss)
        self._delay = Delay(options.offsets_per_trigger_min, options.trigger_delay_max_ms)
        self._initial: Offsets | None = None
        self._initial_ids: TopicIds = {}
        self._is_first_empty = False
        self._is_available_now = False
        self._last: Offsets | None = None
        """Where trigger(availableNow=True) ends."""
        self._latest: Offsets = {}
        """The ends of the partitions when the last batch was planned."""
        self._topic_ids: TopicIds = {}
        """The ids of the topics when the last batch was planned."""

    def initialOffset(self) -> Json:
        """Where a new query starts."""
        with plain_errors():
            if self._initial is None:
                self._initial = self._starts()
                self._is_first_empty = not self._options.starting.is_repeatable
            return to_json(self._initial, self._initial_ids)

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
            starts, ids = from_json(start), ids_from_json(start)
            if self._is_first_empty and starts == self._initial:
                self._is_first_empty = False
                return start
            ends = self._ends(starts, ids)
            if isinstance(limit, ReadAllAvailable):
                return to_json(ends, self._topic_ids)
            begins = self._begins(starts, ids, ends)
            if not self._is_available_now and self._delay.is_due_later(begins, ends, time.monotonic() * 1000):
                return start
            most = self._options.offsets_per_trigger_max
            return to_json(ends if most is None else limit_offsets(begins, ends, most), self._topic_ids)

    def reportLatestOffset(self) -> Json:
        """The ends of the partitions, for the query's progress."""
        return to_json(self._latest)

    def partitions(self, start: Json, end: Json) -> Sequence[OffsetRange]:
        """The ranges of a batch, one for each task."""
        with plain_errors():
            self._is_first_empty = False
            starts, ends = from_json(start), from_json(end)
            before, ids = ids_from_json(start), ids_from_json(end)
            if ends.keys() - self._latest.keys():  # another process has planned this batch
                ends = self._still_there(ends, ids)
            wanted = [each for each in ends if starts.get(each) != ends[each] or is_replaced(each.topic, before, ids)]
            begins = {
                each: self._begin(each, starts, ends[each], first, _is_same(each, before, ids))
                for each, first in lookup.first_offsets(self._options, wanted).items()
            }
            bounds = {each: ends[each] for each in begins}
            return split_ranges(begins, bounds, self._options.partitions_min, self._options.records_per_task_max, ids)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The records of one range."""
        return read_decoded(self._options, partition, self._names, self._decoding)

    # Offsets

    def _starts(self) -> Offsets:
        options = self._options
        found = find_partitions(options)
        self._initial_ids = found.topic_ids
        starts = lookup.find_offsets(options, options.starting, found.partitions)
        if options.starting.offsets is None and options.starting.group is None:
            return starts
        starts = self._loss.starts(starts, lookup.first_offsets(options, found.partitions))
        for each, end in lookup.end_offsets(options, found.partitions).items():
            if starts[each] > end:
                self._loss.tell(f"{options.starting.option} is {starts[each]} for {each}, which ends at offset {end}")
                starts[each] = end
        return starts

    def _ends(self, starts: Offsets, ids: TopicIds) -> Offsets:
        """Where the partitions end now; of an AvailableNow query, where they ended at first."""
        if self._last is not None:
            return self._last
        found = settled_partitions(self._options, starts.keys(), ids)
        there = set(found.partitions)
        self._loss.gone_partitions(starts.keys() - there)
        replaced = {name for name in ids if is_replaced(name, ids, found.topic_ids)}
        old = {each: start for each, start in starts.items() if each in there and each.topic not in replaced}
        ends = lookup.settled_ends(self._options, found.partitions, old)
        for each, position in starts.items():
            if each not in there or not position:
                continue
            if each.topic in replaced or (ends[each] < position and not _is_same(each, ids, found.topic_ids)):
                self._loss.recreated(each, position, ends[each])
            elif ends[each] < position:
                self._loss.cut_off(each, position, ends[each])
        if (bounds := self._options.stream_end) is not None:
            ends = {each: max(starts.get(each, 0), min(ends[each], bounds[each])) for each in ends if each in bounds}
        self._latest, self._topic_ids = ends, found.topic_ids
        if self._is_available_now:
            self._last = ends
        return ends

    def _still_there(self, ends: Offsets, ids: TopicIds) -> Offsets:
        """The ends of a planned batch, without those of topics that are gone or were made again since."""
        found = settled_partitions(self._options, ends.keys(), ids)
        there = set(found.partitions)
        self._loss.gone_partitions(ends.keys() - there)
        replaced = [each for each in ends if each in there and is_replaced(each.topic, ids, found.topic_ids)]
        for each, now in lookup.end_offsets(self._options, replaced).items():
            if ends[each]:
                self._loss.recreated(each, ends[each], now)
        there.difference_update(replaced)
        return {each: offset for each, offset in ends.items() if each in there}

    def _begins(self, starts: Offsets, ids: TopicIds, ends: Offsets) -> Offsets:
        """Where reading goes on: at the first offset in partitions that are new, or were made again."""
        fresh = [
            each
            for each, end in ends.items()
            if each not in starts
            or is_replaced(each.topic, ids, self._topic_ids)
            or (starts[each] > end and not _is_same(each, ids, self._topic_ids))
        ]
        return {**starts, **lookup.first_offsets(self._options, fresh)}

    def _begin(self, each: TopicPartition, starts: Offsets, end: int, first: int, is_same: bool | None) -> int:
        """Where to begin in a partition that ends at `end` and whose first record has offset `first`."""
        begin = starts.get(each)
        if begin is None:
            self._loss.new_partition(each, first)
            return min(first, end)
        if is_same is None and begin > end:
            if starts == self._initial:
                return end  # the first batch was planned before this process looked for the start
            self._loss.recreated(each, begin, end)
            return min(first, end)
        if is_same is False:  # told when the batch was planned
            return min(first, end)
        return min(self._loss.starts({each: begin}, {each: first})[each], end)


class RefusedStream(DataSourceStreamReader):
    """Stands for a stream whose options are wrong: the first call says what is."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def initialOffset(self) -> Json:
        """Raise the reason."""
        with plain_errors():
            raise SparkOptionError(self._reason)

    def latestOffset(self, start: Json | None = None, limit: Any = None) -> Json:
        """Raise the reason: a query with a checkpoint begins here."""
        return self.initialOffset()

    def partitions(self, start: Json, end: Json) -> Sequence[OffsetRange]:
        """Raise the reason: a query that repeats a batch begins here."""
        self.initialOffset()
        return []

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Is never called."""
        return iter(())


def _is_same(each: TopicPartition, before: TopicIds, now: TopicIds) -> bool | None:
    """Whether the topic is the same one; None if an id is not known."""
    if is_replaced(each.topic, before, now):
        return False
    return True if each.topic in before and before[each.topic] == now.get(each.topic) else None
