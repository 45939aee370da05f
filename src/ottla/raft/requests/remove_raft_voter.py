"""RemoveRaftVoter: takes a voter out of a quorum with kraft.version 1. A leader that removes itself resigns afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.errors.codes import ErrorCode
from ottla.ids import ZERO_UUID
from ottla.raft.requests.common import has_wrong_cluster, refuse_leader_request
from ottla.raft.requests.voter_changes import VoterChange, append_voters, refuse_change
from ottla.raft.voters import ReplicaKey, VoterSet
from ottla.wire.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse

if TYPE_CHECKING:
    from ottla.raft.replica import Inbound, Replica


def handle(replica: Replica, inbound: Inbound, now_ms: int) -> RemoveRaftVoterResponse | None:
    """The refusal; None if the answer comes when the change is committed."""
    request: RemoveRaftVoterRequest = inbound.message
    if has_wrong_cluster(replica, request.cluster_id):
        text = f"this is cluster {replica.settings.cluster_id}, not {request.cluster_id}"
        return RemoveRaftVoterResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID, error_message=text)
    refusal = refuse_leader_request(replica, replica.epoch)
    if refusal is not None:
        return RemoveRaftVoterResponse(error_code=refusal, error_message=None)
    if request.voter_id < 0 or request.voter_directory_id == ZERO_UUID:
        text = "the request names no voter: give its id and its directory id"
        return RemoveRaftVoterResponse(error_code=ErrorCode.INVALID_REQUEST, error_message=text)
    refused = refuse_change(replica)
    if refused is not None:
        return RemoveRaftVoterResponse(error_code=refused[0], error_message=refused[1])
    key = ReplicaKey(request.voter_id, request.voter_directory_id)
    left = VoterSet(voter for voter in replica.voters if voter.key != key)
    if len(left) == len(replica.voters) or not len(left):
        text = f"{key} cannot be removed from the voters {', '.join(str(voter.key) for voter in replica.voters)}"
        return RemoveRaftVoterResponse(error_code=ErrorCode.VOTER_NOT_FOUND, error_message=text)
    deadline_ms = now_ms + replica.settings.request_timeout_ms
    replica.voter_change = VoterChange(inbound.token, request.KEY, deadline_ms, offset=append_voters(replica, left))
    return None
