"""RemoveRaftVoter: takes a voter out of a quorum with kraft.version 1. A leader that removes itself resigns afterwards.

An operator sends the request, or a controller that joins automatically and was a voter with another directory before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.errors.codes import ErrorCode
from ottla.raft.requests.voter_changes import VoterChange, append_voters, leader_has_answered, refuse_change, refuse_request
from ottla.raft.voters import ReplicaKey, VoterSet
from ottla.wire.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse

if TYPE_CHECKING:
    from ottla.raft.connections import InFlight
    from ottla.raft.replica import Inbound, Replica


def build(replica: Replica, voter: ReplicaKey) -> RemoveRaftVoterRequest:
    return RemoveRaftVoterRequest(
        cluster_id=replica.settings.cluster_id, voter_id=voter.id, voter_directory_id=voter.directory_id
    )


def handle(replica: Replica, inbound: Inbound, now_ms: int) -> RemoveRaftVoterResponse | None:
    """The refusal; None if the answer comes when the change is committed."""
    request: RemoveRaftVoterRequest = inbound.message
    refused = refuse_request(replica, request) or refuse_change(replica)
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


def answered(replica: Replica, sent: InFlight, response: RemoveRaftVoterResponse, now_ms: int) -> bool:
    """The leader has answered this observer, which has asked to remove its old directory."""
    return leader_has_answered(replica, response.error_code, now_ms)
