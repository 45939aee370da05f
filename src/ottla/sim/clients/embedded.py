"""What members of classic groups say to each other: subscriptions and assignments, as consumers write them."""

from __future__ import annotations

from ottla.sim.checkers.checker import Place
from ottla.wire.consumer_protocol import read_assignment, write
from ottla.wire.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
)


def subscription_to(places: list[Place]) -> bytes:
    """That of a member which reads the topics of these, and holds nothing while it joins."""
    topics = list(dict.fromkeys(place.topic.name for place in places))
    return write(ConsumerProtocolSubscription(topics=topics))


def assignment_of(places: list[Place]) -> bytes:
    topics: dict[str, ConsumerProtocolAssignmentTopicPartition] = {}
    for topic, index in places:
        part = topics.setdefault(topic.name, ConsumerProtocolAssignmentTopicPartition(topic=topic.name))
        part.partitions.append(index)
    return write(ConsumerProtocolAssignment(assigned_partitions=list(topics.values())))


def places_in(assignment: bytes, known: list[Place]) -> list[Place]:
    """The partitions that are assigned, of the topics of `known`; there may be more of them by now."""
    if not assignment:
        return []  # a member without partitions may get no bytes at all
    body = read_assignment(assignment)
    topics = {place.topic.name: place.topic for place in known}
    return [Place(topics[part.topic], index) for part in body.assigned_partitions for index in part.partitions]
