"""Prospective: asks voters whether it would win before it raises the epoch (pre-vote): an isolated replica raises none."""

from __future__ import annotations

from typing import NamedTuple

from ottla.raft.election import NO_LEADER, ElectionState
from ottla.raft.voters import ReplicaKey, VoterSet


class Prospective(NamedTuple):
    """`granting` are the voters that would vote for this replica, itself first. The epoch is still the old one."""

    epoch: int
    granting: tuple[ReplicaKey, ...]
    leader_id: int = NO_LEADER
    voted: ReplicaKey | None = None

    @property
    def election(self) -> ElectionState:
        return ElectionState(self.epoch, self.leader_id, self.voted)

    def granted_by(self, voter: ReplicaKey) -> Prospective:
        return self if voter in self.granting else self._replace(granting=(*self.granting, voter))

    def would_win(self, voters: VoterSet) -> bool:
        return sum(voters.is_voter(key) for key in self.granting) >= voters.majority
