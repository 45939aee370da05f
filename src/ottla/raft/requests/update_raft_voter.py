"""UpdateRaftVoter: a voter tells the leader its endpoints and the levels of kraft.version that it supports.

With kraft.version 1 a voter sends it when the voter set says something else; the leader appends a new voter set, and answers
before that is committed. With kraft.version 0 every voter sends it to each new leader, which keeps it in memory: raising
kraft.version needs the directory ids of all voters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.errors.codes import ErrorCode
from ottla.ids import ZERO_UUID
from ottla.raft.requests.common import endpoints_in, has_wrong_cluster, learn_from_answer, refuse_leader_request
from ottla.raft.requests.voter_changes import append_voters, leader_has_answered, refuse_for_now
from ottla.raft.roles.follower import Follower
from ottla.raft.roles.leader import Leader
from ottla.raft.voters import KRAFT_VERSIONS, ReplicaKey, Voter
from ottla.wire.messages.update_raft_voter import (
    CurrentLeader,
    KRaftVersionFeature,
    Listener,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
)

if TYPE_CHECKING:
    from ottla.raft.connections import InFlight
    from ottla.raft.replica import Inbound, Replica


def is_due(replica: Replica, role: Follower) -> bool:
    """Whether this voter has something to tell the leader of its epoch."""
    mine = replica.settings.endpoints
    if replica.settings.listener not in mine:
        return False
    if replica.history.kraft_version < 1:
        return not role.has_updated_leader
    known = replica.voters.get(replica.local.id)
    return known is not None and (dict(known.endpoints), known.kraft_versions) != (dict(mine), KRAFT_VERSIONS)


def build(replica: Replica) -> UpdateRaftVoterRequest:
    low, high = KRAFT_VERSIONS
    mine = replica.settings.endpoints.items()
    return UpdateRaftVoterRequest(
        cluster_id=replica.settings.cluster_id,
        current_leader_epoch=replica.epoch,
        voter_id=replica.local.id,
        voter_directory_id=replica.local.directory_id,
        listeners=[Listener(name=name, host=host, port=port) for name, (host, port) in mine],
        kraft_version_feature=KRaftVersionFeature(min_supported_version=low, max_supported_version=high),
    )


def handle(replica: Replica, inbound: Inbound, now_ms: int) -> UpdateRaftVoterResponse:
    request: UpdateRaftVoterRequest = inbound.message
    error = _refuse(replica, request)
    if error is None:
        error = _store(replica, request, now_ms)
    leader = CurrentLeader(leader_id=replica.leader_id, leader_epoch=replica.epoch)
    address = replica.leader_endpoints.get(inbound.listener)
    if address is not None:
        leader.host, leader.port = address
    return UpdateRaftVoterResponse(error_code=error, current_leader=leader)


def _refuse(replica: Replica, request: UpdateRaftVoterRequest) -> int | None:
    if has_wrong_cluster(replica, request.cluster_id):
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    refusal = refuse_leader_request(replica, request.current_leader_epoch)
    if refusal is not None:
        return refusal
    if request.voter_id < 0 or request.voter_directory_id == ZERO_UUID:
        return ErrorCode.INVALID_REQUEST
    refused = refuse_for_now(replica)
    if refused is not None:
        return refused[0]
    feature = request.kraft_version_feature
    supports_level = feature.min_supported_version <= replica.history.kraft_version <= feature.max_supported_version
    has_listener = any(each.name == replica.settings.listener for each in request.listeners)
    return None if supports_level and has_listener else ErrorCode.INVALID_REQUEST


def _store(replica: Replica, request: UpdateRaftVoterRequest, now_ms: int) -> int:
    """Keep what the voter has told, in the log or in memory; returns the error code."""
    role = replica.role
    assert isinstance(role, Leader)
    key = ReplicaKey(request.voter_id, request.voter_directory_id)
    if not replica.voters.is_voter(key):
        return ErrorCode.VOTER_NOT_FOUND
    endpoints = {each.name: (each.host, each.port) for each in request.listeners}
    feature = request.kraft_version_feature
    voter = Voter(key, endpoints, (feature.min_supported_version, feature.max_supported_version))
    if replica.history.kraft_version < 1:
        replica.set_role(role.described_by(voter))
    elif replica.voters.get(key.id) != voter:
        append_voters(replica, replica.voters.with_voter(voter))
    replica.heard_from(key, now_ms)
    return ErrorCode.NONE


def answered(replica: Replica, sent: InFlight, response: UpdateRaftVoterResponse, now_ms: int) -> bool:
    """The leader has answered; returns whether its connection may be used again at once."""
    told, error = response.current_leader, response.error_code
    if told is not None and told.leader_epoch >= 0:
        endpoints = endpoints_in(replica, told.leader_id, [])
        if told.host:
            endpoints = {replica.settings.listener: (told.host, told.port)}
        if told.leader_epoch > replica.epoch or error in (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER):
            handled = learn_from_answer(replica, error, told.leader_id, told.leader_epoch, endpoints, now_ms)
            return handled is not False
    role = replica.role
    if error == ErrorCode.NONE and isinstance(role, Follower):
        replica.set_role(role._replace(has_updated_leader=True))
    return leader_has_answered(replica, error, now_ms)
