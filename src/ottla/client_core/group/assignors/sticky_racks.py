"""Which members and replicas share racks, for the sticky assignors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ottla.client_core.group.assignors.base import MemberSubscription, TopicRacks
from ottla.client_core.group.assignors.members import are_racks_useful
from ottla.ids import TopicPartition


class Racks:
    """The racks of a group. If racks cannot decide anything, no member has one here."""

    def __init__(self, members: Sequence[MemberSubscription], topics: TopicRacks) -> None:
        self.of_member = {member.member_id: member.rack for member in members if member.rack}
        self._topics = topics
        partitions = [racks for topic in topics.values() for racks in topic]
        if not are_racks_useful(set(self.of_member.values()), partitions):
            self.of_member = {}
        self._members_in = Counter(self.of_member.values())

    def of_partition(self, partition: TopicPartition) -> frozenset[str]:
        """The racks of its replicas."""
        return self._topics[partition.topic][partition.partition]

    def mismatch(self, member_id: str, partition: TopicPartition) -> bool:
        """Whether the member has a rack, and no replica is in it."""
        rack = self.of_member.get(member_id)
        return rack is not None and rack not in self.of_partition(partition)

    def in_order_of_choice(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Those that the fewest members can read in their own rack come first."""
        if not self.of_member:
            return partitions
        return sorted(partitions, key=lambda partition: sum(self._members_in[rack] for rack in self.of_partition(partition)))

    def next_member(self, partition: TopicPartition, members: Sequence[str], start: int) -> int:
        """The index of the first member from `start` on, going round, with a replica in its rack; -1 if there is none."""
        racks = self.of_partition(partition)
        for step in range(len(members)):
            index = (start + step) % len(members)
            if self.of_member.get(members[index]) in racks:
                return index
        return -1
