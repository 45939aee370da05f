"""`GroupSide`: connects a consumer to its membership: events in, positions and commits out.

The membership's events wait here until a poll (or close, or unsubscribe) handles them, because the listener runs where the
caller is: `begin` prepares for the listener, `finish` completes the event after it.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ottla.client.consumer.parts import Parts
from ottla.client_core.consumer.subscription import Mode
from ottla.client_core.group.assignors import Assignor, RangeAssignor, RoundRobinAssignor
from ottla.client_core.group.classic_member import ClassicMember
from ottla.client_core.group.membership import (
    Assign,
    Event,
    Failed,
    LeaveOption,
    Left,
    Lost,
    Membership,
    Revoke,
    Subscription,
)
from ottla.client_core.group.sticky import CooperativeStickyAssignor, StickyAssignor
from ottla.client_core.machine import Channel, Request
from ottla.client_core.offsets import ConsumerGroupMetadata
from ottla.config.client import ConsumerSettings, load
from ottla.errors import ConfigError, FencedInstanceIdError, KafkaError
from ottla.ids import TopicPartition

logger = logging.getLogger("ottla.client")


class PolledMember:
    """A membership that learns of polls before each of its steps.

    Polls that find records buffered do not touch the loop; they only note their time in `polled_ms`. While a call waits
    (`wait_begins` to `wait_ended`), max.poll.interval.ms stands still: the program does not have its turn. After a poll it
    starts from zero. After other calls, such as commit, it goes on: they take part in no rebalance.
    """

    def __init__(self, member: Membership) -> None:
        self.member = member
        self.polled_ms: int | None = None
        self._told_ms: int | None = None
        self._counted_from_ms = 0
        self._used_ms: int | None = None
        """While a call waits: how much of max.poll.interval.ms was used up before."""

    def wait_begins(self, now_ms: int, *, is_poll: bool) -> bool:
        """A call of the program waits from now on. False: it is part of one that waits already."""
        if self._used_ms is not None:
            return False
        if is_poll:
            self.polled_ms = now_ms
        self._take_poll(is_new=is_poll)
        self._used_ms = now_ms - self._counted_from_ms
        return True

    def wait_ended(self, now_ms: int) -> None:
        """The program has its turn again."""
        self._hold(now_ms)
        self._used_ms = None

    def step(self, now_ms: int) -> list[Request]:
        self._take_poll()
        self._hold(now_ms)
        return self.member.step(now_ms)

    def _take_poll(self, *, is_new: bool = False) -> None:
        polled_ms = self.polled_ms
        if polled_ms is not None and (is_new or polled_ms != self._told_ms):
            self._told_ms = self._counted_from_ms = polled_ms
            self.member.polled(polled_ms)

    def _hold(self, now_ms: int) -> None:
        if self._used_ms is not None:
            self._counted_from_ms = now_ms - self._used_ms
            self.member.polling(self._counted_from_ms)

    def answered(self, request: Request, response: Any, version: int, now_ms: int) -> None:
        self.member.answered(request, response, version, now_ms)

    def failed(self, request: Request, error: KafkaError, now_ms: int) -> None:
        self.member.failed(request, error, now_ms)

    def next_deadline_ms(self) -> int | None:
        return self.member.next_deadline_ms()


class GroupSide:
    """The membership of one consumer."""

    def __init__(self, settings: ConsumerSettings, parts: Parts, random_below: Callable[[int], int]) -> None:
        assert parts.finder is not None
        self._settings = settings
        self._parts = parts
        self._member = _make_member(settings, parts, random_below)
        self._machine = PolledMember(self._member)
        self._is_running = False
        self._is_leaving = False
        self._rebalance_began_ms: int | None = None
        self.fencing: FencedInstanceIdError | None = None
        """Another consumer has this group.instance.id: every poll raises it, until `subscribe`."""
        self.events: deque[Event] = deque()
        """What a poll has to handle."""

    # What the consumer does

    def subscribe(self, subscription: Subscription, now_ms: int) -> None:
        """Become a member, or change the subscription."""
        self._member.subscribe(subscription, now_ms)
        self.fencing = None
        self._rebalance_began_ms = now_ms
        commits, committed = self._parts.commits, self._parts.committed
        assert commits is not None
        assert committed is not None
        commits.member = self._member
        committed.free_channel = lambda: self._member.free_channel
        if self._settings.group_protocol == "consumer":
            committed.member = self._member
        if not self._is_running:
            self._is_running = True
            self._parts.runner.add(self._machine)

    def polled(self, now_ms: int) -> None:
        """A poll has begun. May be called in the thread that reads."""
        self._machine.polled_ms = now_ms

    @contextmanager
    def waiting(self, *, is_poll: bool = False) -> Iterator[None]:
        """A call of the program waits: that counts as polling, or, if it takes part in no rebalance, not at all."""
        is_outermost = self._machine.wait_begins(self._parts.runner.now_ms(), is_poll=is_poll)
        try:
            yield
        finally:
            if is_outermost:
                self._machine.wait_ended(self._parts.runner.now_ms())

    def unsubscribe(self, now_ms: int) -> bool:
        """Give up everything. True: `Left` tells when that is done."""
        if self._is_running:
            self._member.unsubscribe(now_ms)
        return self._is_running

    def leave(self, now_ms: int, option: LeaveOption) -> bool:
        """Leave, because the consumer closes. True: `Left` tells when that is done."""
        if self._is_running:
            self._is_leaving = True
            self._member.leave(now_ms, option)
        return self._is_running

    def left(self) -> None:
        """No longer commit as a member."""
        commits, committed = self._parts.commits, self._parts.committed
        assert commits is not None
        assert committed is not None
        commits.member = committed.member = self.fencing = None
        committed.free_channel = lambda: Channel.GROUP
        if self._is_running:
            self._is_running = False
            self._parts.runner.remove(self._machine)
        self.events.clear()

    def rejoin(self, reason: str, now_ms: int) -> None:
        """Ask for a rebalance."""
        self._member.rejoin(reason, now_ms)

    @property
    def metadata(self) -> ConsumerGroupMetadata:
        """Who this consumer is in its group."""
        member = self._member
        if not self._is_running:
            return ConsumerGroupMetadata(member.group_id, group_instance_id=member.group_instance_id)
        return ConsumerGroupMetadata(member.group_id, member.generation_or_epoch, member.member_id, member.group_instance_id)

    @property
    def subscribed_topics(self) -> frozenset[str]:
        """The topics that the subscription stands for now."""
        return self._member.subscribed_topics

    # Events

    def collect(self) -> None:
        """Take over what the membership has to say."""
        for event in self._member.take_events():
            if isinstance(event, Lost):
                # It cancels what was not handled yet.
                self.events = deque(each for each in self.events if not isinstance(each, Revoke | Assign))
            if self._rebalance_began_ms is None and isinstance(event, Revoke | Lost | Assign):
                self._rebalance_began_ms = self._parts.runner.now_ms()
            self.events.append(event)
        if self._is_running and self._member.member_id:
            self._parts.metrics.resource["group_member_id"] = self._member.member_id

    def lost(self) -> dict[TopicPartition, str]:
        """The partitions that are gone while the program has not heard of it, and why."""
        self.collect()
        return {each: event.reason for event in self.events if isinstance(event, Lost) for each in event.partitions}

    def handled(self, event: Event) -> None:
        """An event needs nothing more. A loss may have cancelled it since."""
        if self.events and self.events[0] is event:
            self.events.popleft()

    def measure(self, event: Event, began_ms: int, now_ms: int) -> None:
        """After the listener, which was called at `began_ms`. A rebalance lasts from its first event to its assignment."""
        metrics = self._parts.measured_group
        assert metrics is not None
        if isinstance(event, Assign):
            metrics.listener_returned("assigned", now_ms - began_ms, now_ms)
            metrics.rebalanced(now_ms - (began_ms if self._rebalance_began_ms is None else self._rebalance_began_ms), now_ms)
            self._rebalance_began_ms = None
        elif isinstance(event, Revoke):
            metrics.listener_returned("revoked", now_ms - began_ms, now_ms)
        elif isinstance(event, Lost):
            metrics.listener_returned("lost", now_ms - began_ms, now_ms)
            metrics.rebalance_failed(now_ms)

    def begin(self, event: Event) -> None:
        """Before the listener: what was assigned is the consumer's, what was lost no longer."""
        subscription = self._parts.subscription
        if subscription.mode is not Mode.SUBSCRIBED:
            return
        current = set(subscription.partitions)
        if isinstance(event, Assign):
            logger.info("group %s: assigned %s", self._member.group_id, _listed(event.partitions))
            subscription.set_partitions(sorted(event.partitions))
        elif isinstance(event, Lost):
            logger.warning("group %s: lost %s: %s", self._member.group_id, _listed(event.partitions), event.reason)
            subscription.set_partitions(sorted(current - event.partitions))
        elif isinstance(event, Revoke):
            logger.info("group %s: gives up %s", self._member.group_id, _listed(event.partitions))
        elif isinstance(event, Left):
            logger.info("group %s: left: %s", self._member.group_id, event.reason)
        elif isinstance(event, Failed):
            if self._is_leaving:
                logger.warning("group %s: the member had failed before it left: %s", self._member.group_id, event.error)
            else:
                self.fencing = event.error if isinstance(event.error, FencedInstanceIdError) else None
                raise event.error

    def finish(self, event: Event, now_ms: int) -> None:
        """After the listener."""
        subscription = self._parts.subscription
        if isinstance(event, Revoke):
            if subscription.mode is Mode.SUBSCRIBED:
                subscription.set_partitions(sorted(set(subscription.partitions) - event.partitions))
            self._member.revoked(now_ms)
        elif isinstance(event, Assign):
            self._member.assignment_taken(now_ms)
        self.polled(now_ms)  # the listener has returned, and the poll goes on
        self._parts.runner.wake()


def _make_member(settings: ConsumerSettings, parts: Parts, random_below: Callable[[int], int]) -> Membership:
    assert parts.finder is not None
    if settings.group_protocol == "consumer":
        from ottla.client_core.group.consumer_member import ConsumerMember

        return ConsumerMember(settings, parts.metadata, parts.finder, random_below)
    return ClassicMember(settings, assignors_of(settings), parts.metadata, parts.finder, random_below)


def assignors_of(settings: ConsumerSettings) -> list[Assignor]:
    """The assignors that partition.assignment.strategy names, made for one consumer."""
    ours = {each.name: each for each in (RangeAssignor, RoundRobinAssignor, StickyAssignor, CooperativeStickyAssignor)}
    setting = "partition.assignment.strategy"
    found: list[Assignor] = []
    for given in settings.partition_assignment_strategy:
        chosen = ours[given] if isinstance(given, str) else load(setting, given)
        made = chosen() if isinstance(chosen, type) else chosen
        if not isinstance(made, Assignor):
            raise ConfigError(f"{setting}: {given!r} is no subclass of Assignor")
        found.append(made)
    return found


def _listed(partitions: frozenset[TopicPartition]) -> str:
    return ", ".join(str(each) for each in sorted(partitions)) or "nothing"
