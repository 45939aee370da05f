"""ConsumerMember: the recorded state of one member of a consumer group. Immutable: a change makes a new one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import NamedTuple

from ottla.coordinator.groups.memory import MEMBER_BYTES, PARTITION_BYTES, size_of
from ottla.ids import Uuid

JOIN_EPOCH = 0
"""The epoch of a member that joins, or that starts over without partitions."""
LEAVE_EPOCH = -1
LEAVE_STATIC_EPOCH = -2
"""The epoch of a static member that leaves temporarily: it keeps its partitions until its session expires."""

EpochsOf = Mapping[Uuid, Mapping[int, int]]
"""Topic → partition → the group's epoch in which it was assigned to the member."""
Partitions = Mapping[Uuid, tuple[int, ...]]
"""Topic → partitions, in order."""

NO_PARTITIONS: EpochsOf = {}


class MemberState(IntEnum):
    """How far a member has been reconciled with its target. The numbers are those in records."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    """It must revoke partitions, and has not confirmed that."""
    UNRELEASED_PARTITIONS = 2
    """It is in the newest epoch, and waits for partitions that other members still hold."""
    UNKNOWN = 127
    """A state that a newer version of Kafka wrote."""

    @classmethod
    def of(cls, number: int) -> MemberState:
        return cls(number) if number in (0, 1, 2) else cls.UNKNOWN


class ClassicProtocol(NamedTuple):
    """An assignment protocol that a classic member supports, with the bytes of its subscription."""

    name: str
    metadata: bytes


class ClassicSide(NamedTuple):
    """The additional state of a classic member."""

    session_timeout_ms: int
    protocols: tuple[ClassicProtocol, ...]


class ConsumerMember(NamedTuple):
    """A member. A new one, in no record yet, has the defaults."""

    member_id: str
    epoch: int = JOIN_EPOCH
    previous_epoch: int = -1
    """A response with a new epoch can be lost: the previous epoch is accepted if the member owns only assigned partitions."""
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    topics: tuple[str, ...] = ()
    """The topics that it subscribed to by name, sorted, each once."""
    regex: str | None = ""
    assignor: str | None = None
    assigned: EpochsOf = NO_PARTITIONS
    """The partitions assigned to it."""
    revoking: EpochsOf = NO_PARTITIONS
    """The partitions that it must revoke and may still hold."""
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
        """The member in `epoch`, with its current epoch as the previous one."""
        return self._replace(epoch=epoch, previous_epoch=self.epoch)

    @property
    def size_bytes(self) -> int:
        """The approximate memory of the member."""
        protocols = () if self.classic is None else self.classic.protocols
        parts = [part for protocol in protocols for part in protocol]
        held = sum(len(indexes) for given in (self.assigned, self.revoking) for indexes in given.values())
        texts = size_of(self.member_id, self.instance_id, self.rack_id, self.client_id, self.regex, *self.topics)
        return MEMBER_BYTES + PARTITION_BYTES * held + texts + size_of(*parts)

    def given_epoch(self, topic_id: Uuid, partition: int) -> int | None:
        """The epoch since which it holds the partition; None if it does not."""
        for held in (self.assigned, self.revoking):
            epoch = held.get(topic_id, {}).get(partition)
            if epoch is not None:
                return epoch
        return None

    def held(self) -> Partitions:
        """The partitions that it may be reading: those assigned to it, and those it has not confirmed to have revoked."""
        topic_ids = dict.fromkeys((*self.assigned, *self.revoking))
        return {topic_id: (*self.assigned.get(topic_id, ()), *self.revoking.get(topic_id, ())) for topic_id in topic_ids}

    def __str__(self) -> str:
        return self.member_id if self.instance_id is None else f"{self.member_id} (instance {self.instance_id})"


def sorted_topics(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(names)))


def with_epoch(partitions: Partitions, epoch: int) -> EpochsOf:
    return {topic_id: dict.fromkeys(indexes, epoch) for topic_id, indexes in partitions.items()}
