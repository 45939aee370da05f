"""Decodes and encodes the embedded consumer protocol of classic members: their subscriptions and assignments.

    subscription, assignment    int16 version | body in that version

An unknown version is decoded as the newest known one: newer versions only append fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from struct import Struct

from ottla.coordinator.groups.consumer.member import Partitions
from ottla.coordinator.groups.topics import Topics
from ottla.errors import DecodeError
from ottla.ids import Uuid
from ottla.wire.codec import decode, encode_bytes
from ottla.wire.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
)

_VERSION = Struct(">h")
_NEWEST = 3


def version_of(data: bytes) -> int:
    """The version of a subscription or an assignment, at most the newest known one."""
    if len(data) < _VERSION.size:
        raise DecodeError("a subscription or an assignment begins with its version", 0)
    (version,) = _VERSION.unpack_from(data)
    if version < 0:
        raise DecodeError(f"a subscription or an assignment cannot have the version {version}", 0)
    return min(int(version), _NEWEST)


def assignment_version(subscription: bytes) -> int:
    """The version of assignments for a member with this subscription; 0, which all members read, if it is malformed.

    Joining decodes only the subscription of a member's first protocol: that of another may be malformed.
    """
    try:
        return version_of(subscription)
    except DecodeError:
        return 0


def read_subscription(data: bytes) -> ConsumerProtocolSubscription:
    """Decode a subscription; `DecodeError` if it is malformed."""
    return decode(ConsumerProtocolSubscription, version_of(data), data, _VERSION.size)[0]


def read_assignment(data: bytes) -> ConsumerProtocolAssignment:
    """Decode an assignment; `DecodeError` if it is malformed."""
    return decode(ConsumerProtocolAssignment, version_of(data), data, _VERSION.size)[0]


def write_assignment(partitions: Mapping[Uuid, Iterable[int]], topics: Topics, version: int) -> bytes:
    """Encode partitions in `version`, without those of topics that no longer exist."""
    found = []
    for topic_id, indexes in partitions.items():
        name = topics.name_of(topic_id)
        if name is not None:
            found.append(ConsumerProtocolAssignmentTopicPartition(topic=name, partitions=sorted(indexes)))
    found.sort(key=lambda each: each.topic)
    return _VERSION.pack(version) + encode_bytes(ConsumerProtocolAssignment(assigned_partitions=found), version)


def by_id(topics: Topics, named: Mapping[str, list[int]]) -> Partitions:
    """Partitions by topic id, without those of unknown topics."""
    found = {topics.id_of(name): tuple(sorted(set(indexes))) for name, indexes in named.items()}
    return {topic_id: indexes for topic_id, indexes in found.items() if topic_id is not None}
