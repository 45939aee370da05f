"""Leader: appends records, and computes the high watermark: the offset below which a majority of voters has the log durable."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from ottla.raft.election import ElectionState
from ottla.raft.settings import OBSERVER_SESSION_MS
from ottla.raft.voters import ReplicaKey, Voter, VoterSet


class Progress(NamedTuple):
    """What the leader knows of a replica. Times are -1 until it fetches."""

    end_offset: int = -1
    """The offset below which it has the log durable; -1 if it has not fetched in this epoch."""
    last_fetch_ms: int = -1
    last_caught_up_ms: int = -1
    leader_end_at_last_fetch: int = -1

    def fetched(self, offset: int, leader_end_offset: int, now_ms: int) -> Progress:
        """After a Fetch at `offset`. Caught up: it has all that the leader had now, or at its previous Fetch."""
        caught_up_ms = self.last_caught_up_ms
        if offset >= leader_end_offset:
            caught_up_ms = max(now_ms, caught_up_ms)
        elif 0 < self.leader_end_at_last_fetch <= offset:
            caught_up_ms = max(self.last_fetch_ms, caught_up_ms)
        return Progress(offset, max(now_ms, self.last_fetch_ms), caught_up_ms, leader_end_offset)


_NO_PROGRESS: Mapping[ReplicaKey, Progress] = MappingProxyType({})
_NONE_DESCRIBED: Mapping[int, Voter] = MappingProxyType({})


class Leader(NamedTuple):
    """`progress`: voters and observers, this replica included, by the keys they gave."""

    epoch: int
    local: ReplicaKey
    epoch_start_offset: int
    """The log end offset when this epoch began: the offset of the leader's first record."""
    granting: tuple[ReplicaKey, ...]
    progress: Mapping[ReplicaKey, Progress] = _NO_PROGRESS
    high_watermark: int | None = None
    """None until a majority has a record of this epoch: only then does the leader know which older records are committed."""
    check_quorum_deadline_ms: int = 0
    heard: tuple[ReplicaKey, ...] = ()
    """The voters that have fetched since a majority had last fetched."""
    begin_epoch_deadline_ms: int = 0
    described: Mapping[int, Voter] = _NONE_DESCRIBED
    """The voters that have told their directory and versions in this epoch, by id: kept in memory with kraft.version 0."""

    @property
    def leader_id(self) -> int:
        return self.local.id

    @property
    def election(self) -> ElectionState:
        return ElectionState(self.epoch, self.local.id)

    def grants(self, candidate: ReplicaKey, is_log_up_to_date: bool, is_pre_vote: bool) -> bool:
        return False

    def synced(self, end_offset: int, voters: VoterSet) -> Leader:
        """This replica has the log durable below `end_offset`. The high watermark may advance, and never goes back."""
        mine = self.progress.get(self.local, Progress())
        mine = mine._replace(end_offset=max(end_offset, mine.end_offset))
        return self._replace(progress={**self.progress, self.local: mine}).recounted(voters)

    def fetched(self, replica: ReplicaKey, offset: int, leader_end_offset: int, now_ms: int, voters: VoterSet) -> Leader:
        """`replica` has fetched at `offset`: it has the log durable below."""
        before = self.progress.get(replica, Progress())
        progress = {**self.progress, replica: before.fetched(offset, leader_end_offset, now_ms)}
        for key in [key for key, each in progress.items() if is_gone(each, now_ms) and key != self.local]:
            if not voters.is_voter(key):
                del progress[key]
        return self._replace(progress=progress).recounted(voters)

    def described_by(self, voter: Voter) -> Leader:
        """`voter` has told where it is and what it supports."""
        return self._replace(described={**self.described, voter.key.id: voter})

    def recounted(self, voters: VoterSet) -> Leader:
        """The high watermark after progress or voters have changed."""
        offsets = sorted((self.progress_of(voter.key).end_offset for voter in voters), reverse=True)
        committed = offsets[voters.majority - 1] if offsets else 0
        # Only a record of its own epoch proves that those before it stay: a majority may have older ones and lose them.
        if committed <= self.epoch_start_offset or (self.high_watermark is not None and committed <= self.high_watermark):
            return self
        return self._replace(high_watermark=committed)

    def progress_of(self, voter: ReplicaKey) -> Progress:
        """A static voter's key has no directory while its replica's has: compare with `matches`."""
        found = self.progress.get(voter)
        if found is not None:
            return found
        return max((each for key, each in self.progress.items() if voter.matches(key)), default=Progress())

    def heard_from(self, voter: ReplicaKey, voters: VoterSet, now_ms: int, timeout_ms: int) -> Leader:
        """A voter has fetched. Once a majority has, the check-quorum timeout begins again."""
        if voter.id == self.local.id or not voters.is_voter(voter):
            return self
        heard = self.heard if voter in self.heard else (*self.heard, voter)
        needed = voters.majority - (1 if voters.is_voter(self.local) else 0)
        if sum(voters.is_voter(key) for key in heard) < needed:
            return self._replace(heard=heard)
        return self._replace(heard=(), check_quorum_deadline_ms=now_ms + timeout_ms)

    def successors(self, voters: VoterSet) -> tuple[ReplicaKey, ...]:
        """The other voters, the longest log first."""
        others = [voter.key for voter in voters if not voter.key.matches(self.local)]
        return tuple(sorted(others, key=lambda key: -self.progress_of(key).end_offset))


def is_gone(progress: Progress, now_ms: int) -> bool:
    """Whether an observer has not fetched for so long that it is not reported."""
    return now_ms - progress.last_fetch_ms >= OBSERVER_SESSION_MS
