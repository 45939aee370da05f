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
    rejecting: tuple[ReplicaKey, ...] = ()
    election_deadline_ms: int = 0

    @property
    def leader_id(self) -> int:
        return NO_LEADER

    @property
    def election(self) -> ElectionState:
        return ElectionState(self.epoch, NO_LEADER, self.local)

    def granted_by(self, voter: ReplicaKey) -> Candidate:
        return self if voter in self.granting else self._replace(granting=(*self.granting, voter))

    def rejected_by(self, voter: ReplicaKey) -> Candidate:
        return self if voter in self.rejecting else self._replace(rejecting=(*self.rejecting, voter))

    def has_won(self, voters: VoterSet) -> bool:
        return sum(voters.is_voter(key) for key in self.granting) >= voters.majority

    def has_lost(self, voters: VoterSet) -> bool:
        return sum(voters.is_voter(key) for key in self.rejecting) > len(voters) - voters.majority

    def grants(self, candidate: ReplicaKey, is_log_up_to_date: bool, is_pre_vote: bool) -> bool:
        """Only a pre-vote: the vote of this epoch is its own."""
        return is_pre_vote and is_log_up_to_date
