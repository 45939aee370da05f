"""Descriptions of groups of any kind."""

from __future__ import annotations

from collections.abc import Iterable

from ottla.client.admin.group_descriptions import (
    ConsumerGroupDescription,
    MemberDescription,
    describe_classic_groups,
    describe_consumer_groups,
)
from ottla.client.cluster import Cluster
from ottla.errors import InconsistentGroupProtocolError, KafkaError
from ottla.ids import TopicPartition

Assignment = dict[str, list[int]]
"""Partitions by topic, both in order."""


async def describe_groups(cluster: Cluster, ids: Iterable[str]) -> dict[str, ConsumerGroupDescription | KafkaError]:
    """Each of the groups, or the error that its coordinator answered. Members of other than consumer groups own nothing."""
    results = await describe_consumer_groups(cluster, sorted(ids))
    found: dict[str, ConsumerGroupDescription | KafkaError] = {**results.values_found, **results.errors}
    others = [each for each, error in results.errors.items() if isinstance(error, InconsistentGroupProtocolError)]
    for group_id, group in (await describe_classic_groups(cluster, others)).items() if others else ():
        members = tuple(MemberDescription(*each[:4], assignment=()) for each in group.members)
        found[group_id] = ConsumerGroupDescription(group_id, "Classic", group.state, group.assignor, group.coordinator, members)
    return dict(sorted(found.items()))


def by_topic(partitions: Iterable[TopicPartition]) -> Assignment:
    """The numbers of the partitions of each topic."""
    found: Assignment = {}
    for topic, number in partitions:
        found.setdefault(topic, []).append(number)
    return found
