"""Upgrades a classic group to a consumer group when the first consumer-protocol member joins it.

The classic members stay. Each one's assignment becomes its target and its current assignment, and the generation becomes the
epoch. A classic member has to rejoin only when its own assignment changes.

With cooperative rebalancing a member revokes partitions after it got its new assignment, and joins again when it is done. Until
then it holds more than its assignment says: what it owned when it joined. These partitions become partitions that it must
revoke, so that no other member gets them before. Apache Kafka does not look at them, and may assign them at once.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import NamedTuple

from ottla.coordinator.contract import CoordinatorRecord
from ottla.coordinator.groups.classic.group import ClassicGroup
from ottla.coordinator.groups.classic.member import ClassicMember
from ottla.coordinator.groups.consumer.draft import GroupDraft
from ottla.coordinator.groups.consumer.embedded import by_id
from ottla.coordinator.groups.consumer.group import ConsumerGroup
from ottla.coordinator.groups.consumer.member import (
    ClassicProtocol,
    ClassicSide,
    ConsumerMember,
    EpochsOf,
    MemberState,
    Partitions,
    sorted_topics,
    with_epoch,
)
from ottla.coordinator.groups.consumer.records import (
    current_record,
    epoch_record,
    member_record,
    target_epoch_record,
    target_record,
)
from ottla.coordinator.groups.consumer.replaying import apply_all
from ottla.coordinator.groups.consumer.watch import Watch
from ottla.coordinator.groups.settings import GroupSettings
from ottla.coordinator.groups.topics import Topics
from ottla.errors import DecodeError, KafkaError
from ottla.errors.codes import ErrorCode
from ottla.errors.texts import counted
from ottla.ids import Uuid
from ottla.wire.consumer_protocol import read_assignment, read_subscription

logger = logging.getLogger("ottla.coordinator")

_POLICIES = ("upgrade", "bidirectional")


def check_upgrade(group: ClassicGroup, settings: GroupSettings) -> None:
    """`KafkaError` if the group may not be upgraded."""
    if settings.group_consumer_migration_policy.lower() not in _POLICIES:
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
