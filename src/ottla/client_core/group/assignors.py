"""The base class of assignors: which member of a classic group gets which partitions. The group's leader runs it.

An own assignor is a subclass with a name of its own and an `assign`:

    class EverythingToOne(Assignor):
        name = "everything-to-one"

        def assign(self, members, topics):
            first = min(member.member_id for member in members)
            everything = [TopicPartition(topic, index) for topic, racks in topics.items() for index in range(len(racks))]
            return {member.member_id: everything if member.member_id == first else [] for member in members}

All members of a group must list one common assignor; the coordinator picks it. One instance serves one consumer and may keep
state between rebalances. It runs on the client's event loop: no waiting inside.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from typing import ClassVar, NamedTuple, TypeAlias, TypeVar

from ottla.ids import TopicPartition

# The orders in which Java sorts texts and walks hash tables, where Apache Kafka's assignments depend on them.
#
# A Java HashMap is walked bucket by bucket, and inside a bucket in order of insertion. Growing the table keeps that order, so
# it follows from the keys' hashes, the order of insertion and the number of buckets. Two members of one group, one with a
# Java client, then compute the same assignment.

_BUCKETS_MIN = 16

Key = TypeVar("Key", str, TopicPartition)


def text_order(text: str) -> bytes:
    """A sort key that orders texts as Java's String.compareTo: by UTF-16 code units."""
    return text.encode("utf-16-be", "surrogatepass")


def partition_order(partition: TopicPartition) -> tuple[bytes, int]:
    """A sort key for partitions: by topic, then number."""
    return text_order(partition.topic), partition.partition


def text_hash(text: str) -> int:
    """Java's String.hashCode, without its sign."""
    value = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for index in range(0, len(units), 2):
        value = (31 * value + (units[index] << 8 | units[index + 1])) & 0xFFFFFFFF
    return value


def partition_hash(partition: TopicPartition) -> int:
    """The hashCode of Kafka's TopicPartition, without its sign."""
    return (31 * (31 + partition.partition) + text_hash(partition.topic)) & 0xFFFFFFFF


def hash_order(texts: Iterable[str]) -> list[str]:
    """The texts, each once, in the order in which a HashSet or the keys of a HashMap are walked after these insertions."""
    keys = list(dict.fromkeys(texts))
    return _walk(keys, text_hash, _buckets_for(len(keys)))


class PartitionSet:
    """A set of partitions that is walked like a Java HashSet."""

    def __init__(self) -> None:
        self._partitions: dict[TopicPartition, None] = {}
        self._buckets = _BUCKETS_MIN

    def __len__(self) -> int:
        return len(self._partitions)

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(_walk(list(self._partitions), partition_hash, self._buckets))

    def add(self, partition: TopicPartition) -> None:
        """Insert it, at the end of its bucket."""
        self._partitions.setdefault(partition)
        # A Java table never shrinks.
        self._buckets = max(self._buckets, _buckets_for(len(self._partitions)))

    def remove(self, partition: TopicPartition) -> None:
        """Take it out."""
        del self._partitions[partition]


def _buckets_for(count: int) -> int:
    buckets = _BUCKETS_MIN
    while count > buckets * 3 // 4:
        buckets *= 2
    return buckets


def _walk(keys: list[Key], hash_of: Callable[[Key], int], buckets: int) -> list[Key]:
    def bucket(key: Key) -> int:
        value = hash_of(key)
        return (value ^ value >> 16) & (buckets - 1)

    return sorted(keys, key=bucket)


NO_GENERATION = -1


class RebalanceProtocol(IntEnum):
    """How members hand partitions over. The number is Kafka's: a member uses the highest one that all its assignors support."""

    EAGER = 0
    """Every member gives up everything before it joins."""
    COOPERATIVE = 1
    """Members keep what they have, and give up only what the assignment takes away; a second rebalance hands that on."""


class MemberSubscription(NamedTuple):
    """What one member of the group wants and has, as it said in JoinGroup."""

    member_id: str
    topics: tuple[str, ...]
    owned: tuple[TopicPartition, ...] = ()
    """What it keeps while it joins: nothing in the eager protocol."""
    generation: int = NO_GENERATION
    """The generation in which it got `owned`; `NO_GENERATION` if none, or if the member's client is too old to say."""
    group_instance_id: str | None = None
    rack: str | None = None
    user_data: bytes | None = None


TopicRacks: TypeAlias = Mapping[str, Sequence[frozenset[str]]]
"""For every topic with known metadata its partitions: at index N the racks of partition N's replicas, empty if unknown."""

Assignment: TypeAlias = dict[str, list[TopicPartition]]
"""For every member its partitions."""


class Assignor(ABC):
    """Divides the partitions of the subscribed topics among the members of a group."""

    name: ClassVar[str]
    """What members tell the coordinator; all members of a group need one in common."""
    protocols: ClassVar[tuple[RebalanceProtocol, ...]] = (RebalanceProtocol.EAGER,)
    """The rebalance protocols that assignments of this assignor are safe with."""

    def subscription_user_data(self, topics: frozenset[str]) -> bytes | None:
        """Bytes for the leader's assignor, sent with every join; None for none."""
        return None

    @abstractmethod
    def assign(self, members: Sequence[MemberSubscription], topics: TopicRacks) -> Assignment:
        """The partitions of each member. Every member has an entry; no partition is given twice."""

    def on_assignment(self, partitions: Sequence[TopicPartition], generation: int) -> None:  # noqa: B027  # optional
        """This member got `partitions` in `generation`."""


# What several assignors ask of a group's members and topics.


def in_hash_order(members: Sequence[MemberSubscription]) -> list[MemberSubscription]:
    """The members in the order in which Kafka's leader walks its map of subscriptions."""
    by_id = {member.member_id: member for member in members}
    return [by_id[member_id] for member_id in hash_order(by_id)]


def in_member_order(members: Iterable[MemberSubscription]) -> list[MemberSubscription]:
    """Static members by group.instance.id, then dynamic ones by member id."""
    return sorted(members, key=_member_order)


def _member_order(member: MemberSubscription) -> tuple[bool, bytes]:
    if member.group_instance_id is not None:
        return False, text_order(member.group_instance_id)
    return True, text_order(member.member_id)


def subscribed_topics(members: Sequence[MemberSubscription], topics: TopicRacks) -> list[str]:
    """The topics that some member wants and that have partitions, in the order in which Kafka's leader walks them."""
    wanted = hash_order(topic for member in in_hash_order(members) for topic in member.topics)
    return hash_order(topic for topic in wanted if topics.get(topic))


def are_racks_useful(member_racks: set[str], partitions: Iterable[frozenset[str]]) -> bool:
    """Whether racks can decide anything: some replica is in a member's rack, and not every partition is in all racks."""
    racks = list(partitions)
    all_racks = frozenset().union(*racks)
    return not member_racks.isdisjoint(all_racks) and any(of_one != all_racks for of_one in racks)


# The range assignor: of each topic, every member gets a run of partitions next to each other.
#
# Members are in order of id, the first ones get one partition more if it does not divide evenly. Topics with the same number
# of partitions and the same members are divided alike, which joins of co-partitioned topics need.
#
# If racks are known, a first pass gives members partitions with a replica in their rack, within the same counts.


class RangeAssignor(Assignor):
    """Kafka's `range`."""

    name = "range"

    def assign(self, members: Sequence[MemberSubscription], topics: TopicRacks) -> Assignment:
        """Divide each topic on its own, first by racks where they matter."""
        assignment: Assignment = {member.member_id: [] for member in members}
        divisions = [
            _TopicDivision(topic, topics[topic], in_member_order(m for m in in_hash_order(members) if topic in m.topics))
            for topic in subscribed_topics(members, topics)
        ]
        by_rack = any(division.is_rack_aware for division in divisions)
        if by_rack:
            _assign_by_rack(divisions, assignment)
        for division in divisions:
            _assign_ranges(division, assignment, by_rack=False)
        if by_rack:
            for partitions in assignment.values():
                partitions.sort(key=partition_order)
        return assignment


class _TopicDivision:
    """How far the partitions of one topic are divided among its members."""

    def __init__(self, topic: str, racks: Sequence[frozenset[str]], members: list[MemberSubscription]) -> None:
        self.topic = topic
        self.members = {member.member_id: member.rack or None for member in members}
        self.racks = racks
        self.unassigned = dict.fromkeys(range(len(racks)))
        self._counts = dict.fromkeys(self.members, 0)
        self._quota, self._extra = divmod(len(racks), len(self.members))
        member_racks = {rack for rack in self.members.values() if rack}
        self.has_racks = bool(member_racks)
        self.is_rack_aware = are_racks_useful(member_racks, racks)

    def matches(self, member_id: str, partition: int) -> bool:
        """Whether the member may have the partition in the pass by racks: it has no rack, or a replica is in it."""
        rack = self.members[member_id]
        return rack is None or rack in self.racks[partition]

    def room(self, member_id: str) -> int:
        """How many partitions the member may still get."""
        return max(0, self._quota + (self._extra > 0) - self._counts[member_id])

    def give(self, member_id: str, partitions: Sequence[int], assignment: Assignment) -> None:
        self._counts[member_id] += len(partitions)
        if self._counts[member_id] > self._quota:
            self._extra -= 1
        for partition in partitions:
            del self.unassigned[partition]
        assignment[member_id] += [TopicPartition(self.topic, partition) for partition in partitions]


def _assign_ranges(division: _TopicDivision, assignment: Assignment, *, by_rack: bool) -> None:
    for member_id in division.members:
        if not division.unassigned:
            return
        candidates = [p for p in division.unassigned if not by_rack or division.matches(member_id, p)]
        if chosen := candidates[: division.room(member_id)]:
            division.give(member_id, chosen, assignment)


def _assign_by_rack(divisions: list[_TopicDivision], assignment: Assignment) -> None:
    """Topics with the same members and number of partitions are kept co-partitioned; others are divided on their own."""
    alike: dict[tuple[tuple[str, ...], int], list[_TopicDivision]] = {}
    for division in divisions:
        alike.setdefault((tuple(division.members), len(division.racks)), []).append(division)
    for together in alike.values():
        if len(together) > 1:
            _assign_together(together, assignment)
        elif together[0].is_rack_aware:
            _assign_ranges(together[0], assignment, by_rack=True)


def _assign_together(divisions: list[_TopicDivision], assignment: Assignment) -> None:
    """Give partition N of all topics to the first member that has room and a replica of each in its rack."""
    if not divisions[0].has_racks:
        return
    remaining = dict.fromkeys(divisions[0].members)
    for partition in range(len(divisions[0].racks)):
        for member_id in remaining:
            if all(d.matches(member_id, partition) and d.room(member_id) > 0 for d in divisions):
                break
        else:
            continue
        for division in divisions:
            division.give(member_id, [partition], assignment)
        if not any(d.room(member_id) > 0 for d in divisions):
            del remaining[member_id]


# The round robin assignor: all partitions of all topics in order, dealt out to the members in turn.
#
# A member that does not subscribe to the partition's topic is passed over.


class RoundRobinAssignor(Assignor):
    """Kafka's `roundrobin`."""

    name = "roundrobin"

    def assign(self, members: Sequence[MemberSubscription], topics: TopicRacks) -> Assignment:
        """Deal the partitions out."""
        assignment: Assignment = {member.member_id: [] for member in members}
        ring = in_member_order(members)
        turn = 0
        for topic in sorted(subscribed_topics(members, topics), key=text_order):
            for partition in range(len(topics[topic])):
                while topic not in ring[turn].topics:
                    turn = (turn + 1) % len(ring)
                assignment[ring[turn].member_id].append(TopicPartition(topic, partition))
                turn = (turn + 1) % len(ring)
        return assignment
