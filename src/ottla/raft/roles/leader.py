"""Leader: appends, and knows how far a majority of the voters has everything on disk: the high watermark."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from ottla.raft.election import ElectionState
from ottla.raft.voters import ReplicaKey, VoterSet

_NOBODY: Mapping[ReplicaKey, int] = MappingProxyType({})


class Leader(NamedTuple):
    """`synced_offsets`: up to where each replica, this one too, has the log safe from a power loss."""

    epoch: int
    local: ReplicaKey
    epoch_start_offset: int
    """Where the log ended when this epoch began; the leader's first record is there."""
    granting: tuple[ReplicaKey, ...]
    synced_offsets: Mapping[ReplicaKey, int] = _NOBODY
    high_watermark: int | None = None
    """None until a majority has a record of this epoch: only then is it known which older records are committed."""

    @property
    def election(self) -> ElectionState:
        return ElectionState(self.epoch, self.local.id)

    def synced(self, replica: ReplicaKey, end_offset: int, voters: VoterSet) -> Leader:
        """`replica` has everything below `end_offset` on disk. The high watermark follows, and never goes back."""
        synced_offsets = {**self.synced_offsets, replica: max(end_offset, self.synced_offsets.get(replica, 0))}
        offsets = sorted((_synced_by(voter.key, synced_offsets) for voter in voters), reverse=True)
        committed = offsets[voters.majority - 1] if offsets else 0
        high_watermark = self.high_watermark
        if committed > self.epoch_start_offset and (high_watermark is None or committed > high_watermark):
            high_watermark = committed
        return self._replace(synced_offsets=synced_offsets, high_watermark=high_watermark)


def _synced_by(voter: ReplicaKey, synced_offsets: Mapping[ReplicaKey, int]) -> int:
    """Static voters are known by id alone: their replica's own key may name a directory."""
    return max((offset for replica, offset in synced_offsets.items() if voter.matches(replica)), default=0)
