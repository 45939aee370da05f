"""Changes the protocol of a group: up when the first consumer-protocol member joins, down when the last one has left.

An upgrade keeps the classic members. Each one's assignment becomes its target and its current assignment, and the generation
becomes the epoch. A classic member has to rejoin only when its own assignment changes.

With cooperative rebalancing a member revokes partitions after it got its new assignment, and joins again when it is done. Until
then it holds more than its assignment says: what it owned when it joined. These partitions become partitions that it must
revoke, so that no other member gets them before. Apache Kafka does not look at them, and may assign them at once.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from ottla.coordinator.contract import CoordinatorRecord, Instant
from ottla.coordinator.groups.classic.group import STABLE, ClassicGroup, ClassicMember, Protocol
from ottla.coordinator.groups.consumer.group import (
    PROTOCOL_TYPE,
    ClassicProtocol,
    ClassicSide,
    ConsumerGroup,
    ConsumerMember,
    EpochsOf,
    MemberState,
    Partitions,
    current_record,
    epoch_record,
    member_record,
    sorted_topics,
    target_epoch_record,
    target_record,
    with_epoch,
)
from ottla.coordinator.groups.consumer.replay import GroupDraft, apply_all
from ottla.coordinator.groups.consumer.watch import Watch
from ottla.coordinator.groups.settings import GroupSettings
from ottla.coordinator.groups.topics import Topics
from ottla.errors import DecodeError, KafkaError
from ottla.errors.codes import ErrorCode
from ottla.errors.texts import counted
from ottla.ids import Uuid
from ottla.wire.consumer_protocol import read_assignment, read_subscription, version_of, write
from ottla.wire.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolAssignmentTopicPartition

logger = logging.getLogger("ottla.coordinator")


# Downgrades a consumer group to a classic group when all remaining members use the classic protocol.
#
# The group's epoch becomes the generation, and each member's target becomes its assignment. If a rebalance begins at once,
# the assignment is what the member holds instead. Apache Kafka uses the targets there too. Members never see those, but if
# the group is upgraded again before the rebalance is over, they count as held while other members may still hold some of
# them.
#
# The generation is the epoch from before the decision. No member has seen an epoch that the decision itself began: as the
# generation, it would refuse offset commits until the members have rejoined.

# Encodes assignments for classic members of a consumer group; the coordinator writes them in place of a group leader.
#
# `wire/consumer_protocol.py` has the format.


def assignment_version(subscription: bytes) -> int:
    """The version of assignments for a member with this subscription; 0, which all members read, if it is malformed.

    Joining decodes only the subscription of a member's first protocol: that of another may be malformed.
    """
    try:
        return version_of(subscription)
    except DecodeError:
        return 0


def write_assignment(partitions: Mapping[Uuid, Iterable[int]], topics: Topics, version: int) -> bytes:
    """Encode partitions in `version`, without those of topics that no longer exist."""
    found = []
    for topic_id, indexes in partitions.items():
        name = topics.name_of(topic_id)
        if name is not None:
            found.append(ConsumerProtocolAssignmentTopicPartition(topic=name, partitions=sorted(indexes)))
    found.sort(key=lambda each: each.topic)
    return write(ConsumerProtocolAssignment(assigned_partitions=found), version)


def by_id(topics: Topics, named: Mapping[str, list[int]]) -> Partitions:
    """Partitions by topic id, without those of unknown topics."""
    found = {topics.id_of(name): tuple(sorted(set(indexes))) for name, indexes in named.items()}
    return {topic_id: indexes for topic_id, indexes in found.items() if topic_id is not None}


_MAY_DOWNGRADE = ("downgrade", "bidirectional")


def may_downgrade(group: ConsumerGroup, leaving: Collection[ConsumerMember], settings: GroupSettings) -> bool:
    """Whether the group is downgraded when these members have left."""
    left = len(group.members) - len(leaving)
    if left <= 0 or group.classic_count - sum(member.is_classic for member in leaving) != left:
        return False
    if settings.group_consumer_migration_policy.lower() not in _MAY_DOWNGRADE:
        logger.info(
            "group %s has only classic members left, and stays a consumer group: group.consumer.migration.policy does not "
            "allow to change it back",
            group.group_id,
        )
        return False
    if left > settings.group_max_size:
        logger.info(
            "group %s has only classic members left, and stays a consumer group: they are %d, and group.max.size is %d",
            group.group_id,
            left,
            settings.group_max_size,
        )
        return False
    return True


def as_classic(
    group: ConsumerGroup,
    members: Collection[ConsumerMember],
    generation: int,
    has_to_rebalance: bool,
    topics: Topics,
    now: Instant,
) -> ClassicGroup:
    """The classic group of these `members`, in `generation`, the last epoch that they have seen. Not in the table yet."""
    classic = ClassicGroup(group.group_id)
    classic.generation = generation
    for member in members:
        assert member.classic is not None, f"{member} does not speak the classic protocol"
        classic.add(
            ClassicMember(
                member.member_id,
                member.instance_id,
                member.client_id,
                member.client_host,
                member.rebalance_timeout_ms,
                member.classic.session_timeout_ms,
                [Protocol(name, metadata) for name, metadata in member.classic.protocols],
            ),
            PROTOCOL_TYPE,
        )
    classic.protocol_name = classic.vote()
    for member in members:
        each = classic.members[member.member_id]
        version = assignment_version(each.metadata(classic.protocol_name))
        partitions = member.held() if has_to_rebalance else group.target_of(member.member_id)
        each.assignment = write_assignment(partitions, topics, version)
    classic.learn_subscriptions()
    classic.move_to(STABLE, now)
    logger.info("group %s is a classic group from now on, in generation %d", group.group_id, generation)
    return classic


_MAY_UPGRADE = ("upgrade", "bidirectional")


def check_upgrade(group: ClassicGroup, settings: GroupSettings) -> None:
    """`KafkaError` if the group may not be upgraded."""
    if settings.group_consumer_migration_policy.lower() not in _MAY_UPGRADE:
        raise _refused(
            group, "group.consumer.migration.policy does not allow it: stop the members of the classic protocol first"
        )
    if not group.uses_consumer_protocol:
        raise _refused(group, f"its members are no consumers, but {group.protocol_type!r}: use another group id")
    if len(group.members) > settings.group_consumer_max_size:
        raise _refused(
            group,
            f"it has {counted(len(group.members), 'member')}, and "
            f"group.consumer.max.size is {settings.group_consumer_max_size}: raise it",
        )


def _refused(group: ClassicGroup, why: str) -> KafkaError:
    logger.info("classic group %s cannot become a consumer group: %s", group.group_id, why)
    return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"classic group {group.group_id} cannot become a consumer group: {why}")


def upgrade(group: ClassicGroup, topics: Topics, watch: Watch) -> GroupDraft:
    """The draft of the consumer group that replaces `group`, with its records."""
    draft = GroupDraft(ConsumerGroup(group.group_id), is_new=True)
    draft.records += group.tombstones()
    try:
        draft.write(_records(group, topics, watch))
    except DecodeError as fault:
        raise _refused(group, f"a subscription or assignment in it cannot be read ({fault}): stop its members first") from fault
    logger.info(
        "group %s is a consumer group from now on, with %s", group.group_id, counted(len(group.members), "classic member")
    )
    return draft


class _Upgraded(NamedTuple):
    """A classic member in the new group, with its target."""

    member: ConsumerMember
    target: Partitions
    owned: Partitions
    """What it held when it last joined."""
    owned_generation: int
    """The generation in which it got that; -1 if it did not say."""


def _records(classic: ClassicGroup, topics: Topics, watch: Watch) -> list[CoordinatorRecord]:
    group_id, epoch = classic.group_id, classic.generation
    upgraded = [_upgraded(classic, each, topics) for each in classic.members.values()]
    held = [partition for each in upgraded for partition in _each(each.target)]
    if len(held) != len(set(held)):
        raise _refused(classic, "its assignor gave a partition to more than one member: stop them first")
    unrevoked = _unrevoked(upgraded, set(held), epoch)
    members = [
        each.member._replace(state=MemberState.UNREVOKED_PARTITIONS, revoking=unrevoked[each.member.member_id])
        if each.member.member_id in unrevoked
        else each.member
        for each in upgraded
    ]
    of_members = [member_record(group_id, member) for member in members]
    scratch = ConsumerGroup(group_id)
    apply_all(scratch, of_members)
    return [
        *of_members,
        epoch_record(group_id, epoch, watch.hash_of(scratch)),
        *(target_record(group_id, each.member.member_id, each.target) for each in upgraded),
        target_epoch_record(group_id, epoch, 0),
        *(current_record(group_id, member) for member in members),
    ]


def _each(partitions: Partitions) -> Iterator[tuple[Uuid, int]]:
    return ((topic_id, index) for topic_id, indexes in partitions.items() for index in indexes)


def _unrevoked(upgraded: list[_Upgraded], assigned: set[tuple[Uuid, int]], epoch: int) -> dict[str, EpochsOf]:
    """By member id, the partitions that it owned when it joined, and that no member is assigned."""
    found: dict[str, dict[Uuid, dict[int, int]]] = {}
    taken = set(assigned)
    # A member that missed a generation may report partitions that it has lost since: the newer report counts.
    for each in sorted(upgraded, key=lambda each: -each.owned_generation):
        for topic_id, index in _each(each.owned):
            if (topic_id, index) not in taken:
                taken.add((topic_id, index))
                found.setdefault(each.member.member_id, {}).setdefault(topic_id, {})[index] = epoch
    return dict(found)


def _upgraded(group: ClassicGroup, member: ClassicMember, topics: Topics) -> _Upgraded:
    target: Partitions = {}
    if member.assignment:
        assignment = read_assignment(bytes(member.assignment))
        if assignment.user_data:
            raise _refused(
                group,
                "its assignor has custom user data, which would be lost: use an assignor that comes with Kafka first",
            )
        target = by_id(topics, {each.topic: each.partitions for each in assignment.assigned_partitions})
    # While the group rebalances, a new member may not support the chosen protocol.
    metadata = dict(member.protocols).get(group.protocol_name or "", member.protocols[0].metadata)
    subscription = read_subscription(bytes(metadata))
    return _Upgraded(
        ConsumerMember(
            member.member_id,
            epoch=group.generation,
            previous_epoch=group.generation,
            instance_id=member.instance_id,
            rack_id=subscription.rack_id or None,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            client_id=member.client_id,
            client_host=member.client_host,
            topics=sorted_topics(subscription.topics),
            assigned=with_epoch(target, group.generation),
            classic=ClassicSide(
                member.session_timeout_ms,
                tuple(ClassicProtocol(name, bytes(metadata)) for name, metadata in member.protocols),
            ),
        ),
        target,
        by_id(topics, {each.topic: each.partitions for each in subscription.owned_partitions}),
        subscription.generation_id,
    )
