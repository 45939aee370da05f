"""AddRaftVoter: makes an observer a voter, in a quorum with kraft.version 1. It must have caught up with the leader.

The leader first asks the new voter whether it supports the quorum's kraft.version (`api_versions.py`). An operator sends the
request, or the observer itself if it joins automatically (controller.quorum.auto.join.enable).

v1: AckWhenCommitted (KIP-1186).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.errors.codes import ErrorCode
from ottla.raft.effects import Destination
from ottla.raft.requests.voter_changes import Refusal, VoterChange, leader_has_answered, refuse_change, refuse_request
from ottla.raft.voters import ReplicaKey, Voter
from ottla.wire.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse, Listener
from ottla.wire.messages.api_versions import ApiVersionsRequest

if TYPE_CHECKING:
    from ottla.raft.connections import InFlight
    from ottla.raft.replica import Inbound, Replica

_ACK_SINCE = 1


def build(replica: Replica) -> AddRaftVoterRequest:
    """The request with which this observer joins. It cannot wait for the commit: its own Fetch may be needed for that."""
    mine = replica.settings.endpoints.items()
    return AddRaftVoterRequest(
        cluster_id=replica.settings.cluster_id,
        timeout_ms=replica.settings.request_timeout_ms,
        voter_id=replica.local.id,
        voter_directory_id=replica.local.directory_id,
        listeners=[Listener(name=name, host=host, port=port) for name, (host, port) in mine],
        ack_when_committed=False,
    )


def handle(replica: Replica, inbound: Inbound, now_ms: int) -> AddRaftVoterResponse | None:
    """The refusal; None if the answer comes later."""
    request: AddRaftVoterRequest = inbound.message
    endpoints = {each.name: (each.host, each.port) for each in request.listeners}
    address = endpoints.get(replica.settings.listener)
    refused = refuse_request(replica, request) or _refuse_voter(replica, request, address, now_ms)
    if refused is not None:
        return AddRaftVoterResponse(error_code=refused[0], error_message=refused[1])
    assert address is not None
    voter = Voter(ReplicaKey(request.voter_id, request.voter_directory_id), endpoints)
    change = VoterChange(inbound.token, request.KEY, now_ms + replica.settings.request_timeout_ms, voter)
    replica.voter_change = change
    replica.acks_at_append = inbound.version >= _ACK_SINCE and not request.ack_when_committed
    question = ApiVersionsRequest(client_software_name="ottla", client_software_version="1")
    replica.send(Destination(request.voter_id, *address), question)
    return None


def _refuse_voter(
    replica: Replica, request: AddRaftVoterRequest, address: tuple[str, int] | None, now_ms: int
) -> Refusal | None:
    if address is None:
        text = f"the request needs the voter's endpoint on listener {replica.settings.listener}"
        return ErrorCode.INVALID_REQUEST, text
    refused = refuse_change(replica)
    if refused is not None:
        return refused
    if replica.voters.get(request.voter_id) is not None:
        return ErrorCode.DUPLICATE_VOTER, f"node {request.voter_id} is a voter already: remove its old key first"
    if not replica.settings.can_grow:
        text = (
            "this node was started as a whole cluster: name all controllers in controller.quorum.bootstrap.servers, restart it"
        )
        return ErrorCode.INVALID_REQUEST, text
    if not replica.connections.is_ready(request.voter_id, now_ms):
        return ErrorCode.REQUEST_TIMED_OUT, f"a request to node {request.voter_id} is under way: try again"
    return None


def answered(replica: Replica, sent: InFlight, response: AddRaftVoterResponse, now_ms: int) -> bool:
    """The leader has answered this observer, which has asked to join."""
    return leader_has_answered(replica, response.error_code, now_ms)
