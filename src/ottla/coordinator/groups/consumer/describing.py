"""Builds a consumer group's part of the ConsumerGroupDescribe response."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ottla.coordinator.groups.consumer.group import ConsumerGroup
from ottla.coordinator.groups.consumer.member import ConsumerMember
from ottla.coordinator.groups.topics import Topics
from ottla.ids import Uuid
from ottla.wire.messages.consumer_group_describe import Assignment, DescribedGroup, Member, TopicPartitions

_CLASSIC, _CONSUMER = 0, 1


def described(group: ConsumerGroup, default_assignor: str, topics: Topics) -> DescribedGroup:
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=group.preferred_assignor(default_assignor),
        members=[_member(group, member, topics) for member in group.members.values()],
    )


def _member(group: ConsumerGroup, member: ConsumerMember, topics: Topics) -> Member:
    # A member holds partitions that it must revoke until it has confirmed that.
    held = {topic_id: list(partitions) for topic_id, partitions in member.assigned.items()}
    for topic_id, partitions in member.revoking.items():
        held[topic_id] = [*held.get(topic_id, ()), *partitions]
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.topics),
        subscribed_topic_regex=member.regex,
        assignment=_assignment(held, topics),
        target_assignment=_assignment(group.target_of(member.member_id), topics),
        member_type=_CLASSIC if member.is_classic else _CONSUMER,
    )


def _assignment(partitions: Mapping[Uuid, Iterable[int]], topics: Topics) -> Assignment:
    """The partitions of topics that still exist."""
    named = ((topics.name_of(topic_id), topic_id, indexes) for topic_id, indexes in partitions.items())
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, topic_name=name, partitions=sorted(indexes))
            for name, topic_id, indexes in named
            if name is not None
        ]
    )
