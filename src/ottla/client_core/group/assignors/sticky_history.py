"""What members of a sticky group owned before: read from their subscriptions, with contradictory claims settled.

The sticky assignor is eager, so its members join with nothing; each sends its last assignment as user data:

    int32 count of topics, each: string topic, int32 count, int32 partitions | int32 generation (missing in old versions)

Cooperative-sticky members keep what they own while they join, and their subscriptions say it.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from struct import error as StructError
from typing import NamedTuple

from ottla.client_core.group.assignors.base import NO_GENERATION, MemberSubscription, TopicRacks
from ottla.client_core.group.assignors.java_order import hash_order
from ottla.ids import TopicPartition

_INT32 = Struct(">i")
_INT16 = Struct(">h")


class History(NamedTuple):
    """What one member says that it owned, and in which generation; None: it does not know generations."""

    partitions: tuple[TopicPartition, ...]
    generation: int | None


class Ownership(NamedTuple):
    """The settled claims of all members."""

    owned: dict[str, list[TopicPartition]]
    """By member, in Kafka's order of members."""
    contested: set[TopicPartition]
    """Claimed by two members in one generation: neither keeps it."""
    generation_max: int
    are_alike: bool
    """All members subscribe to the same topics."""


def write_sticky_user_data(partitions: Sequence[TopicPartition], generation: int) -> bytes:
    """A member's last assignment as user data."""
    by_topic: dict[str, list[int]] = {}
    for partition in partitions:
        by_topic.setdefault(partition.topic, []).append(partition.partition)
    parts = [_INT32.pack(len(by_topic))]
    for topic in hash_order(by_topic):
        name = topic.encode()
        parts += [_INT16.pack(len(name)), name, _INT32.pack(len(by_topic[topic])), *map(_INT32.pack, by_topic[topic])]
    return b"".join([*parts, _INT32.pack(generation)])


def read_sticky_user_data(data: bytes | None) -> History:
    """The last assignment in user data; nothing if there is none or it cannot be read."""
    if not data:
        return History((), None)
    try:
        partitions, end = _read_partitions(data)
    except (StructError, UnicodeDecodeError):
        return History((), NO_GENERATION)
    if end + _INT32.size > len(data):
        return History(partitions, None)
    return History(partitions, int(_INT32.unpack_from(data, end)[0]))


def _read_partitions(data: bytes) -> tuple[tuple[TopicPartition, ...], int]:
    partitions: list[TopicPartition] = []
    (topic_count,) = _INT32.unpack_from(data)
    at = _INT32.size
    for _ in range(topic_count):
        (length,) = _INT16.unpack_from(data, at)
        at += _INT16.size
        topic = data[at : at + length].decode()
        at += length
        (count,) = _INT32.unpack_from(data, at)
        at += _INT32.size
        for _ in range(count):
            partitions.append(TopicPartition(topic, _INT32.unpack_from(data, at)[0]))
            at += _INT32.size
    return tuple(partitions), at


def settle(members: Sequence[MemberSubscription], histories: dict[str, History], topics: TopicRacks) -> Ownership:
    """Who owns what, of the partitions that exist. `members` come in hash order; of two claims the newer generation wins."""
    ownership = Ownership({}, set(), NO_GENERATION, True)
    generations = {member.member_id: member.generation for member in members}
    owner_of: dict[TopicPartition, str] = {}
    first_topics: set[str] = set()
    are_alike = True
    generation_max = NO_GENERATION
    for member in members:
        if not first_topics:
            first_topics.update(member.topics)
        elif len(member.topics) != len(first_topics) or not first_topics.issuperset(member.topics):
            are_alike = False
        history = histories[member.member_id]
        generation = NO_GENERATION if history.generation is None else history.generation
        generation_max = max(generation_max, generation)
        owned = ownership.owned[member.member_id] = []
        for partition in history.partitions:
            if not 0 <= partition.partition < len(topics.get(partition.topic, ())):
                continue
            other = owner_of.get(partition)
            if other is None:
                owned.append(partition)
                owner_of[partition] = member.member_id
            elif generation == generations[other]:
                ownership.contested.add(partition)
                _drop(ownership.owned[other], partition)
                owner_of[partition] = member.member_id
            elif generation > generations[other]:
                owned.append(partition)
                _drop(ownership.owned[other], partition)
                owner_of[partition] = member.member_id
    return ownership._replace(generation_max=generation_max, are_alike=are_alike)


def _drop(partitions: list[TopicPartition], partition: TopicPartition) -> None:
    if partition in partitions:
        partitions.remove(partition)
