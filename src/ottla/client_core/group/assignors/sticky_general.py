"""The sticky assignment of a group whose members subscribe to different topics.

Members keep what they had, new partitions go to the subscriber with the fewest, and then partitions move one by one from
members with more to members with fewer until no move helps. The result is kept only if it is better balanced than before.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence

from ottla.client_core.group.assignors.base import NO_GENERATION, Assignment, MemberSubscription, TopicRacks
from ottla.client_core.group.assignors.java_order import text_order
from ottla.client_core.group.assignors.partition_movements import PartitionMovements
from ottla.client_core.group.assignors.sticky_history import History, Ownership
from ottla.client_core.group.assignors.sticky_racks import Racks
from ottla.ids import TopicPartition


class GeneralAssignment:
    """One run of the algorithm. `members` come in hash order."""

    def __init__(
        self,
        members: Sequence[MemberSubscription],
        ownership: Ownership,
        histories: dict[str, History],
        topics: TopicRacks,
        racks: Racks,
    ) -> None:
        self._topics = topics
        self._racks = racks
        self._topics_of = {m.member_id: [topic for topic in m.topics if topic in topics] for m in members}
        self._members_of: dict[str, list[str]] = {topic: [] for topic in topics}
        for member_id, wanted in self._topics_of.items():
            for topic in wanted:
                self._members_of[topic].append(member_id)
        self._current: Assignment = {member_id: list(owned) for member_id, owned in ownership.owned.items()}
        self._owner_of = {partition: member_id for member_id, owned in self._current.items() for partition in owned}
        self._previous = _previous_owners(members, histories, ownership.generation_max)
        self._by_load = _ByLoad()
        self._movements = PartitionMovements()
        self._room = {m: sum(len(topics[topic]) for topic in set(wanted)) for m, wanted in self._topics_of.items()}

    def run(self) -> Assignment:
        """The assignment."""
        must_revoke = self._drop_unwanted()
        order = sorted(self._topics, key=lambda topic: (len(self._members_of[topic]), text_order(topic)))
        every = [TopicPartition(topic, index) for topic in order for index in range(len(self._topics[topic]))]
        kept = {partition for owned in self._current.values() for partition in owned}
        new = [partition for partition in every if partition not in kept]
        for member_id, owned in self._current.items():
            self._by_load.add(member_id, len(owned))
        is_first = not kept
        self._assign_new(new)
        fixed = self._set_fixed_aside()
        before = {member_id: list(owned) for member_id, owned in self._current.items()}
        if not must_revoke:
            self._rebalance([partition for partition in new if len(self._members_of[partition.topic]) > 1])
        moved = self._rebalance([partition for partition in every if len(self._members_of[partition.topic]) > 1])
        if moved and not is_first and _imbalance(self._current) >= _imbalance(before):
            self._current = before
        return {**self._current, **fixed}

    def _drop_unwanted(self) -> bool:
        """Take away partitions of topics that the owner no longer wants or that have no replica in its rack."""
        must_revoke = False
        for member_id, owned in self._current.items():
            wanted = self._topics_of[member_id]
            keep = [p for p in owned if p.topic in wanted and not self._racks.mismatch(member_id, p)]
            must_revoke = must_revoke or len(keep) < len(owned)
            self._current[member_id] = keep
        return must_revoke

    def _assign_new(self, partitions: list[TopicPartition]) -> None:
        if self._racks.of_member:
            partitions = [partition for partition in partitions if not self._assign(partition, by_rack=True)]
        for partition in partitions:
            self._assign(partition, by_rack=False)

    def _assign(self, partition: TopicPartition, *, by_rack: bool) -> bool:
        """Give the partition to the subscriber with the fewest; with `by_rack`, only within its rack."""
        for member_id in self._by_load:
            if partition.topic not in self._topics_of[member_id] or (by_rack and self._racks.mismatch(member_id, partition)):
                continue
            self._change_load(member_id, 1)
            self._current[member_id].append(partition)
            self._owner_of[partition] = member_id
            return True
        return False

    def _change_load(self, member_id: str, by: int) -> None:
        count = len(self._current[member_id])
        self._by_load.remove(member_id, count)
        self._by_load.add(member_id, count + by)

    def _set_fixed_aside(self) -> Assignment:
        """Take out the members that have all they can have, and nothing that another member could have."""
        fixed = {}
        for member_id in self._topics_of:
            owned = self._current[member_id]
            if len(owned) >= self._room[member_id] and all(len(self._members_of[p.topic]) < 2 for p in owned):
                self._by_load.remove(member_id, len(owned))
                fixed[member_id] = self._current.pop(member_id)
        return fixed

    def _rebalance(self, partitions: list[TopicPartition]) -> bool:
        """Move partitions until no move helps; say whether any was moved."""
        moved_any = False
        moved = True
        while moved:
            moved = False
            for partition in partitions:
                if self._is_balanced():
                    break
                if (target := self._better_owner(partition)) is not None:
                    self._move(partition, target)
                    moved = moved_any = True
        return moved_any

    def _better_owner(self, partition: TopicPartition) -> str | None:
        """The previous owner if it has fewer partitions, else the subscriber with the fewest, if that one has fewer."""
        owner = self._owner_of[partition]
        limit = len(self._current[owner]) - 1
        previous = self._previous.get(partition, "")
        # Kafka's assignor also gives the partition back to a previous owner that no longer subscribes to its topic.
        is_candidate = previous in self._current and partition.topic in self._topics_of[previous]
        if is_candidate and len(self._current[previous]) < limit:
            return previous
        if any(len(self._current[other]) < limit for other in self._members_of[partition.topic]):
            return next(member_id for member_id in self._by_load if partition.topic in self._topics_of[member_id])
        return None

    def _move(self, wanted: TopicPartition, target: str) -> None:
        partition = self._movements.better_choice(wanted, self._owner_of[wanted], target)
        source = self._owner_of[partition]
        self._movements.record(partition, source, target)
        self._change_load(source, -1)
        self._current[source].remove(partition)
        self._change_load(target, 1)
        self._current[target].append(partition)
        self._owner_of[partition] = target

    def _is_balanced(self) -> bool:
        """No member could take a partition from one that has at least two more."""
        fewest, most = self._by_load.extremes()
        if fewest >= most - 1:
            return True
        for member_id in self._by_load:
            count = len(self._current[member_id])
            if count == self._room[member_id]:
                continue
            for topic in self._topics_of[member_id]:
                for index in range(len(self._topics[topic])):
                    owner = self._owner_of[TopicPartition(topic, index)]
                    if owner != member_id and count + 1 < len(self._current[owner]):
                        return False
        return True


class _ByLoad:
    """Members in order of how many partitions they have, then of their ids."""

    def __init__(self) -> None:
        self._entries: list[tuple[int, bytes, str]] = []

    def __iter__(self) -> Iterator[str]:
        return iter([member_id for _, _, member_id in self._entries])

    def extremes(self) -> tuple[int, int]:
        """The smallest and the largest number of partitions."""
        return (self._entries[0][0], self._entries[-1][0]) if self._entries else (0, 0)

    def add(self, member_id: str, count: int) -> None:
        insort(self._entries, (count, text_order(member_id), member_id))

    def remove(self, member_id: str, count: int) -> None:
        del self._entries[bisect_left(self._entries, (count, text_order(member_id), member_id))]


def _previous_owners(
    members: Sequence[MemberSubscription], histories: dict[str, History], generation_max: int
) -> dict[TopicPartition, str]:
    """Who owned partitions in older generations: the newest of those claims for each."""
    newest: dict[TopicPartition, tuple[int, str]] = {}
    for member in members:
        partitions, said = histories[member.member_id]
        generation = NO_GENERATION if said is None else said
        if generation >= generation_max:
            continue
        for partition in partitions:
            if partition not in newest or generation > newest[partition][0]:
                newest[partition] = generation, member.member_id
    return {partition: member_id for partition, (_, member_id) in newest.items()}


def _imbalance(assignment: Assignment) -> int:
    """The sum of the differences in size between all pairs of members."""
    sizes = sorted(map(len, assignment.values()))
    return sum(size * (2 * index - len(sizes) + 1) for index, size in enumerate(sizes))
