"""EndQuorumEpoch: a leader that resigns tells the voters, the longest log first, so that they need not wait for a timeout.

v1: directory ids of the preferred candidates, the leader's endpoints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.errors.codes import ErrorCode
from ottla.raft.requests.between_voters import ResponseClasses, learn_from_response, refuse, response_of
from ottla.raft.requests.common import TOPIC, endpoints_named, learn_leader, refuse_epoch, refuse_voter_request
from ottla.raft.roles.follower import Follower
from ottla.raft.roles.resigned import Resigned
from ottla.raft.voters import ReplicaKey
from ottla.wire.messages.end_quorum_epoch import (
    EndQuorumEpochRequest,
    EndQuorumEpochRequestPartitionData,
    EndQuorumEpochRequestTopicData,
    EndQuorumEpochResponse,
    EndQuorumEpochResponsePartitionData,
    EndQuorumEpochResponseTopicData,
    LeaderEndpoint,
    NodeEndpoint,
    ReplicaInfo,
)

if TYPE_CHECKING:
    from ottla.raft.connections import InFlight
    from ottla.raft.replica import Inbound, Replica

_CLASSES = ResponseClasses(
    EndQuorumEpochResponse, EndQuorumEpochResponseTopicData, EndQuorumEpochResponsePartitionData, NodeEndpoint
)


def build(replica: Replica, resigned: Resigned) -> EndQuorumEpochRequest:
    partition = EndQuorumEpochRequestPartitionData(
        leader_id=replica.local.id,
        leader_epoch=resigned.epoch,
        preferred_successors=[key.id for key in resigned.successors],
        preferred_candidates=[
            ReplicaInfo(candidate_id=key.id, candidate_directory_id=key.directory_id) for key in resigned.successors
        ],
    )
    mine = replica.settings.endpoints.items()
    return EndQuorumEpochRequest(
        cluster_id=replica.settings.cluster_id,
        topics=[EndQuorumEpochRequestTopicData(topic_name=TOPIC, partitions=[partition])],
        leader_endpoints=[LeaderEndpoint(name=name, host=host, port=port) for name, (host, port) in mine],
    )


def handle(replica: Replica, inbound: Inbound, now_ms: int) -> EndQuorumEpochResponse:
    request: EndQuorumEpochRequest = inbound.message
    refusal = refuse(replica, request)
    if refusal is not None:
        return EndQuorumEpochResponse(error_code=refusal)
    said = request.topics[0].partitions[0]
    error = refuse_voter_request(replica, said.leader_id, said.leader_epoch) or refuse_epoch(
        replica, said.leader_id, said.leader_epoch, now_ms, said.leader_id
    )
    if error is None:
        endpoints = endpoints_named(replica, said.leader_id, request.leader_endpoints)
        if not learn_leader(replica, said.leader_id, said.leader_epoch, endpoints, now_ms):
            error = ErrorCode.INVALID_REQUEST
    role = replica.role
    if error is None and isinstance(role, Follower) and role.leader_id == said.leader_id:
        wanted = [ReplicaKey(each.candidate_id, each.candidate_directory_id) for each in said.preferred_candidates] or [
            ReplicaKey(each) for each in said.preferred_successors
        ]
        delay_ms = _delay_ms(wanted, replica.local, replica.settings.election_backoff_max_ms)
        replica.set_role(role._replace(fetch_deadline_ms=now_ms + delay_ms))
    response: EndQuorumEpochResponse = response_of(_CLASSES, replica, inbound, error)
    return response


def _delay_ms(wanted: list[ReplicaKey], local: ReplicaKey, backoff_max_ms: int) -> int:
    """How long this replica waits before it stands: the first of `wanted` not at all, each next one twice as long."""
    position = next((at for at, key in enumerate(wanted) if key.matches(local)), len(wanted))
    if position == 0 and wanted:
        return 0
    if position >= len(wanted):
        return backoff_max_ms
    return min(backoff_max_ms, (backoff_max_ms >> (len(wanted) - 1)) << (position - 1))


def answered(replica: Replica, sent: InFlight, response: EndQuorumEpochResponse, now_ms: int) -> bool:
    """A voter has answered; returns whether its connection may be used again at once."""
    _, handled = learn_from_response(replica, response, now_ms)
    if handled is not None:
        return handled
    role = replica.role
    if isinstance(role, Resigned):
        left = tuple(key for key in role.unacknowledged if key.id != sent.destination.id)
        replica.set_role(role._replace(unacknowledged=left))
    return True
