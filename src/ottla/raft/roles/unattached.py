"""Unattached: no leader to follow. Votes for whoever asks first in an epoch; stands for election when nobody does."""

from __future__ import annotations

from typing import NamedTuple

from ottla.raft.election import NO_LEADER, ElectionState
from ottla.raft.voters import ReplicaKey


class Unattached(NamedTuple):
    """`leader_id` may be known where the leader cannot be reached; `voted` is the vote given in this epoch."""

    epoch: int
    leader_id: int = NO_LEADER
    voted: ReplicaKey | None = None

    @property
    def election(self) -> ElectionState:
        return ElectionState(self.epoch, self.leader_id, self.voted)
