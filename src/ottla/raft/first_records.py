"""The first records of a leader's epoch: LeaderChange, and with kraft.version 1 the voters if the log does not have them."""

from __future__ import annotations

from ottla.raft import control
from ottla.raft.voter_history import VoterHistory
from ottla.raft.voters import Endpoints, ReplicaKey, Voter
from ottla.records.control import ControlRecord


def first_records(
    local: ReplicaKey, granting: tuple[ReplicaKey, ...], history: VoterHistory, endpoints: Endpoints
) -> tuple[ControlRecord, ...]:
    """LeaderChange; then the voters, if only the snapshot of formatting has them or this voter's `endpoints` have changed."""
    voters = history.voters
    controls = [control.leader_change(local.id, voters, granting)]
    if history.kraft_version == 0:
        return tuple(controls)
    mine = voters.get(local.id)
    has_moved = mine is not None and bool(endpoints) and dict(mine.endpoints) != dict(endpoints)
    if mine is not None and has_moved:
        voters = voters.with_voter(Voter(mine.key, endpoints, mine.kraft_versions))
    if history.is_only_in_snapshot:
        controls.append(control.kraft_version(history.kraft_version))
    if history.is_only_in_snapshot or has_moved:
        controls.append(control.kraft_voters(voters))
    return tuple(controls)
