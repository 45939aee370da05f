"""The durable state of an election: the epoch, its leader if known, and the vote of this replica."""

from __future__ import annotations

from typing import NamedTuple

from ottla.raft.voters import ReplicaKey

NO_LEADER = -1


class ElectionState(NamedTuple):
    """One epoch, as this replica knows it. It must be durable before the replica acts on it."""

    epoch: int = 0
    leader_id: int = NO_LEADER
    voted: ReplicaKey | None = None

    @property
    def has_leader(self) -> bool:
        return self.leader_id >= 0
