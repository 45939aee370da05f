"""The image of the topics and the state of their partitions. Immutable."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from ottla.ids import Uuid

NO_LEADER = -1


class PartitionState(NamedTuple):
    """One partition. The first of `replicas` is the preferred leader; `directories` has one entry per replica."""

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
    """Eligible leader replicas: no longer in sync, but certain to hold all committed records."""
    last_known_elr: tuple[int, ...] = ()

    @property
    def final_replicas(self) -> list[int]:
        """The replicas when the reassignment that is under way, if there is one, is complete."""
        return [replica for replica in self.replicas if replica not in self.removing_replicas]


class Topic(NamedTuple):
    """One topic; its partitions are numbered from 0 without a gap."""

    name: str
    id: Uuid
    partitions: Mapping[int, PartitionState]


class TopicsImage(NamedTuple):
    """All topics, by name and by id."""

    by_name: Mapping[str, Topic] = MappingProxyType({})
    by_id: Mapping[Uuid, Topic] = MappingProxyType({})
