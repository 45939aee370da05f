"""Encodes assignments for classic members of a consumer group; the coordinator writes them in place of a group leader.

`wire/consumer_protocol.py` has the format.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ottla.coordinator.groups.consumer.member import Partitions
from ottla.coordinator.groups.topics import Topics
from ottla.errors import DecodeError
from ottla.ids import Uuid
from ottla.wire.consumer_protocol import version_of, write
from ottla.wire.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolAssignmentTopicPartition


def assignment_version(subscription: bytes) -> int:
    """The version of assignments for a member with this subscription; 0, which all members read, if it is malformed.

    Joining decodes only the subscription of a member's first protocol: that of another may be malformed.
    """
    try:
        return version_of(subscription)
    except DecodeError:
        return 0


def write_assignment(partitions: Mapping[Uuid, Iterable[int]], topics: Topics, version: int) -> bytes:
    """Encode partitions in `version`, without those of topics that no longer exist."""
    found = []
    for topic_id, indexes in partitions.items():
        name = topics.name_of(topic_id)
        if name is not None:
            found.append(ConsumerProtocolAssignmentTopicPartition(topic=name, partitions=sorted(indexes)))
    found.sort(key=lambda each: each.topic)
    return write(ConsumerProtocolAssignment(assigned_partitions=found), version)


def by_id(topics: Topics, named: Mapping[str, list[int]]) -> Partitions:
    """Partitions by topic id, without those of unknown topics."""
    found = {topics.id_of(name): tuple(sorted(set(indexes))) for name, indexes in named.items()}
    return {topic_id: indexes for topic_id, indexes in found.items() if topic_id is not None}
