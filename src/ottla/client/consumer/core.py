"""`ConsumerCore`: what a consumer does on its event loop, for both faces.

The faces call the methods here on the loop, one at a time; only `wakeup` may come at any moment.
"""

from __future__ import annotations

import asyncio
import logging
from builtins import TimeoutError as TimeIsUp
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING

from ottla.client.consumer.group import GroupSide
from ottla.client.consumer.offset_calls import OffsetCalls
from ottla.client.consumer.parts import Parts
from ottla.client.consumer.reader import RecordReader
from ottla.client.consumer.wait import Waiting
from ottla.client.patience import Patience
from ottla.client.world import ClientWorld
from ottla.client_core.consumer.settings import Reset
from ottla.client_core.consumer.subscription import NO_EPOCH, Mode, PartitionState, Position
from ottla.client_core.group.membership import Event, Failed, LeaveOption, Lost, Revoke, ServerRegex, Subscription
from ottla.client_core.metadata import PartitionInfo
from ottla.client_core.offsets import ConsumerGroupMetadata
from ottla.config.client import ConsumerSettings
from ottla.errors import (
    IllegalStateError,
    InvalidGroupIdError,
    KafkaError,
    NoOffsetForPartitionError,
    RebootstrapRequiredError,
    TimeoutError,
)
from ottla.errors.faults import without_frames
from ottla.ids import TopicPartition, Uuid
from ottla.records.kernels import Deserializer

if TYPE_CHECKING:
    from ottla.client.interceptors import ConsumerInterceptors

logger = logging.getLogger("ottla.client")


CLOSE_SESSIONS_S = 1.0
"""How long `close` waits until the brokers have closed the fetch sessions."""
LEAVE_S_MIN = 0.2
"""How long `close` takes at least for the last commit, and to leave the group: others wait for the partitions."""


class ConsumerCore:
    """One consumer on its loop."""

    def __init__(
        self,
        world: ClientWorld,
        settings: ConsumerSettings,
        wake: Callable[[], None] | None,
        deserializers: tuple[Deserializer | None, Deserializer | None],
        interceptors: ConsumerInterceptors | None = None,
    ) -> None:
        """`wake` makes the runner look at its machines, from the thread that reads; None: that thread is the loop's."""
        for notice in settings.notices:
            logger.warning("%s", notice)
        self.settings = settings
        self.parts = parts = Parts(world, settings, self._after_round, self._broken)
        self.subscription = parts.subscription
        self.reader = RecordReader(parts.subscription, parts.fetcher, wake or parts.runner.wake, *deserializers, self.now_ms)
        self.waiting = Waiting(parts.runner.wake, settings.default_api_timeout_ms / 1000, world.clock, self._hold)
        self._patience = Patience(world.clock)
        """Of the polls: short ones in a row are one wait."""
        self._clock = world.clock
        self.offsets = OffsetCalls(settings, parts, self.reader, self.waiting)
        self.reader.interceptors = self.offsets.interceptors = interceptors
        self.group: GroupSide | None = None
        if settings.group_id is not None:
            self.group = GroupSide(settings, parts, world.randomness.below)
            self.offsets.lost = self.group.lost
        is_auto = settings.enable_auto_commit and self.group is not None
        self._auto_commit_s = max(0.001, settings.auto_commit_interval_ms / 1000) if is_auto else 0.0
        """Seconds between automatic commits; 0: there are none."""
        self._next_commit_s = world.clock.monotonic_s() + self._auto_commit_s
        self._warned: set[str] = set()
        self._listener_began_ms = 0

    def _after_round(self) -> None:
        self.offsets.look()
        if self.group is not None:
            self.group.collect()
        self.parts.after_round()
        self.waiting.look()

    def _broken(self, fault: Exception) -> None:
        self.waiting.fault = fault
        self.waiting.look()

    def now_ms(self) -> int:
        """The machines' time."""
        return self.parts.runner.now_ms()

    # Reading

    @property
    def needs_attention(self) -> bool:
        """Whether a poll has listeners or callbacks to call. May be asked in the thread that reads."""
        return bool(self.offsets.callbacks) or (self.group is not None and bool(self.group.events))

    def polled(self, now_ms: int) -> None:
        """A poll has begun. May be called in the thread that reads."""
        self.parts.measured.poll_began(now_ms)
        if self.group is not None:
            self.group.polled(now_ms)

    def take_commit_due(self, now_s: float) -> bool:
        """Whether it is time for an automatic commit. The next one is due an interval later. As `polled`, from any thread."""
        if not self._auto_commit_s or now_s < self._next_commit_s:
            return False
        self._next_commit_s = now_s + self._auto_commit_s
        return True

    def _hold(self, *, is_poll: bool = False) -> AbstractContextManager[None]:
        """A call waits: max.poll.interval.ms does not count that time, and starts again after a poll."""
        return nullcontext() if self.group is None else self.group.waiting(is_poll=is_poll)

    @contextmanager
    def _committing(self) -> Iterator[None]:
        """A poll waits: what earlier ones have handed out is committed on time."""
        loop, timer = asyncio.get_running_loop(), None

        def look() -> None:
            nonlocal timer
            now_s, timer = self._clock.monotonic_s(), None
            if self.take_commit_due(now_s):
                offsets = self.reader.offsets()
                self.offsets.commit_automatically(offsets)
                if not self.offsets.changed(offsets):
                    return  # and nothing is handed out while the poll waits
            timer = loop.call_later(max(0.001, self._next_commit_s - now_s), look)

        if self._auto_commit_s:
            look()
        try:
            yield
        finally:
            if timer is not None:
                timer.cancel()

    @property
    def _has_news(self) -> bool:
        fetcher = self.parts.fetcher
        return (
            any(not each.is_stale and not each.state.is_paused for each in fetcher.ready)
            or self._fatal_error is not None
            or self.needs_attention
            or bool(self.subscription.errors())
        )

    @property
    def _fatal_error(self) -> KafkaError | None:
        """Why polls cannot go on."""
        failure = self.parts.metadata.failure
        fencing = None if self.group is None else self.group.fencing
        return self.parts.fetcher.error or fencing or (failure if isinstance(failure, RebootstrapRequiredError) else None)

    def _check(self) -> None:
        """Raise what a poll has to raise."""
        if self.subscription.mode is Mode.NONE:
            raise IllegalStateError("the consumer reads nothing yet: call subscribe() or assign() first")
        if self._fatal_error is not None:
            raise without_frames(self._fatal_error)
        self._raise_errors()
        for topic in {each.topic for each in self.subscription.partitions} | self.subscription.topics:
            self._check_topic(topic)

    def _raise_errors(self) -> None:
        failed = self.subscription.errors()
        if not failed:
            return
        error = failed[0].error
        assert error is not None
        without = [state.topic_partition for state in failed if isinstance(state.error, NoOffsetForPartitionError)]
        if len(without) > 1 and isinstance(error, NoOffsetForPartitionError):
            others = ", ".join(str(each) for each in without[1:])
            raise NoOffsetForPartitionError(f"{error}. The same holds for {others}", partitions=without)
        raise error

    def _check_topic(self, topic: str) -> None:
        error = self.parts.metadata.topic_error(topic)
        if error is None:
            return
        if not error.is_retriable:
            raise error
        if topic not in self._warned:
            self._warned.add(topic)
            logger.warning("%s; the consumer waits for it", error)

    async def wait_for_records(self, timeout_s: float | None, is_over: Callable[[], bool] = lambda: False) -> None:
        """Wait until there is something to read, to call or to raise, or until `is_over`."""
        self._check()
        with self._hold(is_poll=True), self._committing(), self._patience.waiting(self._why_nothing_is_read):
            found = await self.waiting.until(lambda: self._has_news or is_over(), timeout_s)
        if found:
            self._patience.ended()
        if not self.needs_attention:
            self._check()

    def _why_nothing_is_read(self) -> str | None:
        """What keeps the polls from reading; None if there is just nothing new."""
        parts, failure = self.parts, self.parts.metadata.failure
        if self.joined_group is not None and parts.finder is not None and not self.subscription.partitions:
            if not parts.finder.is_ready:
                why = parts.finder.retried_error or failure or "no broker has answered yet"
                return f"poll() waits for the coordinator of group {self.joined_group}: {why}"
            return f"poll() waits for group {self.joined_group} to assign partitions: it rebalances, or has too many members"
        for state in self.subscription.partitions.values():
            topic, partition = state.topic_partition
            if parts.metadata.leader(topic, partition) is None:
                why = parts.metadata.topic_error(topic) or failure or "its leader is not known"
                return f"poll() waits for {state.topic_partition}: {why}"
            if state.position is None:
                why = (parts.finder and parts.finder.retried_error) or failure or "no broker has answered yet"
                return f"poll() waits for the position in {state.topic_partition}: {why}"
        return None if failure is None else f"poll() waits for a broker: {failure}"

    # Which partitions

    def assign(self, partitions: Collection[TopicPartition]) -> None:
        """Read exactly these partitions."""
        before = {each.topic for each in self.subscription.partitions}
        gone = set(self.subscription.partitions) - set(partitions)
        self.subscription.assign(partitions)
        for state in self.subscription.partitions.values():
            state.end_range()
        self.reader.drop_pending(gone)
        wanted = {each.topic for each in partitions}
        self.parts.metadata.want(wanted)
        self.parts.metadata.unwant(before - wanted)
        self.parts.runner.wake()

    def subscribe(self, subscription: Subscription) -> None:
        """Read what the group assigns of these topics."""
        if self.group is None:
            raise InvalidGroupIdError("subscribe() needs a group: give the consumer a group_id, or assign() partitions")
        names = frozenset() if hasattr(subscription, "pattern") or isinstance(subscription, ServerRegex) else subscription
        self.subscription.subscribe(names)
        self.group.subscribe(subscription, self.now_ms())
        self.parts.runner.wake()

    def start_unsubscribe(self) -> bool:
        """Begin to give everything up. True: the group has to be left first, which ends with the event `Left`."""
        return self.group is not None and self.subscription.mode is Mode.SUBSCRIBED and self.group.unsubscribe(self.now_ms())

    def finish_unsubscribe(self) -> None:
        """Read nothing."""
        before = {each.topic for each in self.subscription.partitions}
        was_assigned = self.subscription.mode is Mode.ASSIGNED
        self.subscription.unsubscribe()
        self.reader.drop_pending()
        if was_assigned:
            self.parts.metadata.unwant(before)
        if self.group is not None:
            self.group.left()
        self.parts.runner.wake()

    def pause(self, partitions: Iterable[TopicPartition], is_paused: bool) -> None:
        """Stop or go on handing out records of partitions that stay assigned."""
        states = [self.subscription.state(each) for each in partitions]
        if is_paused:
            self.reader.rewind()
        for state in states:
            state.is_paused = is_paused
        self.parts.runner.wake()

    def subscribed_topics(self) -> set[str]:
        """The topics that are subscribed to; of a pattern, those that match now."""
        if self.group is None or self.subscription.mode is not Mode.SUBSCRIBED:
            return set()
        return set(self.group.subscribed_topics)

    def group_metadata(self) -> ConsumerGroupMetadata:
        """Who this consumer is in its group."""
        if self.group is None:
            raise InvalidGroupIdError("group_metadata() needs a group: give the consumer a group_id")
        return self.group.metadata

    def rejoin(self, reason: str) -> None:
        """Ask the group for a rebalance."""
        if self.group is None or self.subscription.mode is not Mode.SUBSCRIBED:
            raise IllegalStateError("enforce_rebalance() needs a subscription: call subscribe() first")
        self.group.rejoin(reason, self.now_ms())
        self.parts.runner.wake()

    # Events of the group

    def next_event(self) -> Event | None:
        """The oldest event that was not handled. It stays until it is: Ctrl-C or a cancelled poll must not lose it."""
        return self.group.events[0] if self.group is not None and self.group.events else None

    async def begin_event(self, event: Event) -> None:
        """Before the listener. Automatic commits commit what was handed out of partitions that are given up."""
        assert self.group is not None
        if isinstance(event, Lost):
            self.reader.drop_pending(set(event.partitions))
        if isinstance(event, Failed):
            self.group.handled(event)  # it is raised once
        self.group.begin(event)
        if isinstance(event, Revoke) and self._auto_commit_s:
            offsets = self.reader.offsets()
            chosen = {each: value for each, value in offsets.items() if each in event.partitions}
            with self._hold(is_poll=True):
                await self.offsets.commit_last(chosen, self.waiting.limit_s(None))
        self._listener_began_ms = self.now_ms()

    def finish_event(self, event: Event) -> None:
        """After the listener."""
        assert self.group is not None
        self.group.handled(event)
        if isinstance(event, Revoke):
            self.reader.drop_pending(set(event.partitions))
        self.group.measure(event, self._listener_began_ms, self.now_ms())
        self.group.finish(event, self.now_ms())

    async def wait_for_event(self, timeout_s: float) -> bool:
        """Wait for an event; False if none came."""
        with Patience(self._clock).waiting(self._why_not_left):
            return await self.waiting.until(lambda: self.group is None or bool(self.group.events), timeout_s)

    def _why_not_left(self) -> str:
        finder = self.parts.finder
        why = (finder and finder.retried_error) or self.parts.metadata.failure
        return f"the consumer waits until it has left group {self.settings.group_id}{'' if why is None else f': {why}'}"

    # Where in the partitions

    def seek(self, partition: TopicPartition, offset: int, epoch: int | None = None) -> None:
        """Go on at `offset`."""
        state = self.subscription.state(partition)
        self.reader.drop_pending({partition})
        state.jump(Position(offset, NO_EPOCH if epoch is None else epoch))
        self.parts.runner.wake()

    def seek_by(self, partitions: Collection[TopicPartition], reset: Reset) -> None:
        """Go on at the beginning, the end or a time; which offset that is, the next poll or `position` finds out."""
        chosen = list(partitions) or list(self.subscription.partitions)
        states = [self.subscription.state(each) for each in chosen]
        self.reader.drop_pending(set(chosen))
        for state in states:
            state.start_reset(reset)
        self.parts.runner.wake()

    async def positions(self, partitions: Collection[TopicPartition], timeout_s: float | None) -> dict[TopicPartition, int]:
        """The offsets of the next records that the caller gets."""
        states, metadata = [self.subscription.state(each) for each in partitions], self.parts.metadata

        def missing() -> Iterator[PartitionState]:
            return (state for state in states if state.position is None and state.error is None)

        def why() -> KafkaError | None:
            first = next(missing(), None)
            return (None if first is None else metadata.topic_error(first.topic_partition.topic)) or metadata.failure

        listed = ", ".join(map(str, partitions))
        what = f"the position in {listed} was not found" if len(states) == 1 else f"the positions in {listed} were not found"
        await self.waiting.done(lambda: next(missing(), None) is None, timeout_s, what, why)
        found: dict[TopicPartition, int] = {}
        for state in states:
            position = self.reader.position(state.topic_partition)
            if position is None:
                assert state.error is not None
                raise state.error
            found[state.topic_partition] = position.offset
        return found

    def lag(self, partition: TopicPartition) -> int | None:
        """How many offsets lie between the position and the end, as the last answer told; None if that is not known yet."""
        state = self.subscription.state(partition)
        position = self.reader.position(partition)
        end = self.parts.fetcher.end_offset(state)
        return None if position is None or end is None else max(0, end - position.offset)

    # The cluster

    async def partitions_for(self, topic: str, timeout_s: float | None) -> list[PartitionInfo]:
        """The partitions of a topic."""
        limit_s = self.waiting.limit_s(timeout_s)
        try:
            with self._hold():
                async with asyncio.timeout(limit_s):
                    found = await self.parts.cluster.topic(topic)
        except TimeIsUp:
            raise TimeoutError(
                f"the partitions of topic {topic} were not found within {limit_s:g} s: check the name and the brokers"
            ) from None
        return [
            PartitionInfo(
                each.partition_index,
                each.leader_id,
                each.leader_epoch,
                tuple(each.replica_nodes),
                tuple(each.isr_nodes),
                tuple(each.offline_replicas),
            )
            for each in sorted(found.partitions, key=lambda each: each.partition_index)
        ]

    async def list_topics(self, timeout_s: float | None) -> dict[str, int]:
        """Every topic that this client may see, with its number of partitions."""
        limit_s = self.waiting.limit_s(timeout_s)
        try:
            with self._hold():
                async with asyncio.timeout(limit_s):
                    return {name: len(topic.partitions) for name, topic in (await self.parts.cluster.topics()).items()}
        except TimeIsUp:
            raise TimeoutError(
                f"the topics were not listed within {limit_s:g} s: check that the brokers can be reached"
            ) from None

    async def client_instance_id(self, timeout_s: float | None) -> Uuid:
        """The id by which the cluster knows this client's metrics."""
        with self._hold():
            return await self.parts.metrics.client_instance_id(self.parts.runner, self.waiting.limit_s(timeout_s))

    # The end

    async def start_close(self, timeout_s: float, option: LeaveOption, *, is_step_done: bool) -> bool:
        """Commit, if automatic commits are on, and begin to leave. True: that ends with the event `Left`.

        Without `is_step_done`, what the last step handed out may not have been dealt with.
        """
        self.waiting.refuse_wakeups()
        offsets = self.offsets.at_close(is_step_done) if self._auto_commit_s else None
        self._auto_commit_s = 0.0  # a revocation must not commit again, nor a step that failed
        with self._hold():
            await self.offsets.commit_last(offsets, max(LEAVE_S_MIN, timeout_s))
            await self.parts.push_last(timeout_s)
            await self._close_sessions(timeout_s)
        if self.group is None or self.subscription.mode is not Mode.SUBSCRIBED or self.waiting.fault is not None:
            return False
        return self.group.leave(self.now_ms(), option)

    async def _close_sessions(self, timeout_s: float) -> None:
        """Let the brokers forget the fetch sessions, but do not wait for long: brokers also drop old sessions by themselves."""
        if self.waiting.fault is None:
            fetcher = self.parts.fetcher
            fetcher.close()
            await self.waiting.until(lambda: fetcher.is_closed, min(timeout_s, CLOSE_SESSIONS_S))

    @property
    def joined_group(self) -> str | None:
        """The group that the consumer is a member of."""
        return self.settings.group_id if self.subscription.mode is Mode.SUBSCRIBED else None

    def finish_close(self) -> None:
        """Send nothing more and end the connections."""
        self.parts.close()
