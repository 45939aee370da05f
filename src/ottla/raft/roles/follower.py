"""Follower: fetches the log from the leader of its epoch. Stands for election if the leader is silent for the fetch timeout."""

from __future__ import annotations

from typing import NamedTuple

from ottla.raft.election import ElectionState
from ottla.raft.snapshots import SnapshotId
from ottla.raft.voters import Endpoints, ReplicaKey


class SnapshotFetch(NamedTuple):
    """A snapshot that is being fetched: the next piece begins at `position`."""

    id: SnapshotId
    position: int = 0


class Follower(NamedTuple):
    """`voted` is the vote granted in this epoch before the leader was known."""

    epoch: int
    leader_id: int
    endpoints: Endpoints
    voted: ReplicaKey | None = None
    fetch_deadline_ms: int = 0
    has_fetched: bool = False
    """Whether a fetch from this leader has succeeded: until then the replica supports other candidates in pre-votes."""
    snapshot: SnapshotFetch | None = None
    update_deadline_ms: int = 0
    """When to check next whether the leader knows this voter's endpoints, or whether to join as a voter."""
    has_updated_leader: bool = False
    """Whether the leader has accepted this voter's UpdateRaftVoter."""

    @property
    def election(self) -> ElectionState:
        return ElectionState(self.epoch, self.leader_id, self.voted)

    def grants(self, candidate: ReplicaKey, is_log_up_to_date: bool, is_pre_vote: bool) -> bool:
        """Only a pre-vote, and only while the leader has not been heard."""
        return is_pre_vote and is_log_up_to_date and not self.has_fetched
