"""Unattached: follows no leader. Grants its vote to the first candidate of an epoch; stands for election after a timeout."""

from __future__ import annotations

from typing import NamedTuple

from ottla.raft.election import NO_LEADER, ElectionState
from ottla.raft.voters import ReplicaKey


class Unattached(NamedTuple):
    """`leader_id` may be known although the leader cannot be reached; `voted` is the vote granted in this epoch."""

    epoch: int
    leader_id: int = NO_LEADER
    voted: ReplicaKey | None = None

    @property
    def election(self) -> ElectionState:
        return ElectionState(self.epoch, self.leader_id, self.voted)
