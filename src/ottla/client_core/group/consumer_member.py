"""A member of a consumer group by the KIP-848 protocol as a pure machine: ConsumerGroupHeartbeat and its answers.

The coordinator assigns. It tells a member what to own in the answer to a heartbeat; the member gives up and takes over step by
step, and says what it owns with the next heartbeat, which is due at once. The coordinator gives a
partition to its next owner only after the last one has said that it gave it up.

Heartbeats have the member's epoch: 0 to join, -1 to leave, -2 for a static member that goes to come back. One is out at a time.
The interval is the coordinator's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from ottla.client_core.group.base_member import (
    BaseMember,
    Coordinator,
    GroupSettings,
    Handover,
    Identity,
    MetadataView,
    SubscribedTopics,
)
from ottla.client_core.group.membership import Failed, LeaveOption, Left, Partitions, ServerRegex
from ottla.client_core.machine import Channel, Request
from ottla.errors import KafkaError, UnsupportedVersionError, exception_of
from ottla.errors.codes import ErrorCode, error_meaning
from ottla.ids import TopicPartition, Uuid, random_uuid, uuid_text
from ottla.wire.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
)

# The assignment that the coordinator wants a KIP-848 member to have, and how it becomes the member's own.
#
# The coordinator names topics by id. A topic that the metadata does not know yet waits until it does; the rest is not held
# up.

# The fields of ConsumerGroupHeartbeat: what a member says of itself, and which of it has changed since it last said so.
#
# A heartbeat carries only what has changed. After an error, or if the coordinator may not know the member, it carries all of
# it.
#
# Version notes: v1: the member makes its id itself; subscription by a pattern in RE2 syntax.

JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1
LEAVE_STATIC_EPOCH: Final = -2
"""A static member goes, and will be back."""

PartitionsById: TypeAlias = Mapping[Uuid, tuple[int, ...]]


class Said(NamedTuple):
    """What can change between heartbeats."""

    names: tuple[str, ...]
    regex: str | None
    held: PartitionsById


def heartbeat_request(
    settings: GroupSettings, identity: Identity, epoch: int, now: Said, before: Said | None, node: int
) -> Request:
    """A heartbeat with what differs from `before`; with everything if that is None, as in the first one."""
    message = ConsumerGroupHeartbeatRequest(group_id=identity.group_id, member_id=identity.member_id, member_epoch=epoch)
    if before is None:
        message.instance_id = identity.group_instance_id
        message.rack_id = settings.client_rack or None
        message.rebalance_timeout_ms = settings.max_poll_interval_ms
        message.server_assignor = settings.group_remote_assignor
    if before is None or now.names != before.names:
        message.subscribed_topic_names = list(now.names)
    if now.regex != (None if before is None else before.regex):
        message.subscribed_topic_regex = now.regex or ""
    if before is None or now.held != before.held:
        message.topic_partitions = [
            ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=topic_id, partitions=list(partitions))
            for topic_id, partitions in now.held.items()
        ]
    return Request(message, node, channel=Channel.GROUP, context=identity.now)


def leave_heartbeat(identity: Identity, epoch: int, node: int) -> Request:
    """The last heartbeat of a member."""
    message = ConsumerGroupHeartbeatRequest(
        group_id=identity.group_id,
        member_id=identity.member_id,
        member_epoch=epoch,
        instance_id=identity.group_instance_id,
    )
    return Request(message, node, channel=Channel.GROUP)


class ConsumerTarget:
    """The target of a member, and the ids of the topics that it owns."""

    def __init__(self, handover: Handover, metadata: MetadataView, topics: SubscribedTopics) -> None:
        self._handover = handover
        self._metadata = metadata
        self._topics = topics
        self._target: dict[Uuid, tuple[int, ...]] | None = None
        self._is_first = True
        self._ids: dict[str, Uuid] = {}
        """The ids of the topics that the member owns partitions of. A topic of the same name may have another one later."""
        self._asked_after = -1
        """The number of metadata responses when more was asked for: each is waited for once."""

    @property
    def is_reached(self) -> bool:
        """Whether the owner has all that the coordinator has assigned, and nothing else."""
        return self._target is None and not self._is_first

    def set(self, assignment: Assignment) -> None:
        """A heartbeat's answer has brought a target."""
        self._target = {each.topic_id: tuple(sorted(each.partitions)) for each in assignment.topic_partitions}

    def reset(self) -> None:
        """The membership has ended."""
        self._target = None
        self._is_first = True
        self._ids = {}
        self._asked_after = -1

    def held(self) -> PartitionsById:
        """What the member owns, as heartbeats say it."""
        found: dict[Uuid, list[int]] = {}
        for topic, partition in sorted(self._handover.assigned):
            found.setdefault(self._ids[topic], []).append(partition)
        return {topic_id: tuple(partitions) for topic_id, partitions in found.items()}

    def advance(self) -> None:
        """The next step towards the target: give up what is not in it, or take what is new. Then it is the owner's turn."""
        if self._target is None:
            return
        names = self._names_in(self._target)
        if self._handover.revoke(self._not_in_target(self._target)):
            return
        wanted = self._handover.assigned | {
            TopicPartition(name, index) for topic_id, name in names.items() for index in self._target[topic_id]
        }
        is_first_known = self._is_first and bool(names or not self._target)
        if is_first_known or wanted != self._handover.assigned:
            self._is_first = False
            self._ids = {name: topic_id for topic_id, name in names.items()} | {
                topic: self._ids[topic] for topic, _ in self._handover.assigned
            }
            self._handover.assign(wanted)
        if len(names) == len(self._target):
            self._target = None
            self._topics.want_by_id(names.values(), is_complete=True)
        elif self._asked_after != self._metadata.full_responses:
            self._asked_after = self._metadata.full_responses
            self._topics.want_by_id(names.values(), is_complete=False)
            self._metadata.refresh("the coordinator has assigned partitions of a topic that is not known yet")

    def _names_in(self, target: dict[Uuid, tuple[int, ...]]) -> dict[Uuid, str]:
        """The names of the topics in it that are known."""
        names = {topic_id: name for name, topic_id in self._ids.items() if topic_id in target}
        for topic_id in target:
            topic = self._metadata.topic_of_id(topic_id)
            if topic is not None:
                names[topic_id] = topic.name
        return names

    def _not_in_target(self, target: dict[Uuid, tuple[int, ...]]) -> Partitions:
        """What the member owns and should not; of a topic that was deleted and created again, everything."""
        return frozenset(
            each for each in self._handover.assigned if each.partition not in target.get(self._ids[each.topic], ())
        )


_NOT_A_MEMBER: Final = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.GROUP_ID_NOT_FOUND,
    }
)


class ConsumerMember(BaseMember):
    """A membership (`membership.py`) by the KIP-848 protocol. It makes its own member id, and keeps it when it joins again."""

    def __init__(
        self,
        settings: GroupSettings,
        metadata: MetadataView,
        coordinator: Coordinator,
        random_below: Callable[[int], int],
    ) -> None:
        made = random_uuid(lambda count: bytes(random_below(256) for _ in range(count)))
        super().__init__(settings, metadata, coordinator, random_below, uuid_text(made))
        self._target = ConsumerTarget(self._handover, metadata, self._topics)
        self._out: Request | None = None
        self._said: Said | None = None
        """What the heartbeats so far have said; None: the next one says everything."""
        self._interval_ms = 0
        self._heartbeat_at_ms = 0
        self._poll_due_ms = 0

    # What the owner reads

    @property
    def free_channel(self) -> Channel:
        return Channel.GROUP

    @property
    def is_stable(self) -> bool:
        return (
            self._identity.is_member
            and self._target.is_reached
            and self._leave_as is None
            and not self._handover.is_owners_turn
            and not self._has_news
        )

    # What the owner does

    def polled(self, now_ms: int) -> None:
        self.polling(now_ms)
        self._want_to_join()

    def polling(self, now_ms: int) -> None:
        self._poll_due_ms = now_ms + self._settings.max_poll_interval_ms

    def rejoin(self, reason: str, now_ms: int) -> None:
        """The coordinator assigns, and no member can ask it to: nothing happens."""

    def commit_refused(self, error: KafkaError, generation_or_epoch: int, now_ms: int) -> None:
        if not self._identity.is_member or generation_or_epoch != self._identity.generation:
            return
        if error.code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.FENCED_INSTANCE_ID):
            self._refused(error, now_ms)

    # Machine

    def step(self, now_ms: int) -> list[Request]:
        if self._identity.is_member and self._leave_as is None and now_ms >= self._poll_due_ms:
            self._leave_unpolled()
        if self._coordinator.error is not None and self._is_wanted:
            self._fail(self._coordinator.error)
        self._topics.refresh()
        if self._leave_as is not None and (requests := self._advance_leave(self._leave_as)):
            return requests
        if self._identity.is_member and self._leave_as is None and not self._handover.is_owners_turn:
            self._target.advance()
        if not self._is_heartbeat_wanted or now_ms < self._heartbeat_due_ms:
            return []
        return self._send_heartbeat(now_ms)

    def next_deadline_ms(self) -> int | None:
        deadlines = []
        if self._identity.is_member and self._leave_as is None:
            deadlines.append(self._poll_due_ms)
        if self._is_heartbeat_wanted and self._coordinator.is_ready:
            deadlines.append(self._heartbeat_due_ms)
        return min(deadlines, default=None)

    def answered(self, request: Request, response: Any, version: int, now_ms: int) -> None:
        if request is self._leaving:
            self._left()
        if request is not self._out:
            return
        self._out = None
        if request.context != self._identity.now:
            return  # of an earlier membership
        code = response.error_code
        if code != ErrorCode.NONE:
            said = response.error_message or error_meaning(code)
            self._refused(exception_of(code, f"group {self.group_id}: a heartbeat was refused: {said}"), now_ms)
            return
        self._backoff.succeeded()
        self._identity.member_id = response.member_id or self._identity.member_id
        self._identity.generation = response.member_epoch
        self._interval_ms = response.heartbeat_interval_ms
        self._heartbeat_at_ms = now_ms + self._interval_ms
        if response.assignment is not None:
            self._target.set(response.assignment)

    def failed(self, request: Request, error: KafkaError, now_ms: int) -> None:
        if request is self._leaving:
            self._left()
        elif request is self._out:
            self._out = None
            if error.code == ErrorCode.UNSUPPORTED_VERSION:
                error = UnsupportedVersionError(
                    f"group {self.group_id}: the brokers do not serve this subscription by group.protocol=consumer ({error}); "
                    "set group.protocol=classic"
                )
            self._refused(error, now_ms)

    # Heartbeats

    @property
    def _is_heartbeat_wanted(self) -> bool:
        """Whether a heartbeat will be due at some time: the member is in the group, or joins."""
        return self._out is None and self._leaving is None and (self._identity.is_member or self._is_wanted)

    @property
    def _has_news(self) -> bool:
        """Whether the next heartbeat says something new."""
        return self._said is None or self._said != self._now_said()

    @property
    def _heartbeat_due_ms(self) -> int:
        if not self._identity.is_member:
            is_new = self._topics.pattern is not None and self._metadata.full_responses == self._responses_before_pattern
            return max(self._not_before_ms, self._pattern_until_ms if is_new else 0)
        return self._not_before_ms if self._has_news else max(self._not_before_ms, self._heartbeat_at_ms)

    def _now_said(self) -> Said:
        """What there is to say. What the owner is busy giving up or taking over is said when it is done."""
        if self._leave_as is not None and self._said is not None:
            return self._said
        subscription = self._topics.subscription
        regex = subscription.regex if isinstance(subscription, ServerRegex) else None
        names = () if regex is not None else tuple(sorted(self._topics.names))
        if self._said is not None and self._handover.is_owners_turn:
            return Said(names, regex, self._said.held)
        return Said(names, regex, self._target.held())

    def _send_heartbeat(self, now_ms: int) -> list[Request]:
        node = self._coordinator.connected(Channel.GROUP)
        if node is None:
            return []
        epoch = self._identity.generation if self._identity.is_member else JOIN_EPOCH
        said = self._now_said()
        self._out = heartbeat_request(self._settings, self._identity, epoch, said, self._said, node)
        self._said = said
        self._heartbeat_at_ms = now_ms + self._interval_ms
        return [self._out]

    # Errors

    def _refused(self, error: KafkaError, now_ms: int) -> None:
        self._said = None
        if error.code in _NOT_A_MEMBER:
            self._lose(str(error))
            self._not_before_ms = now_ms if self._identity.is_member else now_ms + self._backoff.failed()
            self._identity.forget(keeps_id=True)
        elif error.is_retriable:
            if error.code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                self._coordinator.lost(str(error))
            self._not_before_ms = now_ms + self._backoff.failed()
        else:
            self._fail(error)

    def _lose(self, reason: str) -> None:
        self._handover.lose(reason)
        self._target.reset()
        self._said = None

    def _fail(self, error: KafkaError) -> None:
        """No retry helps: tell the owner. The next poll tries again, unless another consumer has this group.instance.id."""
        self._is_fenced = error.code == ErrorCode.FENCED_INSTANCE_ID
        self._identity.forget(keeps_id=True)
        self._lose(str(error))
        self._out = None
        self._is_poll_awaited = True
        self._handover.events.append(Failed(error))

    # Leaving

    def _leave_unpolled(self) -> None:
        self._handover.lose(self._leave_as_unpolled())

    def _advance_leave(self, option: LeaveOption) -> list[Request]:
        if self._handover.is_owners_turn or self._leaving is not None:
            return []
        if self._identity.is_member and self._handover.revoke(self._handover.assigned):
            return []
        is_static = self.group_instance_id is not None
        node = self._coordinator.node()
        may_be_known = self._identity.is_member or self._out is not None
        if node is None or not may_be_known or (option is LeaveOption.REMAIN_IN_GROUP and not is_static):
            self._left()
            return []
        epoch = LEAVE_STATIC_EPOCH if is_static and option is not LeaveOption.LEAVE_GROUP else LEAVE_EPOCH
        self._leaving = leave_heartbeat(self._identity, epoch, node)
        self._out = None
        return [self._leaving]

    def _left(self) -> None:
        self._leaving = None
        self._leave_as = None
        self._out = None
        self._identity.forget(keeps_id=True)
        self._lose(self._leave_reason)
        self._handover.events.append(Left(self._leave_reason))
