"""Places the replicas of new partitions: striped over racks, and over the brokers within each rack. Pure.

Every partition starts one rack further, and every rack one broker further, from a random start. So leaders and
replicas are spread evenly, no rack holds a partition twice while another has none of it, and two topics do not begin on the
same broker. A fenced broker leads nothing new, and gets a replica only when its rack has no other broker left. Once every live
broker has led, the order is shuffled, so that the same brokers do not always share partitions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode

if TYPE_CHECKING:
    from ottla.env.world import Randomness

T = TypeVar("T")


class UsableBroker(NamedTuple):
    """A broker that new replicas may go to."""

    id: int
    rack: str | None
    fenced: bool


def place_replicas(
    brokers: list[UsableBroker], partitions: int, replication_factor: int, randomness: Randomness
) -> list[list[int]]:
    """The replicas of each partition, preferred leader first; INVALID_REPLICATION_FACTOR if there are too few brokers."""
    if replication_factor <= 0:
        raise _refused(f"a partition needs at least one replica, not {replication_factor}")
    if replication_factor > len(brokers):
        raise _refused(
            f"{replication_factor} replicas need as many brokers, and the cluster has {len(brokers)} that take new ones. Ask "
            "for fewer, or start more brokers; one that shuts down or whose log directories are all cordoned does not count"
        )
    live = sum(not broker.fenced for broker in brokers)
    if live == 0:
        raise _refused("all brokers are fenced: none can lead a new partition")
    racks = _Racks(brokers, live, randomness)
    return [racks.place(replication_factor) for _ in range(partitions)]


class _Ring:
    """Brokers in turn: each round begins one further, and ends when every broker had a turn."""

    def __init__(self, brokers: list[int], randomness: Randomness) -> None:
        self._brokers = sorted(brokers)
        self._start = randomness.below(len(brokers)) if brokers else 0
        self._taken = 0
        self._round = 0

    def next(self, round_: int) -> int | None:
        size = len(self._brokers)
        if size == 0:
            return None
        if round_ != self._round:
            self._round, self._taken, self._start = round_, 0, (self._start + 1) % size
        if self._taken == size:
            return None
        self._taken += 1
        return self._brokers[(self._start + self._taken - 1) % size]

    def shuffle(self, randomness: Randomness) -> None:
        _shuffle(self._brokers, randomness)


class _Racks:
    """The racks in turn."""

    def __init__(self, brokers: list[UsableBroker], live: int, randomness: Randomness) -> None:
        names = sorted({broker.rack for broker in brokers}, key=lambda rack: (rack is not None, rack or ""))
        self._racks = [
            tuple(
                _Ring([each.id for each in brokers if each.rack == name and each.fenced is fenced], randomness)
                for fenced in (False, True)
            )
            for name in names
        ]
        self._live = live
        self._randomness = randomness
        self._start = randomness.below(len(names))
        self._round = 0

    def place(self, replication_factor: int) -> list[int]:
        if self._live > 1 and self._round and self._round % self._live == 0:
            self._shuffle()
        count = len(self._racks)
        self._start %= count
        leader_rack = self._start
        while (leader := self._racks[leader_rack][0].next(self._round)) is None:
            leader_rack = (leader_rack + 1) % count
        replicas = [leader]
        rack, skip = self._start, leader_rack
        while len(replicas) < replication_factor:
            if rack == skip:
                skip = -1  # this rack's turn went to the leader
            elif (replica := self._next_of(rack)) is not None:
                replicas.append(replica)
            rack = (rack + 1) % count
        self._round += 1
        self._start += 1
        return replicas

    def _next_of(self, rack: int) -> int | None:
        live, fenced = self._racks[rack]
        replica = live.next(self._round)
        return fenced.next(self._round) if replica is None else replica

    def _shuffle(self) -> None:
        _shuffle(self._racks, self._randomness)
        for rings in self._racks:
            for ring in rings:
                ring.shuffle(self._randomness)


def _shuffle(items: list[T], randomness: Randomness) -> None:
    for last in range(len(items) - 1, 0, -1):
        other = randomness.below(last + 1)
        items[last], items[other] = items[other], items[last]


def _refused(why: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, f"The partition cannot be replicated so: {why}")
