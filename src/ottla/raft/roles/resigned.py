"""Resigned: a former leader of this epoch. It neither appends nor votes for another replica in it."""

from __future__ import annotations

from typing import NamedTuple

from ottla.raft.election import ElectionState
from ottla.raft.voters import ReplicaKey


class Resigned(NamedTuple):
    """The role of a restarted leader. It may have lost unsynced records, and must not reuse their offsets in the same epoch."""

    epoch: int
    local: ReplicaKey

    @property
    def election(self) -> ElectionState:
        return ElectionState(self.epoch, self.local.id)
