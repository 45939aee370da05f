"""Prospective: asks voters whether it would win before it raises the epoch (pre-vote): an isolated replica raises none."""

from __future__ import annotations

from typing import NamedTuple

from ottla.raft.election import NO_LEADER, ElectionState
from ottla.raft.roles.unattached import grants_without_leader
from ottla.raft.voters import Endpoints, ReplicaKey, VoterSet


class Prospective(NamedTuple):
    """`granting` are the voters that would vote for this replica, itself first. The epoch is still the old one."""

    epoch: int
    granting: tuple[ReplicaKey, ...]
    leader_id: int = NO_LEADER
    voted: ReplicaKey | None = None
    rejecting: tuple[ReplicaKey, ...] = ()
    election_deadline_ms: int = 0
    leader_endpoints: Endpoints | None = None
    """Where the leader is that this replica followed before; it goes back to it if it loses."""
    fetch_deadline_ms: int = 0
    """When that leader's fetch timeout ends: later than now if the replica stands early, because the leader's port refuses."""
    yields_until_ms: int = 0
    """Until then another replica that asked for pre-votes at the same time goes first."""
    is_starting: bool = False
    """Whether it asks because it has just started: nothing shows yet that there is no leader."""

    @property
    def election(self) -> ElectionState:
        return ElectionState(self.epoch, self.leader_id, self.voted)

    def granted_by(self, voter: ReplicaKey) -> Prospective:
        return self if voter in self.granting else self._replace(granting=(*self.granting, voter))

    def rejected_by(self, voter: ReplicaKey) -> Prospective:
        return self if voter in self.rejecting else self._replace(rejecting=(*self.rejecting, voter))

    def yields_to(self, candidate_id: int, local_id: int, is_log_longer: bool, until_ms: int) -> Prospective:
        """`candidate_id` asks for pre-votes too: it goes first if its log is longer, or is as long and its id is lower.

        Two that go on together both vote for themselves, and nobody wins until their election timeouts are over.
        """
        goes_first = is_log_longer or candidate_id < local_id
        return self._replace(yields_until_ms=until_ms) if goes_first else self

    def would_win(self, voters: VoterSet) -> bool:
        return sum(voters.is_voter(key) for key in self.granting) >= voters.majority

    def has_lost(self, voters: VoterSet) -> bool:
        return sum(voters.is_voter(key) for key in self.rejecting) > len(voters) - voters.majority

    def grants(self, candidate: ReplicaKey, is_log_up_to_date: bool, is_pre_vote: bool) -> bool:
        """Whether `candidate` gets this replica's vote."""
        return grants_without_leader(self.leader_id, self.voted, candidate, is_log_up_to_date, is_pre_vote)
