"""The state machine of one replica in the metadata quorum. Pure: every event returns a new state and effects to carry out.

The caller carries out the effects of a step in this order:

1. `persist`: write and sync the election before anything else.
2. `controls`: the leader appends these control records first in its epoch.

A step may pass through several roles. Only the last election of a step must be durable, since no other replica has seen the
earlier ones: a single voter votes for itself, wins and leads in one step, with one write.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.errors import BrokenInvariant
from ottla.raft import control
from ottla.raft.election import ElectionState
from ottla.raft.roles.candidate import Candidate
from ottla.raft.roles.leader import Leader
from ottla.raft.roles.prospective import Prospective
from ottla.raft.roles.resigned import Resigned
from ottla.raft.roles.unattached import Unattached
from ottla.raft.transitions import Role, transition
from ottla.raft.voter_history import VoterHistory
from ottla.raft.voters import Endpoints, ReplicaKey, Voter, VoterSet
from ottla.records.control import ControlRecord


class Quorum(NamedTuple):
    """The state: this replica, its role (with epoch, leader and vote), and the voters."""

    local: ReplicaKey
    role: Role
    voters: VoterSet

    @property
    def epoch(self) -> int:
        return self.role.epoch

    @property
    def leader_id(self) -> int:
        return self.role.election.leader_id

    @property
    def is_leader(self) -> bool:
        return isinstance(self.role, Leader)

    @property
    def is_only_voter(self) -> bool:
        return self.voters.is_only_voter(self.local)

    @property
    def high_watermark(self) -> int | None:
        return self.role.high_watermark if isinstance(self.role, Leader) else None


class Step(NamedTuple):
    """The result of an event: the new state and its effects."""

    quorum: Quorum
    persist: ElectionState | None = None
    controls: tuple[ControlRecord, ...] = ()


def start(local: ReplicaKey, voters: VoterSet, election: ElectionState | None, last_epoch: int) -> Quorum:
    """The state of a replica that has just started: from its quorum-state file, or from its log if that has a newer epoch."""
    found = election if election is not None else ElectionState()
    role: Role
    if found.epoch < last_epoch:
        role = Unattached(last_epoch)
    elif found.leader_id == local.id:
        role = Resigned(found.epoch, local)
    elif found.voted is not None and found.voted.matches(local):
        role = Candidate(found.epoch, local, (local,))
    else:
        role = Unattached(found.epoch, found.leader_id, found.voted)
    return Quorum(local, role, voters)


def election_due(quorum: Quorum, history: VoterHistory, log_end_offset: int, endpoints: Endpoints | None = None) -> Step:
    """The election timeout has passed, or this replica is the only voter: move towards leadership as far as its votes allow.

    `endpoints` are the current addresses of this replica.
    """
    if not quorum.voters.is_voter(quorum.local):
        return Step(quorum)  # an observer never stands for election
    role = quorum.role
    if isinstance(role, Leader):
        raise BrokenInvariant(f"the leader of epoch {role.epoch} cannot stand for election")
    before = role.election
    if not isinstance(role, Candidate):
        election = role.election
        role = transition(role, Prospective(role.epoch, (quorum.local,), election.leader_id, election.voted))
    if isinstance(role, Prospective) and role.would_win(quorum.voters):
        role = transition(role, Candidate(role.epoch + 1, quorum.local, (quorum.local,)))
    controls: tuple[ControlRecord, ...] = ()
    voters = quorum.voters
    if isinstance(role, Candidate) and role.has_won(voters):
        controls, voters = _first_of_epoch(quorum, role, history, endpoints)
        role = transition(role, Leader(role.epoch, quorum.local, log_end_offset, role.granting))
    after = role.election
    return Step(quorum._replace(role=role, voters=voters), after if after != before else None, controls)


def _first_of_epoch(
    quorum: Quorum, candidate: Candidate, history: VoterHistory, endpoints: Endpoints | None
) -> tuple[tuple[ControlRecord, ...], VoterSet]:
    """A new leader's first records: LeaderChange, then the voters if the log lacks them or this voter's endpoints changed."""
    voters = quorum.voters
    controls = [control.leader_change(quorum.local.id, voters, candidate.granting)]
    if history.kraft_version == 0:
        return tuple(controls), voters
    mine = voters.get(quorum.local.id)
    moved = mine is not None and endpoints is not None and dict(mine.endpoints) != dict(endpoints)
    if mine is not None and endpoints is not None and moved:
        voters = voters.with_voter(Voter(mine.key, endpoints, mine.kraft_versions))
    if history.is_only_in_snapshot:
        controls.append(control.kraft_version(history.kraft_version))
    if history.is_only_in_snapshot or moved:
        controls.append(control.kraft_voters(voters))
    return tuple(controls), voters


def synced(quorum: Quorum, replica: ReplicaKey, end_offset: int) -> Quorum:
    """`replica` has the log durable up to `end_offset`: the leader's high watermark may advance."""
    if not isinstance(quorum.role, Leader):
        return quorum
    return quorum._replace(role=transition(quorum.role, quorum.role.synced(replica, end_offset, quorum.voters)))


def resign(quorum: Quorum) -> Quorum:
    """The leader stops leading, before its node stops. Nothing is persisted: a restart begins as resigned anyway."""
    if not isinstance(quorum.role, Leader):
        return quorum
    return quorum._replace(role=transition(quorum.role, Resigned(quorum.epoch, quorum.local)))
