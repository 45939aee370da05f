"""Downgrades a consumer group to a classic group when all remaining members use the classic protocol.

The group's epoch becomes the generation, and each member's target becomes its assignment. If a rebalance begins at once, the
assignment is what the member holds instead. Apache Kafka uses the targets there too. Members never see those, but if the group
is upgraded again before the rebalance is over, they count as held while other members may still hold some of them.

The generation is the epoch from before the decision. No member has seen an epoch that the decision itself began: as the
generation, it would refuse offset commits until the members have rejoined.
"""

from __future__ import annotations

import logging
from collections.abc import Collection

from ottla.coordinator.contract import Instant
from ottla.coordinator.groups.classic.group import STABLE, ClassicGroup
from ottla.coordinator.groups.classic.member import ClassicMember, Protocol
from ottla.coordinator.groups.consumer.embedded import assignment_version, write_assignment
from ottla.coordinator.groups.consumer.group import PROTOCOL_TYPE, ConsumerGroup
from ottla.coordinator.groups.consumer.member import ConsumerMember
from ottla.coordinator.groups.settings import GroupSettings
from ottla.coordinator.groups.topics import Topics

logger = logging.getLogger("ottla.coordinator")

_POLICIES = ("downgrade", "bidirectional")


def may_downgrade(group: ConsumerGroup, leaving: Collection[ConsumerMember], settings: GroupSettings) -> bool:
    """Whether the group is downgraded when these members have left."""
    left = len(group.members) - len(leaving)
    if left <= 0 or group.classic_count - sum(member.is_classic for member in leaving) != left:
        return False
    if settings.group_consumer_migration_policy.lower() not in _POLICIES:
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
