"""Leader: appends records, and computes the high watermark: the offset below which a majority of voters has the log durable."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from ottla.raft.election import ElectionState
from ottla.raft.voters import ReplicaKey, VoterSet

_NONE_SYNCED: Mapping[ReplicaKey, int] = MappingProxyType({})


class Leader(NamedTuple):
    """`synced_offsets`: the offset below which each replica, this one included, has the log durable."""

    epoch: int
    local: ReplicaKey
    epoch_start_offset: int
    """The log end offset when this epoch began: the offset of the leader's first record."""
    granting: tuple[ReplicaKey, ...]
    synced_offsets: Mapping[ReplicaKey, int] = _NONE_SYNCED
    high_watermark: int | None = None
    """None until a majority has a record of this epoch: only then does the leader know which older records are committed."""

    @property
    def election(self) -> ElectionState:
        return ElectionState(self.epoch, self.local.id)

    def synced(self, replica: ReplicaKey, end_offset: int, voters: VoterSet) -> Leader:
        """`replica` has the log durable below `end_offset`. The high watermark may advance, and never goes back."""
        synced_offsets = {**self.synced_offsets, replica: max(end_offset, self.synced_offsets.get(replica, 0))}
        offsets = sorted((_synced_by(voter.key, synced_offsets) for voter in voters), reverse=True)
        committed = offsets[voters.majority - 1] if offsets else 0
        high_watermark = self.high_watermark
        if committed > self.epoch_start_offset and (high_watermark is None or committed > high_watermark):
            high_watermark = committed
        return self._replace(synced_offsets=synced_offsets, high_watermark=high_watermark)


def _synced_by(voter: ReplicaKey, synced_offsets: Mapping[ReplicaKey, int]) -> int:
    """The durable offset of `voter`. A static voter's key has no directory while its replica's may: compare with `matches`."""
    return max((offset for replica, offset in synced_offsets.items() if voter.matches(replica)), default=0)
