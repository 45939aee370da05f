"""The consumer protocol embedded in classic groups: subscriptions and assignments, as consumers write them."""

from __future__ import annotations

from ottla.sim.checkers.checker import Place
from ottla.wire.consumer_protocol import read_assignment, write
from ottla.wire.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
)


def subscription_to(places: list[Place]) -> bytes:
    """The subscription of a member that reads the topics of `places` and owns no partitions."""
    topics = list(dict.fromkeys(place.topic.name for place in places))
    return write(ConsumerProtocolSubscription(topics=topics))


def assignment_of(places: list[Place]) -> bytes:
    topics: dict[str, ConsumerProtocolAssignmentTopicPartition] = {}
    for topic, index in places:
        part = topics.setdefault(topic.name, ConsumerProtocolAssignmentTopicPartition(topic=topic.name))
        part.partitions.append(index)
    return write(ConsumerProtocolAssignment(assigned_partitions=list(topics.values())))


def places_in(assignment: bytes, known: list[Place]) -> list[Place]:
    """The assigned partitions. Their topics are those of `known`; partitions may have been added since."""
    if not assignment:
        return []  # a member without partitions may get an empty assignment
    body = read_assignment(assignment)
    topics = {place.topic.name: place.topic for place in known}
    return [Place(topics[part.topic], index) for part in body.assigned_partitions for index in part.partitions]
