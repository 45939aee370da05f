"""The uniform assignor: everybody holds as much as everybody else, or one more; as little as possible moves.

Where all members read the same topics, each keeps what it had up to its share, and what is over goes to those below theirs.
Where they do not, what nobody may keep goes to the reader with the least, topic by topic, and then single partitions move from
those with the most to those with the least, as long as that makes them more equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from heapq import heapify, heappop, heappush

from ottla.coordinator.groups.consumer.assignors.view import Assignment, GroupView
from ottla.ids import Uuid

Partition = tuple[Uuid, int]

_BALANCE_ROUNDS_MAX = 16
"""Overlapping subscriptions can take long to be balanced wholly; each round about halves what is missing."""


def assign_uniformly(view: GroupView) -> dict[str, Assignment]:
    held = _kept(view)
    if view.is_homogeneous:
        _share_alike(view, held)
    else:
        _share_among_readers(view, held)
    return {member_id: _by_topic(partitions) for member_id, partitions in held.items()}


def _kept(view: GroupView) -> dict[str, list[Partition]]:
    """What each member had of topics it still reads, members in order, each partition once."""
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
    # Those with more than the least keep the one more they have, as far as there are ones more to be had.
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
    free.reverse()  # taken from the end
    for member_id, partitions in held.items():
        while len(partitions) < shares[member_id]:
            partitions.append(free.pop())


def _share_among_readers(view: GroupView, held: dict[str, list[Partition]]) -> None:
    readers: dict[Uuid, list[str]] = {}
    for member_id in held:
        for topic_id in view.members[member_id].topics:
            readers.setdefault(topic_id, []).append(member_id)
    counts = view.partition_counts
    # Where there is much to share among few comes first: the others can make up for it.
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
    """Each to the reader that has the least then."""
    waiting = [(len(held[member_id]), index) for index, member_id in enumerate(readers)]
    heapify(waiting)
    for partition in partitions:
        size, index = heappop(waiting)
        held[readers[index]].append(partition)
        heappush(waiting, (size + 1, index))


def _balance(held: dict[str, list[Partition]], readers: list[str], topic_id: Uuid) -> bool:
    """Move partitions of one topic from readers with more to readers with less. Whether any moved."""
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
        if least != len(held[readers[taker]]):  # it gave some away since
            heappop(takers)
            heappush(takers, (len(held[readers[taker]]), taker))
            continue
        if -most != len(held[readers[giver]]):  # it was given some since, or gave: then its place is another
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
