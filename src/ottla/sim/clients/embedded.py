"""The consumer protocol embedded in classic groups: subscriptions and assignments.

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
    """The subscription of a member that reads the topics of `places` and owns no partitions."""
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
    """The assigned partitions. Their topics are those of `known`; partitions may have been added since."""
    if not assignment:
        return []  # a member without partitions may get an empty assignment
    (version,) = _VERSION.unpack_from(assignment)
    body, _ = decode(ConsumerProtocolAssignment, version, assignment, _VERSION.size)
    topics = {place.topic.name: place.topic for place in known}
    return [Place(topics[part.topic], index) for part in body.assigned_partitions for index in part.partitions]
