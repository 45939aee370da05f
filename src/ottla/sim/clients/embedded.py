"""What members of classic groups say to each other: subscriptions and assignments, as consumers write them.

int16 version | body in that version
"""

from __future__ import annotations

from struct import Struct

from ottla.sim.checkers.checker import Place
from ottla.wire.codec import decode, encode_bytes
from ottla.wire.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
)

_VERSION = Struct(">h")
_NEWEST = 3


def subscription_to(places: list[Place]) -> bytes:
    """That of a member which reads the topics of these, and holds nothing while it joins."""
    topics = list(dict.fromkeys(place.topic.name for place in places))
    return _VERSION.pack(_NEWEST) + encode_bytes(ConsumerProtocolSubscription(topics=topics), _NEWEST)


def assignment_of(places: list[Place]) -> bytes:
    topics: dict[str, ConsumerProtocolAssignmentTopicPartition] = {}
    for topic, index in places:
        part = topics.setdefault(topic.name, ConsumerProtocolAssignmentTopicPartition(topic=topic.name))
        part.partitions.append(index)
    body = ConsumerProtocolAssignment(assigned_partitions=list(topics.values()))
    return _VERSION.pack(_NEWEST) + encode_bytes(body, _NEWEST)


def places_in(assignment: bytes, known: list[Place]) -> list[Place]:
    """The partitions that are assigned, of the topics of `known`; there may be more of them by now."""
    if not assignment:
        return []  # who is given nothing may be told nothing
    (version,) = _VERSION.unpack_from(assignment)
    body, _ = decode(ConsumerProtocolAssignment, version, assignment, _VERSION.size)
    topics = {place.topic.name: place.topic for place in known}
    return [Place(topics[part.topic], index) for part in body.assigned_partitions for index in part.partitions]
