"""ConsumerGroup: the recorded state of one consumer group: members, target assignment and current assignments.

Three epochs, which only grow, show how far a change has come: the group's (a subscription or a topic has changed), that of the
target assignment (computed for that group epoch), and each member's (the assignment that it was sent).

    Empty ──join──▶ Assigning ──target computed──▶ Reconciling ──every member there──▶ Stable

Only `replay.py` changes a group. Sets no timer, sends no answer; the other files of this folder decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from ottla.coordinator.contract import CoordinatorRecord, Instant, put, tombstone
from ottla.coordinator.groups.group import CONSUMER, EMPTY, PartitionCheck, unknown_member
from ottla.coordinator.groups.memory import MEMBER_BYTES, PARTITION_BYTES, size_of
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.errors.texts import counted
from ottla.ids import Uuid
from ottla.wire.messages.consumer_group_records import (
    ClassicMemberMetadata,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    TopicPartition,
    TopicPartitions,
)
from ottla.wire.messages.consumer_group_records import (
    ClassicProtocol as RecordedProtocol,
)
from ottla.wire.messages.list_groups import ListedGroup

if TYPE_CHECKING:
    from ottla.wire.messages.list_groups import ListedGroup


# Builds the records of consumer groups (types 3 to 8 and 16 of __consumer_offsets). `replay.py` applies them.


def member_record(group_id: str, member: ConsumerMember) -> CoordinatorRecord:
    """The member's identity and subscription."""
    classic = member.classic
    return put(
        ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id),
        ConsumerGroupMemberMetadataValue(
            instance_id=member.instance_id,
            rack_id=member.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=list(member.topics),
            subscribed_topic_regex=member.regex,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            server_assignor=member.assignor,
            classic_member_metadata=None
            if classic is None
            else ClassicMemberMetadata(
                session_timeout_ms=classic.session_timeout_ms,
                supported_protocols=[RecordedProtocol(name=name, metadata=metadata) for name, metadata in classic.protocols],
            ),
        ),
    )


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> CoordinatorRecord:
    return put(
        ConsumerGroupMetadataKey(group_id=group_id), ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    )


def target_record(group_id: str, member_id: str, target: Partitions) -> CoordinatorRecord:
    return put(
        ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id),
        ConsumerGroupTargetAssignmentMemberValue(
            topic_partitions=[
                TopicPartition(topic_id=topic_id, partitions=list(partitions)) for topic_id, partitions in target.items()
            ]
        ),
    )


def target_epoch_record(group_id: str, epoch: int, wall_ms: int) -> CoordinatorRecord:
    """The epoch of the target assignment. Written after the target records of the members."""
    return put(
        ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id),
        ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=wall_ms),
    )


def current_record(group_id: str, member: ConsumerMember) -> CoordinatorRecord:
    """The member's epoch and its partitions."""
    return put(
        ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id),
        ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=member.epoch,
            previous_member_epoch=member.previous_epoch,
            state=int(member.state),
            assigned_partitions=_with_epochs(member.assigned),
            partitions_pending_revocation=_with_epochs(member.revoking),
        ),
    )


def _with_epochs(held: EpochsOf) -> list[TopicPartitions]:
    return [
        TopicPartitions(topic_id=topic_id, partitions=list(epochs), assignment_epochs=list(epochs.values()))
        for topic_id, epochs in held.items()
    ]


def regex_record(group_id: str, regex: str, topics: Iterable[str], version: int, wall_ms: int) -> CoordinatorRecord:
    """The topics that match a regular expression, in one version of the metadata."""
    return put(
        ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex),
        ConsumerGroupRegularExpressionValue(topics=list(topics), version=version, timestamp=wall_ms),
    )


# -- Tombstones


def no_member(group_id: str, member_id: str) -> CoordinatorRecord:
    return tombstone(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id))


def no_target(group_id: str, member_id: str) -> CoordinatorRecord:
    return tombstone(ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id))


def no_current(group_id: str, member_id: str) -> CoordinatorRecord:
    return tombstone(ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id))


def no_regex(group_id: str, regex: str) -> CoordinatorRecord:
    return tombstone(ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex))


def no_partition_metadata(group_id: str) -> CoordinatorRecord:
    """The tombstone of the record that Kafka 4.0 and older wrote instead of the metadata hash."""
    return tombstone(ConsumerGroupPartitionMetadataKey(group_id=group_id))


def without_member(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    """The tombstones of one member, in the order that replay needs."""
    return [no_current(group_id, member_id), no_target(group_id, member_id), no_member(group_id, member_id)]


def without_group(group_id: str, member_ids: Iterable[str], regexes: Iterable[str]) -> list[CoordinatorRecord]:
    """The tombstones of a group, in the order that replay needs."""
    members = list(member_ids)
    return [
        *(no_current(group_id, each) for each in members),
        *(no_target(group_id, each) for each in members),
        tombstone(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id)),
        *(no_member(group_id, each) for each in members),
        *(no_regex(group_id, each) for each in regexes),
        no_partition_metadata(group_id),
        tombstone(ConsumerGroupMetadataKey(group_id=group_id)),
    ]


# ConsumerMember: the recorded state of one member of a consumer group. Immutable: a change makes a new one.

JOIN_EPOCH = 0
"""The epoch of a member that joins, or that starts over without partitions."""
LEAVE_EPOCH = -1
LEAVE_STATIC_EPOCH = -2
"""The epoch of a static member that leaves temporarily: it keeps its partitions until its session expires."""

EpochsOf = Mapping[Uuid, Mapping[int, int]]
"""Topic → partition → the group's epoch in which it was assigned to the member."""
Partitions = Mapping[Uuid, tuple[int, ...]]
"""Topic → partitions, in order."""

NO_PARTITIONS: EpochsOf = {}


class MemberState(IntEnum):
    """How far a member has been reconciled with its target. The numbers are those in records."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    """It must revoke partitions, and has not confirmed that."""
    UNRELEASED_PARTITIONS = 2
    """It is in the newest epoch, and waits for partitions that other members still hold."""
    UNKNOWN = 127
    """A state that a newer version of Kafka wrote."""

    @classmethod
    def of(cls, number: int) -> MemberState:
        return cls(number) if number in (0, 1, 2) else cls.UNKNOWN


class ClassicProtocol(NamedTuple):
    """An assignment protocol that a classic member supports, with the bytes of its subscription."""

    name: str
    metadata: bytes


class ClassicSide(NamedTuple):
    """The additional state of a classic member."""

    session_timeout_ms: int
    protocols: tuple[ClassicProtocol, ...]


class ConsumerMember(NamedTuple):
    """A member. A new one, in no record yet, has the defaults."""

    member_id: str
    epoch: int = JOIN_EPOCH
    previous_epoch: int = -1
    """A response with a new epoch can be lost: the previous epoch is accepted if the member owns only assigned partitions."""
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    topics: tuple[str, ...] = ()
    """The topics that it subscribed to by name, sorted, each once."""
    regex: str | None = ""
    assignor: str | None = None
    assigned: EpochsOf = NO_PARTITIONS
    """The partitions assigned to it."""
    revoking: EpochsOf = NO_PARTITIONS
    """The partitions that it must revoke and may still hold."""
    classic: ClassicSide | None = None

    @property
    def is_classic(self) -> bool:
        return self.classic is not None

    @property
    def has_left_for_now(self) -> bool:
        return self.epoch == LEAVE_STATIC_EPOCH

    def is_reconciled_to(self, epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.epoch == epoch

    def in_epoch(self, epoch: int) -> ConsumerMember:
        """The member in `epoch`, with its current epoch as the previous one."""
        return self._replace(epoch=epoch, previous_epoch=self.epoch)

    @property
    def size_bytes(self) -> int:
        """The approximate memory of the member."""
        protocols = () if self.classic is None else self.classic.protocols
        parts = [part for protocol in protocols for part in protocol]
        held = sum(len(indexes) for given in (self.assigned, self.revoking) for indexes in given.values())
        texts = size_of(self.member_id, self.instance_id, self.rack_id, self.client_id, self.regex, *self.topics)
        return MEMBER_BYTES + PARTITION_BYTES * held + texts + size_of(*parts)

    def given_epoch(self, topic_id: Uuid, partition: int) -> int | None:
        """The epoch since which it holds the partition; None if it does not."""
        for held in (self.assigned, self.revoking):
            epoch = held.get(topic_id, {}).get(partition)
            if epoch is not None:
                return epoch
        return None

    def held(self) -> Partitions:
        """The partitions that it may be reading: those assigned to it, and those it has not confirmed to have revoked."""
        topic_ids = dict.fromkeys((*self.assigned, *self.revoking))
        return {topic_id: (*self.assigned.get(topic_id, ()), *self.revoking.get(topic_id, ())) for topic_id in topic_ids}

    def __str__(self) -> str:
        return self.member_id if self.instance_id is None else f"{self.member_id} (instance {self.instance_id})"


def sorted_topics(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(names)))


def with_epoch(partitions: Partitions, epoch: int) -> EpochsOf:
    return {topic_id: dict.fromkeys(indexes, epoch) for topic_id, indexes in partitions.items()}


PROTOCOL_TYPE = "consumer"
ASSIGNING, RECONCILING, STABLE = "Assigning", "Reconciling", "Stable"
NO_TARGET: Partitions = {}
_COMMITS_WITH_EPOCHS_SINCE = 9


class Resolved(NamedTuple):
    """The topics that match a regular expression."""

    topics: tuple[str, ...]
    version: int
    """The version of the metadata that it was matched against."""
    wall_ms: int


class ConsumerGroup:
    """A group, empty at first and in epoch 1."""

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.type = CONSUMER
        self.epoch = 1
        self.metadata_hash = 0
        self.target_epoch = 1
        self.targeted_at_ms = 0
        """The wall time at which the target was computed; 0: no target, or unknown."""
        self.members: dict[str, ConsumerMember] = {}
        self.static_ids: dict[str, str] = {}
        """Member ids of the static members, by their instance ids."""
        self.targets: dict[str, Partitions] = {}
        self.resolved: dict[str, Resolved] = {}
        """The regular expressions of members, with their topics."""
        self.has_partition_metadata = False
        """The log has a partition metadata record of Kafka 4.0, which must be deleted."""
        # Derived from the members, and kept because it is read often.
        self.holder_epochs: dict[tuple[Uuid, int], int] = {}
        """Partition that a member holds → the member's epoch."""
        self.name_counts: dict[str, int] = {}
        """Topic → the number of members that subscribed to it by name."""
        self.regex_counts: dict[str, int] = {}
        self.resolved_counts: dict[str, int] = {}
        """Topic → the number of regular expressions that match it."""
        self.assignor_counts: dict[str, int] = {}
        self.classic_count = 0
        self.protocol_counts: dict[str, int] = {}
        """Assignment protocol → the number of classic members that support it."""

    def copy(self) -> ConsumerGroup:
        """An independent copy of the group."""
        other = ConsumerGroup(self.group_id)
        for name, value in vars(self).items():
            setattr(other, name, value.copy() if isinstance(value, dict) else value)
        return other

    def __repr__(self) -> str:
        return f"<consumer group {self.group_id} epoch {self.epoch} {self.state} members {list(self.members)}>"

    # -- For the decisions of this folder

    @property
    def state(self) -> str:
        if not self.members:
            return EMPTY
        if self.epoch > self.target_epoch:
            return ASSIGNING
        if all(member.is_reconciled_to(self.target_epoch) for member in self.members.values()):
            return STABLE
        return RECONCILING

    def member(self, member_id: str) -> ConsumerMember:
        known = self.members.get(member_id)
        if known is None:
            raise unknown_member(self.group_id, member_id)
        return known

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        member_id = None if instance_id is None else self.static_ids.get(instance_id)
        return None if member_id is None else self.members[member_id]

    def target_of(self, member_id: str) -> Partitions:
        return self.targets.get(member_id, NO_TARGET)

    def subscribed(self) -> Iterator[str]:
        """Every topic that a member subscribed to, existing or not."""
        yield from self.name_counts
        yield from (name for name in self.resolved_counts if name not in self.name_counts)

    def topics_of(self, member: ConsumerMember) -> tuple[str, ...]:
        """The topics that a member subscribed to; an unresolved regular expression matches none."""
        resolved = self.resolved.get(member.regex) if member.regex else None
        if resolved is None or not resolved.topics:
            return member.topics
        return resolved.topics if not member.topics else tuple(sorted({*member.topics, *resolved.topics}))

    @property
    def is_homogeneous(self) -> bool:
        """Whether all members subscribed to the same topics."""
        size = len(self.members)
        if not self.regex_counts:
            return all(count == size for count in self.name_counts.values())
        return next(iter(self.regex_counts.values())) == size and not self.name_counts

    def preferred_assignor(self, default: str) -> str:
        """The assignor that most members request; the first by name if several."""
        if not self.assignor_counts:
            return default
        return min(self.assignor_counts, key=lambda name: (-self.assignor_counts[name], name))

    def waits_for_others(self, member: ConsumerMember) -> bool:
        """Whether another member still holds a partition of this member's target."""
        if member.state is not MemberState.UNRELEASED_PARTITIONS:
            return False
        return any(
            partition not in member.assigned.get(topic_id, {}) and (topic_id, partition) in self.holder_epochs
            for topic_id, partitions in self.target_of(member.member_id).items()
            for partition in partitions
        )

    # -- The interface Group

    def listed(self) -> ListedGroup:
        return ListedGroup(group_id=self.group_id, protocol_type=PROTOCOL_TYPE, group_state=self.state, group_type=self.type)

    def members_bytes(self) -> int:
        resolved = sum(size_of(regex, *found.topics) for regex, found in self.resolved.items())
        return resolved + sum(member.size_bytes for member in self.members.values())

    def check_commit(
        self, member_id: str, instance_id: str | None, generation: int, version: int, is_transactional: bool, now: Instant
    ) -> PartitionCheck | None:
        if generation < 0 and not self.members:
            return None  # a consumer with manual assignment, or an operator's tool
        if is_transactional and generation < 0 and not member_id and instance_id is None:
            return None
        member = self.member(member_id)
        if not is_transactional and not member.is_classic and version < _COMMITS_WITH_EPOCHS_SINCE:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"a member of the consumer protocol commits with version {_COMMITS_WITH_EPOCHS_SINCE} of OffsetCommit or a "
                f"later one, not {version}: use a newer client",
            )
        if generation == member.epoch:
            return None
        if generation > member.epoch:
            raise self._stale(member, f"is in epoch {member.epoch} of group {self.group_id}, not yet in {generation}")

        def check(topic: str, topic_id: Uuid, partition: int) -> None:
            # The response with a new epoch may be in flight: partitions held before may still be committed in the old epoch.
            since = member.given_epoch(topic_id, partition)
            if since is None:
                raise self._stale(member, f"does not hold {topic}-{partition}")
            if generation < since:
                raise self._stale(member, f"has held {topic}-{partition} since epoch {since}, and not in {generation}")

        return check

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        if member_id is None and member_epoch < 0:
            return
        member = self.member(member_id or "")
        if member_epoch != member.epoch:
            raise self._stale(member, f"is in epoch {member.epoch} of group {self.group_id}, not in {member_epoch}")

    def _stale(self, member: ConsumerMember, what: str) -> KafkaError:
        code = ErrorCode.ILLEGAL_GENERATION if member.is_classic else ErrorCode.STALE_MEMBER_EPOCH
        return KafkaError(code, f"member {member} {what}: wait for its next heartbeat, and ask again")

    def check_offset_delete(self) -> None:
        """The group never refuses as a whole; offsets of subscribed topics are refused one by one."""

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.name_counts or topic in self.resolved_counts

    def is_subscribed_to_any(self, topics: frozenset[str]) -> bool:
        """Whether a member reads any of these topics. Takes time in the size of the smaller set: `topics` or the group's."""
        return not (self.name_counts.keys().isdisjoint(topics) and self.resolved_counts.keys().isdisjoint(topics))

    def check_delete(self) -> None:
        if self.members:
            raise KafkaError(
                ErrorCode.NON_EMPTY_GROUP,
                f"group {self.group_id} has {counted(len(self.members), 'member')} ({self.state}), it cannot be deleted: "
                "stop them first",
            )

    def tombstones(self) -> list[CoordinatorRecord]:
        return without_group(self.group_id, self.members, self.resolved)

    def offsets_expire_from_ms(self, topic: str, commit_ms: int) -> int | None:
        return None if self.is_subscribed_to(topic) else commit_ms
