"""The sticky assignment of a group whose members all subscribe to the same topics.

Every member gets the same number of partitions or one more: `quota`, or `quota` + 1 for as many members as the division leaves
over. Members keep what they had up to that; what remains is dealt out in order, in the member's rack where racks are known.
"""

from __future__ import annotations

from ottla.client_core.group.assignors.base import Assignment, TopicRacks
from ottla.client_core.group.assignors.java_order import text_order
from ottla.client_core.group.assignors.sticky_history import Ownership
from ottla.client_core.group.assignors.sticky_racks import Racks
from ottla.ids import TopicPartition


class ConstrainedAssignment:
    """One run of the algorithm. `transferred` then holds the partitions that go from one member straight to another."""

    def __init__(self, ownership: Ownership, topics: TopicRacks, racks: Racks) -> None:
        self.assignment: Assignment = {member_id: [] for member_id in ownership.owned}
        self.transferred: dict[TopicPartition, str] = {}
        self._ownership = ownership
        self._topics = topics
        self._racks = racks
        count = sum(map(len, topics.values()))
        self._quota, self._bigger_expected = divmod(count, len(ownership.owned))
        self._quota_max = self._quota + (self._bigger_expected > 0)
        self._bigger = 0
        """How many members have `quota_max` partitions so far, if that is more than the quota."""
        self._below_quota: list[str] = []
        self._at_quota: list[str] = []
        """Members with exactly the quota that may still get one more."""
        self._given_up: dict[TopicPartition, str] = {}

    def run(self) -> Assignment:
        """The assignment."""
        for member_id in self._ownership.owned:
            self._keep_owned(member_id)
        self._below_quota.sort(key=text_order)
        self._at_quota.sort(key=text_order)
        kept = {partition for partitions in self.assignment.values() for partition in partitions}
        every = [
            TopicPartition(t, index) for t in sorted(self._topics, key=text_order) for index in range(len(self._topics[t]))
        ]
        left = self._racks.in_order_of_choice([partition for partition in every if partition not in kept])
        if self._racks.of_member:
            left = self._deal_by_rack(left)
        self._deal(left)
        return self.assignment

    def _keep_owned(self, member_id: str) -> None:
        owned = []
        for partition in self._ownership.owned[member_id]:
            if self._racks.mismatch(member_id, partition):
                self._given_up[partition] = member_id
            elif partition not in self._ownership.contested:
                owned.append(partition)
        owned.sort(key=lambda partition: (partition.partition, text_order(partition.topic)))
        if len(owned) < self._quota:
            keep = len(owned)
            self._below_quota.append(member_id)
        elif len(owned) >= self._quota_max and self._bigger < self._bigger_expected:
            keep = self._quota_max
            self._count_bigger()
        else:
            keep = self._quota
            if self._bigger < self._bigger_expected:
                self._at_quota.append(member_id)
        self.assignment[member_id] += owned[:keep]
        self._given_up.update(dict.fromkeys(owned[keep:], member_id))

    def _count_bigger(self) -> None:
        self._bigger += 1
        if self._bigger == self._bigger_expected:
            self._at_quota.clear()

    def _deal_by_rack(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Deal to members with a replica in their rack; return what has no such member with room."""
        left = []
        turn = 0
        for partition in partitions:
            index = self._racks.next_member(partition, self._below_quota, turn)
            if index >= 0:
                member_id = self._below_quota[index]
                turn = self._next_turn(member_id, index)
            else:
                index = self._racks.next_member(partition, self._at_quota, 0)
                if index < 0:
                    left.append(partition)
                    continue
                member_id = self._at_quota[index]
                if len(self.assignment[member_id]) + 1 == self._quota_max:
                    del self._at_quota[index]
                    self._count_bigger()
            self._give(partition, member_id)
        return left

    def _next_turn(self, member_id: str, index: int) -> int:
        """Who is next after this member below the quota gets one more; it leaves the list when it reaches the quota."""
        count = len(self.assignment[member_id]) + 1
        if count < self._quota:
            index += 1
        else:
            self._below_quota.remove(member_id)
            if count < self._quota_max and self._bigger < self._bigger_expected:
                self._at_quota.append(member_id)
        return index % len(self._below_quota) if self._below_quota else 0

    def _deal(self, partitions: list[TopicPartition]) -> None:
        """Deal to members below the quota in turn, then one more each to those at it."""
        turn = 0
        for partition in partitions:
            if not self._below_quota:
                self._give(partition, self._at_quota.pop(0))
                continue
            turn = turn if turn < len(self._below_quota) else 0
            member_id = self._below_quota[turn]
            self._give(partition, member_id)
            if len(self.assignment[member_id]) == self._quota:
                del self._below_quota[turn]
                self._at_quota.append(member_id)
            else:
                turn += 1

    def _give(self, partition: TopicPartition, member_id: str) -> None:
        self.assignment[member_id].append(partition)
        if self._given_up.get(partition, member_id) != member_id or partition in self._ownership.contested:
            self.transferred[partition] = member_id
