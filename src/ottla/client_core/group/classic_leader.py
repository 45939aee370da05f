"""The bytes that members of a classic group write for each other, and what its leader does with them.

Subscriptions go to the leader through JoinGroup, assignments come back through SyncGroup, both in the consumer protocol
(`wire/consumer_protocol.py`). The leader runs the assignor that the coordinator chose.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ottla.client_core.group.assignors.base import Assignor, MemberSubscription, RebalanceProtocol
from ottla.client_core.group.collaborators import MetadataView
from ottla.client_core.group.membership import Partitions
from ottla.errors import ConfigError
from ottla.ids import TopicPartition
from ottla.wire.consumer_protocol import read_assignment, read_subscription, write
from ottla.wire.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
    ConsumerProtocolSubscriptionTopicPartition,
)
from ottla.wire.messages.join_group import JoinGroupRequestProtocol, JoinGroupResponseMember
from ottla.wire.messages.sync_group import SyncGroupRequestAssignment


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
