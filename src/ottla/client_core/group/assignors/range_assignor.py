"""The range assignor: of each topic, every member gets a run of partitions next to each other.

Members are in order of id, the first ones get one partition more if it does not divide evenly. Topics with the same number of
partitions and the same members are divided alike, which joins of co-partitioned topics need.

If racks are known, a first pass gives members partitions with a replica in their rack, within the same counts.
"""

from __future__ import annotations

from collections.abc import Sequence

from ottla.client_core.group.assignors.base import Assignment, Assignor, MemberSubscription, TopicRacks
from ottla.client_core.group.assignors.java_order import partition_order
from ottla.client_core.group.assignors.members import are_racks_useful, in_hash_order, in_member_order, subscribed_topics
from ottla.ids import TopicPartition


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
