"""`RecordReader`: the side of a consumer that takes records out of fetched answers, in the thread or task that reads.

It decodes in the caller's thread and tells the loop when there is room to fetch more. It knows what was handed out: whole
polls, or single records of an iteration. That is what a commit without arguments commits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

from ottla.client.consumer.record import ConsumerRecord
from ottla.client_core.consumer.fetched import Fetched, poisoned
from ottla.client_core.consumer.fetcher import Fetcher
from ottla.client_core.consumer.subscription import Position, Subscription
from ottla.client_core.offsets import OffsetAndMetadata
from ottla.errors import CorruptBatchError, DeserializationError
from ottla.ids import TopicPartition
from ottla.records import kernels
from ottla.records.batch import BatchView
from ottla.records.kernels import Deserializer
from ottla.records.spare_buffers import SpareBuffers

if TYPE_CHECKING:
    from ottla.client.interceptors import ConsumerInterceptors

Records: TypeAlias = "list[ConsumerRecord[Any, Any]]"
"""Records whose keys and values have the types that the deserializers give them: only the faces name these."""
Completion: TypeAlias = "Callable[[ConsumerRecord[Any, Any]], ConsumerRecord[Any, Any] | None]"
"""Turns a record with raw key and value into what a poll would have handed out; None for nothing."""
Batches: TypeAlias = "dict[TopicPartition, Records]"


class Views(NamedTuple):
    """Batches of one partition that are not decoded. The caller's records begin at offset `first`, maybe inside a batch."""

    first: int
    batches: list[BatchView]


class RecordReader:
    """Hands out records, in order for each partition."""

    def __init__(
        self,
        subscription: Subscription,
        fetcher: Fetcher,
        wake: Callable[[], None],
        key_deserializer: Deserializer | None,
        value_deserializer: Deserializer | None,
        now_ms: Callable[[], int] = lambda: 0,
    ) -> None:
        self._subscription = subscription
        self._fetcher = fetcher
        self._wake = wake
        self._key_deserializer = key_deserializer
        self._value_deserializer = value_deserializer
        self._completion: Completion | None = None
        self.interceptors: ConsumerInterceptors | None = None
        self._now_ms = now_ms
        self._measured_version = subscription.version
        self._before: dict[TopicPartition, Position | None] = {}
        """Positions from before the current step, of the partitions that it has moved."""
        self.pending: Records = []
        """Records of an iteration; those from `step` on were not handed out yet."""
        self.step = 0
        """0: the last records were handed out by a poll, not by an iteration."""
        self.is_handed_out = False
        """Whether the caller has got what the current step has taken."""
        self.refills = 0
        """How often the loop was told that there is room to fetch more."""
        self.spare = SpareBuffers()
        """Buffers of columns that were handed out."""

    # Taking

    def hand_out_raw(self) -> Completion:
        """From now on, hand out keys and values as bytes. The returned function does to a record what would have been done."""
        if self._completion is None:
            self._completion = _completion(self._key_deserializer, self._value_deserializer, self.interceptors)
            self._key_deserializer = self._value_deserializer = self.interceptors = None
        return self._completion

    def begin_step(self) -> None:
        """What was handed out until now has been dealt with."""
        self._before.clear()
        self.is_handed_out = False
        if self.step:
            self.pending, self.step = self.pending[self.step :], 0

    def take(self, limit: int) -> Records:
        """Up to `limit` records that are buffered; none if there are none."""
        rest = self.pending[self.step :]
        if rest:
            found = rest[:limit]
            for record in reversed(found):
                self._before[TopicPartition(record.topic, record.partition)] = Position(record.offset)
            self.pending, self.step = rest[limit:], 0
            return found
        self.pending, self.step = [], 0
        records: Records = []
        self._each_ready(lambda fetched: self._take_from(fetched, records, limit))
        return records if self.interceptors is None or not records else self.interceptors.on_consume(records)

    def refill(self, limit: int) -> bool:
        """Take the next records of an iteration. Nothing is handed out yet: False if there are none."""
        self.pending, self.step = self.take(limit), 0
        return bool(self.pending)

    def take_batches(self, limit: int) -> Batches:
        """As `take`, with a list for each partition."""
        batches: Batches = {}
        if self.step < len(self.pending):
            for record in self.take(limit):
                batches.setdefault(TopicPartition(record.topic, record.partition), []).append(record)
            return batches
        taken = 0

        def take(fetched: Fetched) -> bool:
            nonlocal taken
            each = fetched.state.topic_partition
            records = batches.get(each, [])
            count = len(records)
            try:
                is_full = self._take_from(fetched, records, limit - taken + count)
            except (CorruptBatchError, DeserializationError):
                if not batches:
                    raise
                return True
            taken += len(records) - count
            if records:
                batches[each] = records
            return is_full or taken >= limit

        self._each_ready(take)
        if self.interceptors is None or not batches:
            return batches
        found: Batches = {}
        for record in self.interceptors.on_consume([record for records in batches.values() for record in records]):
            found.setdefault(TopicPartition(record.topic, record.partition), []).append(record)
        return found

    def take_views(self) -> dict[TopicPartition, Views]:
        """Everything that is buffered, as batches that are not decoded."""
        found: dict[TopicPartition, Views] = {}

        def take(fetched: Fetched) -> bool:
            self._note(fetched)
            before = fetched.state.consumed_bytes
            try:
                first, views = fetched.take_views()
            except CorruptBatchError:
                if not found:
                    raise
                return True
            if views:
                self._measure(fetched, sum(each.count for each in views), before)
                found.setdefault(fetched.state.topic_partition, Views(first, [])).batches.extend(views)
            return False

        self._each_ready(take)
        return found

    def _each_ready(self, take: Callable[[Fetched], bool]) -> None:
        """Call `take` for the answers in turn, until it returns True. Those of paused partitions stay where they are.

        Answers that come meanwhile are left for the next call: a loop that fetches as fast as this thread reads would never let
        it end.
        """
        ready = self._fetcher.ready
        left = len(ready)
        held: list[Fetched] = []
        try:
            while left > 0 and ready:
                fetched = ready[0]
                if fetched.is_stale:
                    ready.popleft()
                elif fetched.state.is_paused:
                    held.append(ready.popleft())
                else:
                    is_enough = take(fetched)
                    if fetched.is_done:
                        ready.popleft()
                        if fetched.is_last:
                            self.refills += 1
                            self._wake()
                    if is_enough:
                        return
                left -= 1
        finally:
            ready.extendleft(reversed(held))
            self._fetcher.metrics.poll_ended(self._now_ms())

    def _take_from(self, fetched: Fetched, records: Records, limit: int) -> bool:
        self._note(fetched)
        before, count = fetched.state.consumed_bytes, len(records)
        try:
            # The same class at run time; only its name in record.py is generic.
            plain = cast("list[kernels.ConsumerRecord]", records)
            fetched.take(plain, limit - len(records), self._key_deserializer, self._value_deserializer)
        except (CorruptBatchError, DeserializationError):
            if not records:
                raise
            return True  # what is good is handed out first; the next call raises
        finally:
            if len(records) > count:
                self._measure(fetched, len(records) - count, before)
        return len(records) >= limit

    def _measure(self, fetched: Fetched, records: int, bytes_before: int) -> None:
        """Record what was taken, and the lag that is left. As in Kafka, lag is known once a partition was read."""
        state, metrics, now_ms = fetched.state, self._fetcher.metrics, self._now_ms()
        topic, partition = state.topic_partition
        if self._measured_version != self._subscription.version:
            self._measured_version = self._subscription.version
            metrics.keep_only(self._subscription.partitions)
        metrics.consumed(topic, records, state.consumed_bytes - bytes_before, now_ms)
        end = self._fetcher.end_offset(state)
        if state.position is not None and end is not None:
            lead = state.position.offset - (state.log_start_offset or 0)
            metrics.lag_known(topic, partition, max(0, end - state.position.offset), max(0, lead), now_ms, state.preferred_node)

    def _note(self, fetched: Fetched) -> None:
        each = fetched.state.topic_partition
        if each not in self._before:
            self._before[each] = fetched.state.position

    # Positions

    @property
    def has_step(self) -> bool:
        """Whether the current step has taken anything that the caller has not got."""
        return bool(self._before) and not self.is_handed_out

    def undo_step(self) -> None:
        """The caller never got what this step has taken, because it raised or Ctrl-C came: go back to where it began."""
        self._go_back({**self._pending_positions(), **self._before})
        self._before.clear()

    def rewind(self) -> None:
        """Records of an iteration that were not handed out go back: their partitions are fetched again from there."""
        self._go_back(self._pending_positions())

    def _go_back(self, positions: Mapping[TopicPartition, Position | None]) -> None:
        self.pending, self.step = [], 0
        for each, position in positions.items():
            state = self._subscription.partitions.get(each)
            if state is not None and position is not None and state.position != position:
                state.jump(position, is_validated=True)

    def drop_pending(self, partitions: set[TopicPartition] | None = None) -> None:
        """Records of an iteration that must not be handed out any more: those of `partitions`, else all."""
        if partitions is None:
            self._before.clear()
            self.pending, self.step = [], 0
            return
        for each in partitions:
            self._before.pop(each, None)
        # The record that was handed out last stays before the rest: it is not dealt with yet.
        current = self.pending[self.step - 1 : self.step] if self.step else []
        kept = [each for each in current if (each.topic, each.partition) not in partitions]
        rest = [each for each in self.pending[self.step :] if (each.topic, each.partition) not in partitions]
        self.pending, self.step = kept + rest, len(kept)

    def position(self, partition: TopicPartition) -> Position | None:
        """The next offset that the caller gets of a partition."""
        pending = self._pending_positions().get(partition)
        return pending or self._subscription.state(partition).position

    def offsets(self, *, is_step_done: bool = True) -> dict[TopicPartition, OffsetAndMetadata]:
        """What a commit of everything handed out commits; without `is_step_done`, of what was handed out before this step."""
        positions: dict[TopicPartition, Position | None] = {
            each: state.position for each, state in self._subscription.partitions.items()
        }
        positions.update(self._pending_positions())
        if not is_step_done:
            if self.step:
                current = self.pending[self.step - 1]
                positions[TopicPartition(current.topic, current.partition)] = Position(current.offset)
            else:
                positions.update(self._before)
        return _offsets({each: at for each, at in positions.items() if each in self._subscription.partitions})

    def _pending_positions(self) -> dict[TopicPartition, Position]:
        found: dict[TopicPartition, Position] = {}
        for record in reversed(self.pending[self.step :]):
            found[TopicPartition(record.topic, record.partition)] = Position(record.offset)
        return found


def _offsets(positions: Mapping[TopicPartition, Position | None]) -> dict[TopicPartition, OffsetAndMetadata]:
    return {
        each: OffsetAndMetadata(at.offset, "", at.epoch if at.epoch >= 0 else None)
        for each, at in positions.items()
        if at is not None
    }


def _completion(
    key_deserializer: Deserializer | None,
    value_deserializer: Deserializer | None,
    interceptors: ConsumerInterceptors | None,
) -> Completion:
    def read(raw: ConsumerRecord[Any, Any], is_key: bool) -> Any:
        data, deserialize = (raw.key, key_deserializer) if is_key else (raw.value, value_deserializer)
        if data is None or deserialize is None:
            return data
        try:
            return deserialize(raw.topic, raw.headers, data)
        except Exception as problem:
            raise poisoned(cast("kernels.ConsumerRecord", raw), is_key, problem) from problem

    def complete(raw: ConsumerRecord[Any, Any]) -> ConsumerRecord[Any, Any]:
        if key_deserializer is None and value_deserializer is None:
            return raw
        return ConsumerRecord(
            raw.topic,
            raw.partition,
            raw.offset,
            raw.timestamp,
            read(raw, True),
            read(raw, False),
            raw.headers,
            raw.timestamp_type,
            raw.leader_epoch,
        )

    def intercept(raw: ConsumerRecord[Any, Any]) -> ConsumerRecord[Any, Any] | None:
        assert interceptors is not None
        return next(iter(interceptors.on_consume([complete(raw)])), None)

    return complete if interceptors is None else intercept
