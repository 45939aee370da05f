"""What a replica must never forget of an election: the epoch, its leader if known, and whom this replica voted for."""

from __future__ import annotations

from typing import NamedTuple

from ottla.raft.voters import ReplicaKey

NO_LEADER = -1


class ElectionState(NamedTuple):
    """One epoch, as this replica knows it. On disk before anything is done that depends on it."""

    epoch: int = 0
    leader_id: int = NO_LEADER
    voted: ReplicaKey | None = None

    @property
    def has_leader(self) -> bool:
        return self.leader_id >= 0
