"""The sticky and the cooperative-sticky assignor: balanced, with as few partitions moved as possible.

Both compute the same; they differ in how members say what they owned, and in that cooperative-sticky
withholds a partition that another member still has. That member gives it up, and the next rebalance hands it on.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterator, Sequence
from struct import Struct
from struct import error as StructError
from typing import NamedTuple

from ottla.client_core.group.assignors import (
    NO_GENERATION,
    Assignment,
    Assignor,
    MemberSubscription,
    PartitionSet,
    RebalanceProtocol,
    TopicRacks,
    are_racks_useful,
    hash_order,
    in_hash_order,
    subscribed_topics,
    text_order,
)
from ottla.ids import TopicPartition

# What members of a sticky group owned before: read from their subscriptions, with contradictory claims settled.
#
# The sticky assignor is eager, so its members join with nothing; each sends its last assignment as user data:
#
#     int32 count of topics, each: string topic, int32 count, int32 partitions | int32 generation (missing in old versions)
#
# Cooperative-sticky members keep what they own while they join, and their subscriptions say it.

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


# Which members and replicas share racks, for the sticky assignors.


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


# The sticky assignment of a group whose members subscribe to different topics.
#
# Members keep what they had, new partitions go to the subscriber with the fewest, and then partitions move one by one from
# members with more to members with fewer until no move helps. The result is kept only if it is better balanced than before.

# The moves of one rebalance, so that a partition is moved back instead of another one being moved the other way.


class Move(NamedTuple):
    """From one member to another."""

    source: str
    target: str


class PartitionMovements:
    """Which partitions have moved between which members."""

    def __init__(self) -> None:
        self._moves: dict[TopicPartition, Move] = {}
        self._by_topic: dict[str, dict[Move, PartitionSet]] = {}

    def record(self, partition: TopicPartition, source: str, target: str) -> None:
        """`partition` moves; two moves in a row become one, a move back none."""
        before = self._moves.get(partition)
        if before is None:
            self._add(partition, Move(source, target))
            return
        self._remove(partition)
        if before.source != target:
            self._add(partition, Move(before.source, target))

    def better_choice(self, partition: TopicPartition, source: str, target: str) -> TopicPartition:
        """What to move instead of `partition`: one of its topic that came the opposite way, if there is one."""
        if partition in self._moves:
            source = self._moves[partition].source
        opposite = self._by_topic.get(partition.topic, {}).get(Move(target, source))
        return next(iter(opposite)) if opposite else partition

    def _add(self, partition: TopicPartition, move: Move) -> None:
        self._moves[partition] = move
        self._by_topic.setdefault(partition.topic, {}).setdefault(move, PartitionSet()).add(partition)

    def _remove(self, partition: TopicPartition) -> None:
        move = self._moves.pop(partition)
        moves = self._by_topic[partition.topic]
        moves[move].remove(partition)
        if not moves[move]:
            del moves[move]


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


# The sticky assignment of a group whose members all subscribe to the same topics.
#
# Every member gets the same number of partitions or one more: `quota`, or `quota` + 1 for as many members as the division
# leaves over. Members keep what they had up to that; what remains is dealt out in order, in the member's rack where racks are
# known.


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


_GENERATION = Struct(">i")


class StickyAssignor(Assignor):
    """Kafka's `sticky`."""

    name = "sticky"

    def __init__(self) -> None:
        self._last: tuple[tuple[TopicPartition, ...], int] | None = None

    def subscription_user_data(self, topics: frozenset[str]) -> bytes | None:
        """The last assignment: an eager member joins with nothing."""
        return write_sticky_user_data(*self._last) if self._last is not None else None

    def on_assignment(self, partitions: Sequence[TopicPartition], generation: int) -> None:
        """Remember it for the next join."""
        self._last = tuple(partitions), generation

    def assign(self, members: Sequence[MemberSubscription], topics: TopicRacks) -> Assignment:
        """Keep, then balance."""
        histories = {member.member_id: read_sticky_user_data(member.user_data) for member in members}
        return _assign(members, topics, histories)[0]


class CooperativeStickyAssignor(Assignor):
    """Kafka's `cooperative-sticky`."""

    name = "cooperative-sticky"
    protocols = (RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER)

    def __init__(self) -> None:
        self._generation = NO_GENERATION

    def subscription_user_data(self, topics: frozenset[str]) -> bytes | None:
        """The generation of the last assignment, for leaders that do not read it from the subscription."""
        return _GENERATION.pack(self._generation)

    def on_assignment(self, partitions: Sequence[TopicPartition], generation: int) -> None:
        """Remember the generation."""
        self._generation = generation

    def assign(self, members: Sequence[MemberSubscription], topics: TopicRacks) -> Assignment:
        """Keep, balance, and withhold what another member has yet to give up."""
        histories = {member.member_id: _history(member) for member in members}
        assignment, transferred = _assign(members, topics, histories)
        if transferred is None:
            transferred = _transferred(members, assignment)
        for partition, member_id in transferred.items():
            assignment[member_id].remove(partition)
        return assignment


def _history(member: MemberSubscription) -> History:
    """What a cooperative member owns. Old clients say the generation in their user data."""
    if member.generation >= 0:
        return History(member.owned, member.generation)
    if member.user_data is None:
        return History(member.owned, None)
    if len(member.user_data) < _GENERATION.size:
        return History(member.owned, NO_GENERATION)
    return History(member.owned, int(_GENERATION.unpack_from(member.user_data)[0]))


def _assign(
    members: Sequence[MemberSubscription], topics: TopicRacks, histories: dict[str, History]
) -> tuple[Assignment, dict[TopicPartition, str] | None]:
    """The assignment, and the partitions that go from one member straight to another with their new owners, if known."""
    members = in_hash_order(members)
    topics = {topic: topics[topic] for topic in subscribed_topics(members, topics)}
    racks = Racks(members, topics)
    ownership = settle(members, histories, topics)
    if ownership.are_alike:
        constrained = ConstrainedAssignment(ownership, topics, racks)
        return constrained.run(), constrained.transferred
    return GeneralAssignment(members, ownership, histories, topics, racks).run(), None


def _transferred(members: Sequence[MemberSubscription], assignment: Assignment) -> dict[TopicPartition, str]:
    """Partitions that some member owns and another one gets."""
    owned = {member.member_id: set(member.owned) for member in members}
    given_up = {p for member_id, has in owned.items() for p in has.difference(assignment[member_id])}
    return {p: member_id for member_id, gets in assignment.items() for p in gets if p in given_up and p not in owned[member_id]}
