"""A member of a classic consumer group as a pure machine: the order of a rebalance, and what every error leads to.

`step` looks at the state and does the next thing that is due; calls of the owner and answers only change the state. A
rebalance goes:

    something asks for it (`_rejoin_reason`) → Revoke (eager: everything) → JoinGroup, SyncGroup (`classic_rebalance.py`) →
    cooperative: Revoke what the assignment takes away, then ask for another rebalance → Assign

Heartbeats have a connection of their own, because the coordinator parks JoinGroup and SyncGroup. They
pause while a JoinGroup is out: that keeps the session alive by itself. LeaveGroup goes with the heartbeats, so that it does
not wait behind a parked JoinGroup.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from ottla.client_core.group.assignors import Assignor, RebalanceProtocol
from ottla.client_core.group.base_member import BaseMember, Coordinator, GroupSettings, Identity, MetadataView
from ottla.client_core.group.classic_rebalance import (
    Assigned,
    JoinExchange,
    Outcome,
    Overtaken,
    Phase,
    Refused,
    rebalance_protocol_of,
)
from ottla.client_core.group.membership import Failed, LeaveOption, Left, Partitions, ServerRegex, Subscription
from ottla.client_core.machine import Channel, Request
from ottla.errors import KafkaError, UnsupportedVersionError, exception_of
from ottla.errors.codes import ErrorCode, error_meaning
from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity

# The heartbeats of a classic member: when they are due, when its session has ended, and when its owner polled too late.


class Liveness:
    """Heartbeats, one at a time, and the deadlines that they, their answers and polls move."""

    def __init__(self, settings: GroupSettings, identity: Identity) -> None:
        self._settings = settings
        self._identity = identity
        self._out: Request | None = None
        self._heartbeat_at_ms = 0
        self.session_ends_ms = 0
        self.poll_due_ms = 0

    def polled(self, now_ms: int) -> None:
        """The owner has polled."""
        self.poll_due_ms = now_ms + self._settings.max_poll_interval_ms

    def joined(self, now_ms: int) -> None:
        """The coordinator has started a session."""
        self._heartbeat_at_ms = now_ms + self._settings.heartbeat_interval_ms
        self.session_ends_ms = now_ms + self._settings.session_timeout_ms

    def extend_session(self, now_ms: int) -> None:
        """The coordinator has heard a heartbeat, or will be looked for from now."""
        self.session_ends_ms = now_ms + self._settings.session_timeout_ms

    @property
    def due_ms(self) -> int | None:
        """When the next heartbeat is due; None while one is out."""
        return self._heartbeat_at_ms if self._out is None else None

    def is_due(self, now_ms: int) -> bool:
        """Whether it is time for a heartbeat."""
        return self._out is None and now_ms >= self._heartbeat_at_ms

    def send(self, node: int, now_ms: int) -> Request:
        """The heartbeat."""
        self._heartbeat_at_ms = now_ms + self._settings.heartbeat_interval_ms
        identity = self._identity
        message = HeartbeatRequest(
            group_id=identity.group_id,
            generation_id=identity.generation,
            member_id=identity.member_id,
            group_instance_id=identity.group_instance_id,
        )
        self._out = Request(message, node, channel=Channel.HEARTBEAT, context=identity.now)
        return self._out

    def is_mine(self, request: Request) -> bool:
        """Whether the request is the heartbeat that is out."""
        return request is self._out

    def answered(self, request: Request, *, keeps_session: bool, now_ms: int) -> bool:
        """The heartbeat got an answer; False if it speaks of an older generation, and so says nothing."""
        self._out = None
        if request.context != self._identity.now:
            return False
        if keeps_session:
            self.extend_session(now_ms)
        return True

    def failed(self, now_ms: int) -> None:
        """The heartbeat got no answer: send another one soon."""
        self._out = None
        self._heartbeat_at_ms = min(self._heartbeat_at_ms, now_ms + self._settings.retry_backoff_ms)


# LeaveGroup: whether a member sends it, and in which form.
#
# Version notes: v3: several members and their group.instance.id in one request; v5: a reason.

_MANY_SINCE_VERSION: Final = 3
_REASON_LENGTH_MAX: Final = 255


def sends_leave(option: LeaveOption, group_instance_id: str | None) -> bool:
    """Whether the member tells its coordinator that it leaves. A static one stays by default, to come back soon (KIP-1092)."""
    if option is LeaveOption.DEFAULT:
        return group_instance_id is None
    return option is LeaveOption.LEAVE_GROUP


def leave_request(identity: Identity, node: int, reason: str) -> Request:
    """The request. It goes with the heartbeats, because a JoinGroup may be parked on the group's other connection."""
    group_id, member_id, instance_id = identity.group_id, identity.member_id, identity.group_instance_id

    def adapt(version: int) -> LeaveGroupRequest:
        if version < _MANY_SINCE_VERSION:
            return LeaveGroupRequest(group_id=group_id, member_id=member_id)
        member = MemberIdentity(member_id=member_id, group_instance_id=instance_id, reason=reason[:_REASON_LENGTH_MAX])
        return LeaveGroupRequest(group_id=group_id, members=[member])

    return Request(LeaveGroupRequest(), node, channel=Channel.HEARTBEAT, adapt=adapt)


QUICK_RETRIES_MAX: Final = 3
"""So many refused joins in a row are retried at once, as a rebalance brings them about; after that the backoff counts."""

_NOT_A_MEMBER: Final = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION})


class ClassicMember(BaseMember):
    """A membership (`membership.py`) by the classic protocol."""

    def __init__(
        self,
        settings: GroupSettings,
        assignors: Sequence[Assignor],
        metadata: MetadataView,
        coordinator: Coordinator,
        random_below: Callable[[int], int],
    ) -> None:
        super().__init__(settings, metadata, coordinator, random_below)
        self._is_eager = rebalance_protocol_of(assignors) is RebalanceProtocol.EAGER
        self._exchange = JoinExchange(settings, self._identity, assignors, metadata)
        self._liveness = Liveness(settings, self._identity)
        self._rejoin_reason: str | None = None
        self._target: Assigned | None = None
        """The assignment that SyncGroup brought and the owner does not have yet."""
        self._refusals = 0

    # What the owner reads

    @property
    def free_channel(self) -> Channel:
        # Behind a SyncGroup, requests may wait: the coordinator would refuse commits until it has answered that.
        return Channel.HEARTBEAT if self._exchange.phase is Phase.JOINING else Channel.GROUP

    @property
    def is_stable(self) -> bool:
        return (
            self._identity.is_member
            and self._exchange.phase is Phase.IDLE
            and self._rejoin_reason is None
            and self._target is None
            and self._leave_as is None
            and not self._handover.is_owners_turn
        )

    # What the owner does

    def subscribe(self, subscription: Subscription, now_ms: int) -> None:
        if isinstance(subscription, ServerRegex):
            raise UnsupportedVersionError(
                f"group {self.group_id}: the pattern {subscription.regex!r} is one that the coordinator evaluates, which the "
                "classic protocol cannot ask for; set group.protocol=consumer, or subscribe with a compiled Python pattern"
            )
        super().subscribe(subscription, now_ms)

    def polled(self, now_ms: int) -> None:
        self._liveness.polled(now_ms)
        self._want_to_join()

    def polling(self, now_ms: int) -> None:
        self._liveness.polled(now_ms)

    def rejoin(self, reason: str, now_ms: int) -> None:
        if self._topics.subscription is not None:
            self._rejoin_reason = self._rejoin_reason or reason

    def commit_refused(self, error: KafkaError, generation_or_epoch: int, now_ms: int) -> None:
        if not self._identity.is_member or generation_or_epoch != self._identity.generation:
            return
        if error.code == ErrorCode.ILLEGAL_GENERATION and self._exchange.phase is Phase.JOINING:
            return  # the next generation has begun, and the answer to JoinGroup, which tells it, is on its way
        if error.code in _NOT_A_MEMBER or error.code in (ErrorCode.FENCED_INSTANCE_ID, ErrorCode.REBALANCE_IN_PROGRESS):
            self._refused(error, now_ms)

    # Machine

    def step(self, now_ms: int) -> list[Request]:
        self._check_clocks(now_ms)
        if self._coordinator.error is not None and self._is_wanted:
            self._fail(self._coordinator.error)
        requests = self._advance(now_ms)
        if self._has_session and self._liveness.is_due(now_ms):
            node = self._coordinator.connected(Channel.HEARTBEAT)
            if node is not None:
                requests.append(self._liveness.send(node, now_ms))
        return requests

    def next_deadline_ms(self) -> int | None:
        is_ready = self._coordinator.is_ready
        deadlines: list[int | None] = []
        if self._has_session and is_ready:
            deadlines.append(self._liveness.due_ms)
        if self._has_clocks:
            deadlines += [self._liveness.session_ends_ms, self._liveness.poll_due_ms]
        if self._exchange.phase is Phase.JOINED and is_ready and self._leave_as is None:
            deadlines.append(self._exchange.metadata_until_ms)
        if self._is_join_due and is_ready:
            deadlines.append(max(self._not_before_ms, self._pattern_until_ms) if self._is_pattern_new else self._not_before_ms)
        return min((at_ms for at_ms in deadlines if at_ms is not None), default=None)

    def answered(self, request: Request, response: Any, version: int, now_ms: int) -> None:
        if self._exchange.is_mine(request):
            was_joining = self._exchange.phase is Phase.JOINING
            outcome = self._exchange.answered(response, now_ms)
            if was_joining and self._exchange.phase is Phase.JOINED:
                self._liveness.joined(now_ms)
                self._topics.want_also(self._exchange.group_topics)
            self._take(outcome, now_ms)
        elif self._liveness.is_mine(request):
            code = response.error_code
            keeps_session = code in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS)
            if self._liveness.answered(request, keeps_session=keeps_session, now_ms=now_ms) and code != ErrorCode.NONE:
                text = f"group {self.group_id}: a heartbeat was refused: {error_meaning(code)}"
                self._refused(exception_of(code, text), now_ms)
        elif request is self._leaving:
            self._left()

    def failed(self, request: Request, error: KafkaError, now_ms: int) -> None:
        if self._exchange.is_mine(request):
            self._take(self._exchange.failed(error), now_ms)
        elif self._liveness.is_mine(request):
            self._liveness.failed(now_ms)
            self._unanswered(error, now_ms)
        elif request is self._leaving:
            self._left()

    # What is due

    @property
    def _has_session(self) -> bool:
        """Whether the coordinator counts on heartbeats of this member."""
        return self._identity.is_member and self._exchange.phase is not Phase.JOINING and self._leaving is None

    @property
    def _has_clocks(self) -> bool:
        """Whether a late poll or a session without answered heartbeats matters: not if it leaves anyway."""
        return self._has_session and self._leave_as is None

    @property
    def _is_pattern_new(self) -> bool:
        return self._topics.pattern is not None and self._metadata.full_responses == self._responses_before_pattern

    @property
    def _is_join_due(self) -> bool:
        """Whether a JoinGroup is to be sent, apart from what the owner has to give up first."""
        return (
            self._is_wanted
            and self._exchange.phase is Phase.IDLE
            and self._leaving is None
            and self._target is None
            and not self._handover.is_owners_turn
            and (self._rejoin_reason is not None or not self._identity.is_member)
        )

    def _check_clocks(self, now_ms: int) -> None:
        if not self._has_clocks:
            return
        if now_ms >= self._liveness.poll_due_ms:
            self._leave_unpolled()
        elif now_ms >= self._liveness.session_ends_ms:
            self._liveness.extend_session(now_ms)
            self._coordinator.lost(f"no heartbeat was answered for session.timeout.ms={self._settings.session_timeout_ms}")

    def _advance(self, now_ms: int) -> list[Request]:
        if self._handover.is_owners_turn or self._leaving is not None:
            return []
        if self._leave_as is not None:
            return self._advance_leave(self._leave_as, self._coordinator.node())
        if self._target is not None:
            self._hand_out(self._target)
            return []
        is_joined = self._exchange.phase is Phase.JOINED
        requests = self._exchange.step(self._coordinator.connected(Channel.GROUP) if is_joined else None, now_ms)
        if isinstance(requests, Refused):
            self._take(requests, now_ms)
            return []
        self._notice_changes()
        if not self._is_join_due or self._handover.revoke(self._given_up_to_join()):
            return requests
        if now_ms < self._not_before_ms or (self._is_pattern_new and now_ms < self._pattern_until_ms):
            return requests
        node = self._coordinator.connected(Channel.GROUP)
        if node is None:
            return requests
        reason = self._rejoin_reason or "the consumer is not in the group"
        self._rejoin_reason = None
        return [*requests, self._exchange.start(node, self._topics.names, self._handover.assigned, reason)]

    def _notice_changes(self) -> None:
        self._topics.refresh()
        if not self._identity.is_member or self._exchange.phase is not Phase.IDLE or self._topics.subscription is None:
            return
        if self._exchange.joined_topics != self._topics.names:
            self._rejoin_reason = self._rejoin_reason or "the subscription has changed"
        elif not self._exchange.is_led_as_known():
            self._rejoin_reason = self._rejoin_reason or "the partitions of a subscribed topic have changed"

    def _given_up_to_join(self) -> Partitions:
        if self._is_eager:
            return self._handover.assigned
        return frozenset(partition for partition in self._handover.assigned if not self._topics.matches(partition.topic))

    def _hand_out(self, assigned: Assigned) -> None:
        """Give the owner its new assignment, after it has given up what is not in it."""
        target = frozenset(assigned.partitions)
        if self._handover.revoke(self._handover.assigned - target):
            self._rejoin_reason = "partitions were given up, so that their new owners get them"
            return
        self._target = None
        self._exchange.accepted(assigned)
        self._handover.assign(target)

    # Outcomes

    def _take(self, outcome: Outcome | None, now_ms: int) -> None:
        if isinstance(outcome, Assigned):
            self._take_assignment(outcome)
        elif isinstance(outcome, Refused):
            self._rejoin_reason = self._rejoin_reason or f"the last attempt failed: {outcome.error}"
            self._refused(outcome.error, now_ms)
            self._refusals += 1
            if self._refusals > QUICK_RETRIES_MAX:
                self._not_before_ms = max(self._not_before_ms, now_ms + self._backoff.failed())
        elif isinstance(outcome, Overtaken) and outcome.member_id:
            # The coordinator has let this member in after all: it leaves, or joins again with that id.
            self._identity.member_id = outcome.member_id

    def _take_assignment(self, assigned: Assigned) -> None:
        self._backoff.succeeded()
        self._refusals = 0
        self._topics.refresh()
        if all(self._topics.matches(partition.topic) for partition in assigned.partitions):
            self._topics.include(partition.topic for partition in assigned.partitions)
            if self._topics.pattern is not None:
                self._exchange.joined_topics |= {partition.topic for partition in assigned.partitions}
            self._target = assigned
        else:
            self._rejoin_reason = "the subscription has changed since the member joined"

    def _refused(self, error: KafkaError, now_ms: int) -> None:
        code = error.code
        if code == ErrorCode.MEMBER_ID_REQUIRED:
            return  # the exchange has taken the id that the coordinator gave
        if code == ErrorCode.REBALANCE_IN_PROGRESS:
            # A heartbeat or commit from before a JoinGroup may say so during it, and there is nothing more to do then.
            if self._exchange.phase is Phase.IDLE:
                self._rejoin_reason = self._rejoin_reason or "the group is rebalancing"
        elif code in _NOT_A_MEMBER:
            self._identity.forget(keeps_id=code == ErrorCode.ILLEGAL_GENERATION)
            self._lose(str(error))
        elif error.is_retriable:
            self._unanswered(error, now_ms)
        else:
            self._fail(error)

    def _unanswered(self, error: KafkaError, now_ms: int) -> None:
        """An error that passes: try again after a wait, at another coordinator if this one has moved or is gone."""
        if not error.is_retriable:
            self._fail(error)
            return
        if error.code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            self._coordinator.lost(str(error))
        self._not_before_ms = now_ms + self._backoff.failed()

    def _lose(self, reason: str) -> None:
        self._target = None
        self._handover.lose(reason)
        if self._exchange.phase is not Phase.JOINING:
            self._exchange.abandon()

    def _fail(self, error: KafkaError) -> None:
        """No retry helps: tell the owner. The next poll tries again, unless another consumer has this group.instance.id."""
        self._is_fenced = error.code == ErrorCode.FENCED_INSTANCE_ID
        self._identity.forget(keeps_id=not self._is_fenced)
        self._lose(str(error))
        self._exchange.abandon()
        self._is_poll_awaited = True
        self._rejoin_reason = None
        self._handover.events.append(Failed(error))

    # Leaving

    def _leave_unpolled(self) -> None:
        self._lose(self._leave_as_unpolled())

    def _advance_leave(self, option: LeaveOption, node: int | None) -> list[Request]:
        self._target = None
        if self._identity.is_member and self._handover.revoke(self._handover.assigned):
            return []
        self._exchange.abandon()
        if node is None or not sends_leave(option, self.group_instance_id):
            self._left()
            return []
        if not self._identity.member_id:
            # Not by group.instance.id alone: that would remove another process that has joined with it.
            if self._exchange.phase is not Phase.JOINING:  # else its answer tells the member id to leave with
                self._left()
            return []
        self._leaving = leave_request(self._identity, node, self._leave_reason)
        return [self._leaving]

    def _left(self) -> None:
        self._leaving = None
        self._leave_as = None
        self._rejoin_reason = None
        self._identity.forget()
        self._handover.lose(self._leave_reason)
        self._handover.events.append(Left(self._leave_reason))
