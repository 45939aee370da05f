"""Resigned: led this epoch once, and will not again. It neither appends nor votes for another in it."""

from __future__ import annotations

from typing import NamedTuple

from ottla.raft.election import ElectionState
from ottla.raft.voters import ReplicaKey


class Resigned(NamedTuple):
    """A leader that restarts begins so: records are told apart by offset and epoch, and it may have lost some unsynced."""

    epoch: int
    local: ReplicaKey

    @property
    def election(self) -> ElectionState:
        return ElectionState(self.epoch, self.local.id)
