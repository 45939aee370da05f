"""The assignors `uniform` and `range`, their input and their output.

The uniform assignor spreads partitions evenly over the members, and moves as few as possible.

If all members read the same topics, their partition counts differ by at most one: each keeps its partitions up to its share,
and the others go to members below theirs. If not, unassigned partitions go to the reader with the fewest, topic by topic; then
single partitions move from readers with the most to those with the fewest, as long as that makes the counts more equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from ottla.ids import Uuid

# The input and output of an assignor, without records or epochs.

Assignment = Mapping[Uuid, tuple[int, ...]]
"""Topic → partitions, in order."""


class AssignedMember(NamedTuple):
    """A member as an assignor sees it."""

    instance_id: str | None
    topics: frozenset[Uuid]
    """The existing topics that it reads."""
    before: Assignment
    """Its previous target."""


class GroupView(NamedTuple):
    """A group as an assignor sees it."""

    members: Mapping[str, AssignedMember]
    is_homogeneous: bool
    """All members read the same topics."""
    partition_counts: Mapping[Uuid, int]
    """Topic → number of partitions, for every topic that a member reads."""


Assignor = Callable[[GroupView], dict[str, Assignment]]
"""Returns member id → target, for every member."""


Partition = tuple[Uuid, int]

_BALANCE_ROUNDS_MAX = 16
"""Full balance of overlapping subscriptions can take many rounds; each round about halves the imbalance."""


def assign_uniformly(view: GroupView) -> dict[str, Assignment]:
    held = _kept(view)
    if view.is_homogeneous:
        _share_alike(view, held)
    else:
        _share_among_readers(view, held)
    return {member_id: _by_topic(partitions) for member_id, partitions in held.items()}


def _kept(view: GroupView) -> dict[str, list[Partition]]:
    """The partitions that each member had of topics it still reads; members in order, each partition once."""
    taken: set[Partition] = set()
    held: dict[str, list[Partition]] = {}
    for member_id in sorted(view.members):
        member = view.members[member_id]
        kept = held[member_id] = []
        for topic_id, partitions in member.before.items():
            if topic_id in member.topics:
                count = view.partition_counts[topic_id]
                kept += [(topic_id, each) for each in partitions if each < count and (topic_id, each) not in taken]
        taken.update(kept)
    return held


def _unassigned(view: GroupView, held: Mapping[str, list[Partition]]) -> list[Partition]:
    taken = {partition for partitions in held.values() for partition in partitions}
    return [
        (topic_id, index)
        for topic_id in sorted(view.partition_counts)
        for index in range(view.partition_counts[topic_id])
        if (topic_id, index) not in taken
    ]


def _share_alike(view: GroupView, held: dict[str, list[Partition]]) -> None:
    least, with_one_more = divmod(sum(view.partition_counts.values()), len(held))
    free = _unassigned(view, held)
    # Members above the minimum keep one extra partition while there are extra ones to give.
    shares = {}
    for member_id, partitions in held.items():
        one_more = len(partitions) > least and with_one_more > 0
        with_one_more -= one_more
        shares[member_id] = least + one_more
    for member_id, partitions in held.items():
        if with_one_more > 0 and shares[member_id] == least:
            with_one_more -= 1
            shares[member_id] += 1
        free += partitions[shares[member_id] :]
        del partitions[shares[member_id] :]
    free.reverse()  # popped from the end below
    for member_id, partitions in held.items():
        while len(partitions) < shares[member_id]:
            partitions.append(free.pop())


def _share_among_readers(view: GroupView, held: dict[str, list[Partition]]) -> None:
    readers: dict[Uuid, list[str]] = {}
    for member_id in held:
        for topic_id in view.members[member_id].topics:
            readers.setdefault(topic_id, []).append(member_id)
    counts = view.partition_counts
    # Topics with many partitions per reader come first: the later topics can even out the difference.
    ordered = sorted(readers, key=lambda each: (-counts[each] / len(readers[each]), len(readers[each]), each))
    free: dict[Uuid, list[Partition]] = {}
    for partition in _unassigned(view, held):
        free.setdefault(partition[0], []).append(partition)
    for topic_id in ordered:
        _give(held, readers[topic_id], free.get(topic_id, ()))
    shared = [topic_id for topic_id in ordered if len(readers[topic_id]) > 1]
    for _ in range(_BALANCE_ROUNDS_MAX):
        moved = [_balance(held, readers[topic_id], topic_id) for topic_id in shared]
        if not any(moved):
            break


def _give(held: dict[str, list[Partition]], readers: list[str], partitions: Iterable[Partition]) -> None:
    """Give each partition to the reader with the fewest at that point."""
    waiting = [(len(held[member_id]), index) for index, member_id in enumerate(readers)]
    heapify(waiting)
    for partition in partitions:
        size, index = heappop(waiting)
        held[readers[index]].append(partition)
        heappush(waiting, (size + 1, index))


def _balance(held: dict[str, list[Partition]], readers: list[str], topic_id: Uuid) -> bool:
    """Move partitions of one topic from readers with more to readers with fewer. Returns whether any moved."""
    givers = [
        (-len(held[member_id]), index, [each for each in held[member_id] if each[0] == topic_id])
        for index, member_id in enumerate(readers)
    ]
    givers = [giver for giver in givers if giver[2]]
    takers = [(len(held[member_id]), index) for index, member_id in enumerate(readers)]
    heapify(givers)
    heapify(takers)
    moved = False
    while givers:
        most, giver, own = givers[0]
        least, taker = takers[0]
        if least != len(held[readers[taker]]):  # a stale heap entry: it gave some away since
            heappop(takers)
            heappush(takers, (len(held[readers[taker]]), taker))
            continue
        if -most != len(held[readers[giver]]):  # a stale heap entry: it got or gave some since
            heappop(givers)
            heappush(givers, (-len(held[readers[giver]]), giver, own))
            continue
        if -most - least <= 1:
            break
        partition = own.pop()
        held[readers[giver]].remove(partition)
        held[readers[taker]].append(partition)
        moved = True
        heappop(givers)
        if own:
            heappush(givers, (most + 1, giver, own))
        heappop(takers)
        heappush(takers, (least + 1, taker))
    return moved


def _by_topic(partitions: Iterable[Partition]) -> Assignment:
    found: dict[Uuid, list[int]] = {}
    for topic_id, index in sorted(partitions):
        found.setdefault(topic_id, []).append(index)
    return {topic_id: tuple(indexes) for topic_id, indexes in found.items()}


# The range assignor: each member gets a contiguous range of every topic that it reads, in the same member order.
#
# Where members read the same topics and the topics have equal partition counts, a member gets the same partition numbers of
# each topic (co-partitioning). Static members come first, by instance id, so that a restart moves no partition.


def assign_ranges(view: GroupView) -> dict[str, Assignment]:
    members = view.members

    def place(member_id: str) -> tuple[bool, str]:
        instance_id = members[member_id].instance_id
        return (True, member_id) if instance_id is None else (False, instance_id)

    ordered = sorted(members, key=place)
    readers: dict[Uuid, list[str]] = {}
    for member_id in ordered:
        for topic_id in members[member_id].topics:
            readers.setdefault(topic_id, []).append(member_id)
    targets: dict[str, dict[Uuid, tuple[int, ...]]] = {member_id: {} for member_id in ordered}
    for topic_id in sorted(readers):
        least, extra = divmod(view.partition_counts[topic_id], len(readers[topic_id]))
        start = 0
        for index, member_id in enumerate(readers[topic_id]):
            end = start + least + (index < extra)
            if end > start:
                targets[member_id][topic_id] = tuple(range(start, end))
            start = end
    return dict(targets)
