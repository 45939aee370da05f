"""BeginQuorumEpoch: a leader announces its epoch to voters that have not fetched from it.

v1: the voter's key and the leader's endpoints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.errors.codes import ErrorCode
from ottla.raft.requests.between_voters import ResponseClasses, learn_from_response, refuse, response_of
from ottla.raft.requests.common import (
    TOPIC,
    endpoints_named,
    is_for_another_voter,
    learn_leader,
    refuse_epoch,
    refuse_voter_request,
)
from ottla.raft.voters import ReplicaKey
from ottla.wire.messages.begin_quorum_epoch import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochRequestPartitionData,
    BeginQuorumEpochRequestTopicData,
    BeginQuorumEpochResponse,
    BeginQuorumEpochResponsePartitionData,
    BeginQuorumEpochResponseTopicData,
    LeaderEndpoint,
    NodeEndpoint,
)

if TYPE_CHECKING:
    from ottla.raft.connections import InFlight
    from ottla.raft.replica import Inbound, Replica

_CLASSES = ResponseClasses(
    BeginQuorumEpochResponse, BeginQuorumEpochResponseTopicData, BeginQuorumEpochResponsePartitionData, NodeEndpoint
)


def build(replica: Replica, voter: ReplicaKey) -> BeginQuorumEpochRequest:
    partition = BeginQuorumEpochRequestPartitionData(
        voter_directory_id=voter.directory_id, leader_id=replica.local.id, leader_epoch=replica.epoch
    )
    mine = replica.settings.endpoints.items()
    return BeginQuorumEpochRequest(
        cluster_id=replica.settings.cluster_id,
        voter_id=voter.id,
        topics=[BeginQuorumEpochRequestTopicData(topic_name=TOPIC, partitions=[partition])],
        leader_endpoints=[LeaderEndpoint(name=name, host=host, port=port) for name, (host, port) in mine],
    )


def handle(replica: Replica, inbound: Inbound, now_ms: int) -> BeginQuorumEpochResponse:
    request: BeginQuorumEpochRequest = inbound.message
    refusal = refuse(replica, request)
    if refusal is not None:
        return BeginQuorumEpochResponse(error_code=refusal)
    said = request.topics[0].partitions[0]
    error = refuse_voter_request(replica, said.leader_id, said.leader_epoch) or refuse_epoch(
        replica, said.leader_id, said.leader_epoch, now_ms, said.leader_id
    )
    if error is None:
        endpoints = endpoints_named(replica, said.leader_id, request.leader_endpoints)
        if not learn_leader(replica, said.leader_id, said.leader_epoch, endpoints, now_ms):
            error = ErrorCode.INVALID_REQUEST
        elif is_for_another_voter(replica, request.voter_id, said.voter_directory_id):
            error = ErrorCode.INVALID_VOTER_KEY
    response: BeginQuorumEpochResponse = response_of(_CLASSES, replica, inbound, error)
    return response


def answered(replica: Replica, sent: InFlight, response: BeginQuorumEpochResponse, now_ms: int) -> bool:
    """A voter has answered; returns whether its connection may be used again at once."""
    _, handled = learn_from_response(replica, response, now_ms)
    return True if handled is None else handled
