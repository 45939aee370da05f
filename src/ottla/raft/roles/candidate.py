"""Candidate: a replica that has raised the epoch, voted for itself, and collects votes."""

from __future__ import annotations

from typing import NamedTuple

from ottla.raft.election import NO_LEADER, ElectionState
from ottla.raft.voters import ReplicaKey, VoterSet


class Candidate(NamedTuple):
    """`granting` are the voters that voted for this replica in this epoch, itself first."""

    epoch: int
    local: ReplicaKey
    granting: tuple[ReplicaKey, ...]

    @property
    def election(self) -> ElectionState:
        return ElectionState(self.epoch, NO_LEADER, self.local)

    def granted_by(self, voter: ReplicaKey) -> Candidate:
        return self if voter in self.granting else self._replace(granting=(*self.granting, voter))

    def has_won(self, voters: VoterSet) -> bool:
        return sum(voters.is_voter(key) for key in self.granting) >= voters.majority
