"""What members of the classic protocol say to each other, which the broker reads and writes while it assigns for them.

    subscription, assignment    int16 version | body in that version

A version that is not known is read as the newest that is: newer ones begin with it.
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
    """The version that a subscription or an assignment is in, as far as it is known here."""
    if len(data) < _VERSION.size:
        raise DecodeError("a subscription or an assignment begins with its version", 0)
    (version,) = _VERSION.unpack_from(data)
    if version < 0:
        raise DecodeError(f"a subscription or an assignment cannot have the version {version}", 0)
    return min(int(version), _NEWEST)


def assignment_version(subscription: bytes) -> int:
    """The version of assignments for a member with this subscription; 0, which everybody reads, if it is none.

    Only the subscription of a member's first protocol is read when it joins: that of another may be anything at all.
    """
    try:
        return version_of(subscription)
    except DecodeError:
        return 0


def read_subscription(data: bytes) -> ConsumerProtocolSubscription:
    """`DecodeError` if it is none."""
    return decode(ConsumerProtocolSubscription, version_of(data), data, _VERSION.size)[0]


def read_assignment(data: bytes) -> ConsumerProtocolAssignment:
    """`DecodeError` if it is none."""
    return decode(ConsumerProtocolAssignment, version_of(data), data, _VERSION.size)[0]


def write_assignment(partitions: Mapping[Uuid, Iterable[int]], topics: Topics, version: int) -> bytes:
    """Partitions of topics that exist, in `version`, for a member that understands it."""
    found = []
    for topic_id, indexes in partitions.items():
        name = topics.name_of(topic_id)
        if name is not None:
            found.append(ConsumerProtocolAssignmentTopicPartition(topic=name, partitions=sorted(indexes)))
    found.sort(key=lambda each: each.topic)
    return _VERSION.pack(version) + encode_bytes(ConsumerProtocolAssignment(assigned_partitions=found), version)


def by_id(topics: Topics, named: Mapping[str, list[int]]) -> Partitions:
    """Partitions by the ids of their topics; those of topics that are not there are left out."""
    found = {topics.id_of(name): tuple(sorted(set(indexes))) for name, indexes in named.items()}
    return {topic_id: indexes for topic_id, indexes in found.items() if topic_id is not None}
