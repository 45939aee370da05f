"""AddRaftVoter: makes an observer a voter, in a quorum with kraft.version 1. It must have caught up with the leader.

The leader first asks the new voter (ApiVersions) whether it supports the quorum's kraft.version.

v1: AckWhenCommitted (KIP-1186).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.errors.codes import ErrorCode
from ottla.ids import ZERO_UUID
from ottla.raft.effects import Answer, Destination
from ottla.raft.requests.common import has_wrong_cluster, refuse_leader_request
from ottla.raft.requests.voter_changes import VoterChange, answer_of, append_voters, end, refuse_change
from ottla.raft.roles.leader import Leader
from ottla.raft.voters import ReplicaKey, Voter, VoterSet
from ottla.wire.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

if TYPE_CHECKING:
    from ottla.raft.connections import InFlight
    from ottla.raft.replica import Inbound, Replica

_CAUGHT_UP_WITHIN_MS = 3_600_000
_ACK_SINCE = 1


def handle(replica: Replica, inbound: Inbound, now_ms: int) -> AddRaftVoterResponse | None:
    """The refusal; None if the answer comes later."""
    request: AddRaftVoterRequest = inbound.message
    if has_wrong_cluster(replica, request.cluster_id):
        text = f"this is cluster {replica.settings.cluster_id}, not {request.cluster_id}"
        return AddRaftVoterResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID, error_message=text)
    refusal = refuse_leader_request(replica, replica.epoch)
    if refusal is not None:
        return AddRaftVoterResponse(error_code=refusal, error_message=None)
    endpoints = {each.name: (each.host, each.port) for each in request.listeners}
    address = endpoints.get(replica.settings.listener)
    if request.voter_id < 0 or request.voter_directory_id == ZERO_UUID or address is None:
        text = f"the request needs the voter's id, its directory id and its endpoint on listener {replica.settings.listener}"
        return AddRaftVoterResponse(error_code=ErrorCode.INVALID_REQUEST, error_message=text)
    refused = refuse_change(replica)
    if refused is None and replica.voters.get(request.voter_id) is not None:
        refused = ErrorCode.DUPLICATE_VOTER, f"node {request.voter_id} is a voter already: remove its old key first"
    if refused is None and not replica.connections.is_ready(request.voter_id, now_ms):
        refused = ErrorCode.REQUEST_TIMED_OUT, f"a request to node {request.voter_id} is under way: try again"
    if refused is not None:
        return AddRaftVoterResponse(error_code=refused[0], error_message=refused[1])
    voter = Voter(ReplicaKey(request.voter_id, request.voter_directory_id), endpoints)
    change = VoterChange(inbound.token, request.KEY, now_ms + replica.settings.request_timeout_ms, voter)
    replica.voter_change = change
    replica.acks_at_append = inbound.version >= _ACK_SINCE and not request.ack_when_committed
    question = ApiVersionsRequest(client_software_name="ottla", client_software_version="1")
    replica.send(Destination(request.voter_id, *address), question)
    return None


def answered(replica: Replica, sent: InFlight, response: ApiVersionsResponse, now_ms: int) -> bool:
    """The new voter has told its versions: append the new voter set if it supports the level and has caught up."""
    change, role = replica.voter_change, replica.role
    if change is None or change.voter is None or change.voter.key.id != sent.destination.id or not isinstance(role, Leader):
        return True
    if response.error_code != ErrorCode.NONE:
        end(replica, change, ErrorCode.REQUEST_TIMED_OUT, "the new voter did not tell the versions it supports: try again")
        return False
    levels = next(
        ((each.min_version, each.max_version) for each in response.supported_features if each.name == "kraft.version"), (0, 0)
    )
    level = replica.history.kraft_version
    if not levels[0] <= level <= levels[1]:
        text = f"the new voter supports kraft.version {levels[0]} to {levels[1]}, and the quorum has {level}: upgrade it first"
        end(replica, change, ErrorCode.INVALID_REQUEST, text)
        return True
    progress = role.progress.get(change.voter.key)
    if progress is None or progress.last_caught_up_ms < 0 or now_ms - progress.last_fetch_ms > _CAUGHT_UP_WITHIN_MS:
        end(replica, change, ErrorCode.REQUEST_TIMED_OUT, "the new voter has not caught up with the leader: try again later")
        return True
    voters = VoterSet([*replica.voters, change.voter._replace(kraft_versions=levels)])
    change = change._replace(offset=append_voters(replica, voters))
    if replica.acks_at_append:
        replica.effects.append(Answer(change.token, answer_of(change.api_key, ErrorCode.NONE, None)))
        change = change._replace(is_answered=True)
    replica.voter_change = change
    return True
