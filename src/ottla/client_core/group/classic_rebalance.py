"""One rebalance of a classic member with its coordinator: JoinGroup, the leader's assignment, SyncGroup.

Owns the requests of the exchange, and what a leader remembers of it. When it ends, `ClassicMember` gets an outcome and decides
how to go on. At most one JoinGroup is out; one whose subscription has ended is marked stale, and its answer ends the exchange.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum, auto
from typing import Any, Final, NamedTuple, TypeAlias

from ottla.client_core.group.assignors import Assignor, MemberSubscription, RebalanceProtocol
from ottla.client_core.group.base_member import GroupSettings, Identity, MetadataView
from ottla.client_core.group.membership import Partitions
from ottla.client_core.machine import Channel, Request
from ottla.errors import ClientError, ConfigError, DecodeError, InconsistentGroupProtocolError, KafkaError, exception_of
from ottla.errors.codes import ErrorCode, error_meaning
from ottla.ids import TopicPartition
from ottla.wire.consumer_protocol import read_assignment, read_subscription, write
from ottla.wire.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
    ConsumerProtocolSubscriptionTopicPartition,
)
from ottla.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse

# The bytes that members of a classic group write for each other, and what its leader does with them.
#
# Subscriptions go to the leader through JoinGroup, assignments come back through SyncGroup, both in the consumer protocol
# (`wire/consumer_protocol.py`). The leader runs the assignor that the coordinator chose.


def rebalance_protocol_of(assignors: Sequence[Assignor]) -> RebalanceProtocol:
    """The most capable protocol that all of them support. A `ConfigError` if there is none."""
    common = set.intersection(*(set(assignor.protocols) for assignor in assignors)) if assignors else set()
    if not common:
        names = ", ".join(assignor.name for assignor in assignors)
        raise ConfigError(
            f"partition.assignment.strategy: {names or 'an empty list'} have no rebalance protocol in common; "
            "name assignors that share one",
        )
    return max(common)


def subscription_protocols(
    assignors: Sequence[Assignor], topics: frozenset[str], owned: Partitions, generation: int, rack: str | None
) -> list[JoinGroupRequestProtocol]:
    """The subscription of this member, once for each assignor that it offers."""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in sorted(owned):
        by_topic.setdefault(topic, []).append(partition)
    protocols = []
    for assignor in assignors:
        subscription = ConsumerProtocolSubscription(
            topics=sorted(topics),
            user_data=assignor.subscription_user_data(topics),
            owned_partitions=[
                ConsumerProtocolSubscriptionTopicPartition(topic=topic, partitions=partitions)
                for topic, partitions in by_topic.items()
            ],
            generation_id=generation,
            rack_id=rack,
        )
        protocols.append(JoinGroupRequestProtocol(name=assignor.name, metadata=write(subscription)))
    return protocols


def read_members(members: Iterable[JoinGroupResponseMember]) -> list[MemberSubscription]:
    """What the members want and have. Raises `DecodeError` if one has sent something else."""
    subscriptions = []
    for member in members:
        subscription = read_subscription(member.metadata)
        subscriptions.append(
            MemberSubscription(
                member.member_id,
                tuple(subscription.topics),
                tuple(TopicPartition(each.topic, index) for each in subscription.owned_partitions for index in each.partitions),
                subscription.generation_id,
                member.group_instance_id,
                subscription.rack_id,
                None if subscription.user_data is None else bytes(subscription.user_data),
            )
        )
    return subscriptions


def topic_racks(metadata: MetadataView, topics: Iterable[str]) -> dict[str, list[frozenset[str]]]:
    """The partitions of the topics that are known, each with the racks of its replicas."""
    racks = {node_id: node.rack for node_id, node in metadata.nodes.items()}
    found = {}
    for name in topics:
        topic = metadata.topic(name)
        if topic is not None:
            found[name] = [
                frozenset(rack for replica in partition.replicas if (rack := racks.get(replica)) is not None)
                for partition in topic.partitions
            ]
    return found


def run_assignor(
    assignor: Assignor, members: Sequence[MemberSubscription], racks: dict[str, list[frozenset[str]]]
) -> list[SyncGroupRequestAssignment]:
    """The assignment of every member, as SyncGroup carries it."""
    assignment = assignor.assign(members, racks)
    return [
        SyncGroupRequestAssignment(
            member_id=member.member_id, assignment=_write_assignment(assignment.get(member.member_id, ()))
        )
        for member in members
    ]


def _write_assignment(partitions: Iterable[TopicPartition]) -> bytes:
    by_topic: dict[str, list[int]] = {}
    for partition in partitions:
        by_topic.setdefault(partition.topic, []).append(partition.partition)
    topics = [ConsumerProtocolAssignmentTopicPartition(topic=topic, partitions=found) for topic, found in by_topic.items()]
    return write(ConsumerProtocolAssignment(assigned_partitions=topics))


def read_assigned(data: bytes) -> list[TopicPartition]:
    """The partitions of an assignment, in its order; none if a leader sent nothing. Raises `DecodeError`."""
    if not data:
        return []
    return [
        TopicPartition(each.topic, index) for each in read_assignment(data).assigned_partitions for index in each.partitions
    ]


PROTOCOL_TYPE: Final = "consumer"
METADATA_WAIT_MS: Final = 5_000
"""How long a leader waits for metadata of topics that other members want before it assigns without them."""
_JOIN_EXTRA_MS: Final = 5_000
"""The coordinator answers a JoinGroup after the rebalance timeout at the latest; this much is added for the way."""
_REASON_LENGTH_MAX: Final = 255


class Phase(Enum):
    """How far the exchange is."""

    IDLE = auto()
    JOINING = auto()
    """JoinGroup is out."""
    JOINED = auto()
    """SyncGroup is due: a leader waits for metadata of the group's topics first."""
    SYNCING = auto()
    """SyncGroup is out."""


class Assigned(NamedTuple):
    """The exchange has brought an assignment, in the leader's order."""

    partitions: tuple[TopicPartition, ...]


class Refused(NamedTuple):
    """The exchange has ended with an error. `is_join`: it was JoinGroup that failed."""

    error: KafkaError
    is_join: bool


class Overtaken(NamedTuple):
    """The answer belongs to a subscription that has ended. The coordinator may count `member_id` among the group."""

    member_id: str


Outcome: TypeAlias = Assigned | Refused | Overtaken


class JoinExchange:
    """JoinGroup and SyncGroup of one member."""

    def __init__(
        self, settings: GroupSettings, identity: Identity, assignors: Sequence[Assignor], metadata: MetadataView
    ) -> None:
        self.phase = Phase.IDLE
        self.joined_topics: frozenset[str] = frozenset()
        """The subscription that the last JoinGroup carried."""
        self.group_topics: frozenset[str] = frozenset()
        """If this member leads: the topics of all members."""
        self.metadata_until_ms = 0
        self._settings = settings
        self._identity = identity
        self._assignors = {assignor.name: assignor for assignor in assignors}
        self._metadata = metadata
        self._is_stale = False
        self._out: Request | None = None
        self._assignor: Assignor | None = None
        self._members: list[MemberSubscription] | None = None
        """If this member leads and has yet to assign: all members."""
        self._led: dict[str, list[frozenset[str]]] | None = None
        """If this member leads: the partitions that it has assigned."""

    def start(self, node: int, topics: frozenset[str], owned: Partitions, reason: str) -> Request:
        """Send JoinGroup."""
        settings, identity = self._settings, self._identity
        self.phase = Phase.JOINING
        self.joined_topics = topics
        self._led = None
        self.group_topics = frozenset()
        message = JoinGroupRequest(
            group_id=identity.group_id,
            session_timeout_ms=settings.session_timeout_ms,
            rebalance_timeout_ms=settings.max_poll_interval_ms,
            member_id=identity.member_id,
            group_instance_id=identity.group_instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=subscription_protocols(
                list(self._assignors.values()), topics, owned, identity.generation, settings.client_rack or None
            ),
            reason=reason[:_REASON_LENGTH_MAX],
        )
        timeout_ms = max(settings.request_timeout_ms, settings.max_poll_interval_ms + _JOIN_EXTRA_MS)
        self._out = Request(message, node, channel=Channel.GROUP, timeout_ms=timeout_ms)
        return self._out

    def step(self, node: int | None, now_ms: int) -> list[Request] | Refused:
        """Send SyncGroup if it is due; a leader assigns as soon as the topics are known."""
        if self.phase is not Phase.JOINED or node is None:
            return []
        if self._members is None:
            return [self._send_sync(node, [])]
        if now_ms < self.metadata_until_ms and not all(map(self._is_answered_for, self.group_topics)):
            return []
        self._led = topic_racks(self._metadata, self.group_topics)
        assert self._assignor is not None
        try:
            assignments = run_assignor(self._assignor, self._members, self._led)
        except Exception as fault:  # an own assignor may raise anything
            return self._end(
                ClientError(f"group {self._identity.group_id}: the assignor {self._assignor.name!r} failed: {fault!r}"),
                is_join=False,
            )
        return [self._send_sync(node, assignments)]

    def abandon(self) -> None:
        """The subscription has ended: a JoinGroup that is out is waited for, everything else is dropped."""
        if self.phase is Phase.JOINING:
            self._is_stale = True
        else:
            self._stop()

    def is_led_as_known(self) -> bool:
        """Whether the metadata still has what this leader assigned; True if another member leads.

        Racks count only if this member has one.
        """
        if self._led is None:
            return True
        known = topic_racks(self._metadata, self.group_topics)
        if self._settings.client_rack:
            return known == self._led
        return {name: len(racks) for name, racks in known.items()} == {name: len(racks) for name, racks in self._led.items()}

    def is_mine(self, request: Request) -> bool:
        """Whether the request is the one that this exchange waits for."""
        return request is self._out

    def answered(self, response: Any, now_ms: int) -> Outcome | None:
        """The answer to the request that is out; the outcome if it ends the exchange."""
        self._out = None
        if self.phase is Phase.SYNCING:
            return self._sync_answered(response)
        return self._join_answered(response, now_ms)

    def failed(self, error: KafkaError) -> Outcome:
        """The request that is out got no answer."""
        self._out = None
        is_join = self.phase is Phase.JOINING
        is_stale = self._is_stale
        outcome = self._end(error, is_join=is_join)
        return Overtaken("") if is_stale else outcome

    def _join_answered(self, response: JoinGroupResponse, now_ms: int) -> Outcome | None:
        code = response.error_code
        if self._is_stale:
            self._stop()
            return Overtaken(response.member_id if code == ErrorCode.NONE else "")
        if code == ErrorCode.MEMBER_ID_REQUIRED:
            self._identity.member_id = response.member_id
        if code != ErrorCode.NONE:
            return self._end(self._error(code, "JoinGroup"), is_join=True)
        if response.protocol_type not in (None, PROTOCOL_TYPE) or response.protocol_name not in self._assignors:
            return self._end(
                InconsistentGroupProtocolError(
                    f"group {self._identity.group_id} has chosen the assignor {response.protocol_name!r} of protocol type "
                    f"{response.protocol_type!r}, which this consumer did not offer: give its members the same "
                    "partition.assignment.strategy"
                ),
                is_join=True,
            )
        self._identity.member_id = response.member_id
        self._identity.generation = response.generation_id
        self._assignor = self._assignors[response.protocol_name]
        self.phase = Phase.JOINED
        self._members = None
        return self._lead(response, now_ms) if response.leader == response.member_id else None

    def _lead(self, response: JoinGroupResponse, now_ms: int) -> Outcome | None:
        try:
            members = read_members(response.members)
        except DecodeError as fault:
            error = ClientError(
                f"group {self._identity.group_id}: a member has sent a subscription that cannot be read: {fault}"
            )
            return self._end(error, is_join=True)
        self.group_topics = frozenset(topic for member in members for topic in member.topics)
        if response.skip_assignment:
            # A static leader that restarted: its group keeps the assignment, and it only watches the topics.
            self._led = topic_racks(self._metadata, self.group_topics)
        else:
            self._members = members
            self.metadata_until_ms = now_ms + METADATA_WAIT_MS
        return None

    def _send_sync(self, node: int, assignments: list[SyncGroupRequestAssignment]) -> Request:
        self.phase = Phase.SYNCING
        self._members = None
        assert self._assignor is not None
        message = SyncGroupRequest(
            group_id=self._identity.group_id,
            generation_id=self._identity.generation,
            member_id=self._identity.member_id,
            group_instance_id=self._identity.group_instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=self._assignor.name,
            assignments=assignments,
        )
        self._out = Request(message, node, channel=Channel.GROUP)
        return self._out

    def _sync_answered(self, response: SyncGroupResponse) -> Outcome:
        if response.error_code != ErrorCode.NONE:
            return self._end(self._error(response.error_code, "SyncGroup"), is_join=False)
        try:
            partitions = read_assigned(response.assignment)
        except DecodeError as fault:
            return self._end(
                ClientError(f"group {self._identity.group_id}: its assignment cannot be read: {fault}"), is_join=False
            )
        self._stop()
        return Assigned(tuple(partitions))

    def accepted(self, assigned: Assigned) -> None:
        """The member takes the assignment: its assignor remembers it."""
        assert self._assignor is not None
        self._assignor.on_assignment(assigned.partitions, self._identity.generation)

    def _is_answered_for(self, topic: str) -> bool:
        return self._metadata.topic(topic) is not None or self._metadata.topic_error(topic) is not None

    def _error(self, code: int, api: str) -> KafkaError:
        return exception_of(code, f"group {self._identity.group_id}: {api} was refused: {error_meaning(code)}")

    def _end(self, error: KafkaError, *, is_join: bool) -> Refused:
        self._stop()
        return Refused(error, is_join)

    def _stop(self) -> None:
        self.phase = Phase.IDLE
        self._is_stale = False
        self._out = None
        self._members = None
