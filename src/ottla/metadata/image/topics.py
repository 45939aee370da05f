"""Which topics there are, and where the replicas of their partitions are. Immutable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ottla.ids import Uuid

NO_LEADER = -1


@dataclass(frozen=True, slots=True)
class PartitionState:
    """One partition. The first of `replicas` is the preferred leader; `directories` runs beside them."""

    replicas: tuple[int, ...]
    directories: tuple[Uuid, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int
    partition_epoch: int
    removing_replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    leader_recovery_state: int = 0
    elr: tuple[int, ...] = ()
    """Eligible leader replicas: not in sync any more, but sure to hold everything that was committed."""
    last_known_elr: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Topic:
    """One topic; its partitions are numbered from 0 without a gap."""

    name: str
    id: Uuid
    partitions: Mapping[int, PartitionState]


@dataclass(frozen=True, slots=True)
class TopicsImage:
    """All topics, by either name."""

    by_name: Mapping[str, Topic] = field(default_factory=dict)
    by_id: Mapping[Uuid, Topic] = field(default_factory=dict)
