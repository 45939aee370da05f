"""Resigned: a former leader of this epoch. It neither appends nor votes for another replica in it."""

from __future__ import annotations

from typing import NamedTuple

from ottla.raft.election import ElectionState
from ottla.raft.voters import ReplicaKey


class Resigned(NamedTuple):
    """Also the role of a restarted leader: it may have lost unsynced records, and must not reuse their offsets in its epoch."""

    epoch: int
    local: ReplicaKey
    successors: tuple[ReplicaKey, ...] = ()
    """The voters that should stand for election first: those with the longest logs."""
    unacknowledged: tuple[ReplicaKey, ...] = ()
    """The voters that have not answered EndQuorumEpoch."""
    election_deadline_ms: int = 0

    @property
    def leader_id(self) -> int:
        return self.local.id

    @property
    def election(self) -> ElectionState:
        return ElectionState(self.epoch, self.local.id)

    def grants(self, candidate: ReplicaKey, is_log_up_to_date: bool, is_pre_vote: bool) -> bool:
        """Only a pre-vote: this replica has led the epoch."""
        return is_pre_vote and is_log_up_to_date
