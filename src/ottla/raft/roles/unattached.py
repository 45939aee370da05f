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
    election_deadline_ms: int = 0

    @property
    def election(self) -> ElectionState:
        return ElectionState(self.epoch, self.leader_id, self.voted)

    def grants(self, candidate: ReplicaKey, is_log_up_to_date: bool, is_pre_vote: bool) -> bool:
        """Whether `candidate` gets this replica's vote."""
        return grants_without_leader(self.leader_id, self.voted, candidate, is_log_up_to_date, is_pre_vote)


def grants_without_leader(
    leader_id: int, voted: ReplicaKey | None, candidate: ReplicaKey, is_log_up_to_date: bool, is_pre_vote: bool
) -> bool:
    """The rule of a replica that hears no leader. A vote is given once in an epoch, and again to the same candidate."""
    if is_pre_vote:
        return is_log_up_to_date
    if voted is not None:
        return voted.matches(candidate)
    return leader_id == NO_LEADER and is_log_up_to_date
