"""One member of a consumer group: what records tell of it. Immutable: a change makes another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import NamedTuple

from ottla.coordinator.groups.memory import MEMBER_BYTES, PARTITION_BYTES, size_of
from ottla.ids import Uuid

JOIN_EPOCH = 0
"""Of a member that joins, or that begins again without partitions."""
LEAVE_EPOCH = -1
LEAVE_STATIC_EPOCH = -2
"""Of a static member that will be back: what it holds stays its own until its session is over."""

EpochsOf = Mapping[Uuid, Mapping[int, int]]
"""Topic → partition → the group's epoch in which the member was given it."""
Partitions = Mapping[Uuid, tuple[int, ...]]
"""Topic → partitions, in order."""

NO_PARTITIONS: EpochsOf = {}


class MemberState(IntEnum):
    """How far a member is on its way to its target. The numbers are those of records."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    """It was told to give up partitions, and has not said that it did."""
    UNRELEASED_PARTITIONS = 2
    """It is in the newest epoch, and waits for partitions that others still hold."""
    UNKNOWN = 127
    """A newer version of Kafka wrote a state that this one does not have."""

    @classmethod
    def of(cls, number: int) -> MemberState:
        return cls(number) if number in (0, 1, 2) else cls.UNKNOWN


class ClassicProtocol(NamedTuple):
    """A way to assign that a member of the classic protocol can follow, with its subscription as it sent it."""

    name: str
    metadata: bytes


class ClassicSide(NamedTuple):
    """What is known of a member that speaks the classic protocol, beyond what others have."""

    session_timeout_ms: int
    protocols: tuple[ClassicProtocol, ...]


class ConsumerMember(NamedTuple):
    """A member. One that is not in any record yet has the defaults."""

    member_id: str
    epoch: int = JOIN_EPOCH
    previous_epoch: int = -1
    """Answers with a new epoch can be lost: the last one is accepted too, from who holds nothing it was not given."""
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    topics: tuple[str, ...] = ()
    """The topics it subscribed to by name, sorted, each once."""
    regex: str | None = ""
    assignor: str | None = None
    assigned: EpochsOf = NO_PARTITIONS
    """What it holds, or was told to take."""
    revoking: EpochsOf = NO_PARTITIONS
    """What it was told to give up and may still hold."""
    classic: ClassicSide | None = None

    @property
    def is_classic(self) -> bool:
        return self.classic is not None

    @property
    def has_left_for_now(self) -> bool:
        return self.epoch == LEAVE_STATIC_EPOCH

    def is_reconciled_to(self, epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.epoch == epoch

    def in_epoch(self, epoch: int) -> ConsumerMember:
        """The same in `epoch`; the one it was in before stays known."""
        return self._replace(epoch=epoch, previous_epoch=self.epoch)

    @property
    def size_bytes(self) -> int:
        """What it takes, about."""
        protocols = () if self.classic is None else self.classic.protocols
        parts = [part for protocol in protocols for part in protocol]
        held = sum(len(indexes) for given in (self.assigned, self.revoking) for indexes in given.values())
        texts = size_of(self.member_id, self.instance_id, self.rack_id, self.client_id, self.regex, *self.topics)
        return MEMBER_BYTES + PARTITION_BYTES * held + texts + size_of(*parts)

    def given_epoch(self, topic_id: Uuid, partition: int) -> int | None:
        """Since which epoch it holds the partition; None if it does not."""
        for held in (self.assigned, self.revoking):
            epoch = held.get(topic_id, {}).get(partition)
            if epoch is not None:
                return epoch
        return None

    def held(self) -> Partitions:
        """What it may be at work on: what it was given, and what it has not said to have given up."""
        topic_ids = dict.fromkeys((*self.assigned, *self.revoking))
        return {topic_id: (*self.assigned.get(topic_id, ()), *self.revoking.get(topic_id, ())) for topic_id in topic_ids}

    def __str__(self) -> str:
        return self.member_id if self.instance_id is None else f"{self.member_id} (instance {self.instance_id})"


def sorted_topics(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(names)))


def with_epoch(partitions: Partitions, epoch: int) -> EpochsOf:
    return {topic_id: dict.fromkeys(indexes, epoch) for topic_id, indexes in partitions.items()}
