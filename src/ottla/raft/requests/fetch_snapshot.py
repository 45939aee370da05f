"""FetchSnapshot: a follower whose log ends before the leader's start reads the leader's snapshot, piece by piece.

v1: the replica's directory id, the leader's address in answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.errors.codes import ErrorCode
from ottla.raft.effects import AnswerWithSnapshot, StoreSnapshot
from ottla.raft.requests.common import (
    TOPIC,
    endpoints_in,
    has_wrong_cluster,
    leader_address,
    learn_from_answer,
    refuse_leader_request,
)
from ottla.raft.roles.follower import Follower, SnapshotFetch
from ottla.raft.snapshots import FIRST_SNAPSHOT, SnapshotId
from ottla.raft.voters import ReplicaKey
from ottla.wire.messages.fetch_snapshot import (
    FetchSnapshotRequest,
    FetchSnapshotRequestPartitionSnapshot,
    FetchSnapshotRequestSnapshotId,
    FetchSnapshotRequestTopicSnapshot,
    FetchSnapshotResponse,
    FetchSnapshotResponsePartitionSnapshot,
    FetchSnapshotResponseSnapshotId,
    FetchSnapshotResponseTopicSnapshot,
    LeaderIdAndEpoch,
    NodeEndpoint,
)

if TYPE_CHECKING:
    from ottla.raft.connections import InFlight
    from ottla.raft.replica import Inbound, Replica

_ENDPOINTS_SINCE = 1


def build(replica: Replica, wanted: SnapshotFetch) -> FetchSnapshotRequest:
    partition = FetchSnapshotRequestPartitionSnapshot(
        current_leader_epoch=replica.epoch,
        snapshot_id=FetchSnapshotRequestSnapshotId(end_offset=wanted.id.offset, epoch=wanted.id.epoch),
        position=wanted.position,
        replica_directory_id=replica.local.directory_id,
    )
    return FetchSnapshotRequest(
        cluster_id=replica.settings.cluster_id,
        replica_id=replica.local.id,
        max_bytes=replica.settings.fetch_snapshot_max_bytes,
        topics=[FetchSnapshotRequestTopicSnapshot(name=TOPIC, partitions=[partition])],
    )


# -- At the leader


def handle(replica: Replica, inbound: Inbound, now_ms: int) -> FetchSnapshotResponse | None:
    """The answer; None if it carries a piece of a snapshot and is sent by an effect."""
    request: FetchSnapshotRequest = inbound.message
    if has_wrong_cluster(replica, request.cluster_id):
        return FetchSnapshotResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    if len(request.topics) != 1 or len(request.topics[0].partitions) != 1:
        return FetchSnapshotResponse(error_code=ErrorCode.INVALID_REQUEST)
    topic, asked = request.topics[0], request.topics[0].partitions[0]
    if topic.name != TOPIC or asked.partition != 0:
        unknown = FetchSnapshotResponsePartitionSnapshot(index=asked.partition, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return _response(replica, inbound, unknown, topic.name)
    refusal = refuse_leader_request(replica, asked.current_leader_epoch)
    if refusal is not None:
        return _response(replica, inbound, _partition(replica, refusal))
    wanted = SnapshotId(asked.snapshot_id.end_offset, asked.snapshot_id.epoch)
    size = None if wanted == FIRST_SNAPSHOT else replica.log.snapshot_size(wanted)
    if size is None:
        return _response(replica, inbound, _partition(replica, ErrorCode.SNAPSHOT_NOT_FOUND))
    if not 0 <= asked.position < size:
        return _response(replica, inbound, _partition(replica, ErrorCode.POSITION_OUT_OF_RANGE))
    if request.replica_id >= 0:
        replica.heard_from(ReplicaKey(request.replica_id, asked.replica_directory_id), now_ms)
    partition = _partition(replica, ErrorCode.NONE)
    partition.snapshot_id = FetchSnapshotResponseSnapshotId(end_offset=wanted.offset, epoch=wanted.epoch)
    partition.size = size
    partition.position = asked.position
    response = _response(replica, inbound, partition)
    replica.effects.append(AnswerWithSnapshot(inbound.token, response, wanted, asked.position, request.max_bytes))
    return None


def _partition(replica: Replica, error: int) -> FetchSnapshotResponsePartitionSnapshot:
    return FetchSnapshotResponsePartitionSnapshot(
        error_code=error, current_leader=LeaderIdAndEpoch(leader_id=replica.leader_id, leader_epoch=replica.epoch)
    )


def _response(
    replica: Replica, inbound: Inbound, partition: FetchSnapshotResponsePartitionSnapshot, topic: str = TOPIC
) -> FetchSnapshotResponse:
    return FetchSnapshotResponse(
        topics=[FetchSnapshotResponseTopicSnapshot(name=topic, partitions=[partition])],
        node_endpoints=leader_address(replica, NodeEndpoint, inbound.listener) if inbound.version >= _ENDPOINTS_SINCE else [],
    )


# -- At the follower


def answered(replica: Replica, sent: InFlight, response: FetchSnapshotResponse, now_ms: int) -> bool:
    """The leader has answered; returns whether its connection may be used again at once."""
    if response.error_code != ErrorCode.NONE or len(response.topics) != 1 or len(response.topics[0].partitions) != 1:
        return False
    told = response.topics[0].partitions[0]
    leader = told.current_leader or LeaderIdAndEpoch(leader_id=-1, leader_epoch=-1)
    endpoints = endpoints_in(replica, leader.leader_id, response.node_endpoints)
    error = told.error_code
    has_gone = error in (ErrorCode.SNAPSHOT_NOT_FOUND, ErrorCode.POSITION_OUT_OF_RANGE)
    handled = learn_from_answer(
        replica, ErrorCode.NONE if has_gone else error, leader.leader_id, leader.leader_epoch, endpoints, now_ms
    )
    if handled is not None:
        return handled
    role = replica.role
    if not isinstance(role, Follower) or (wanted := role.snapshot) is None:
        return False
    role = role._replace(fetch_deadline_ms=now_ms + replica.settings.fetch_timeout_ms)
    if has_gone or told.snapshot_id.end_offset < 0 or told.snapshot_id.epoch < 0:
        replica.set_role(role._replace(snapshot=None))  # the leader has deleted it: the next Fetch names another
        return True
    got = SnapshotId(told.snapshot_id.end_offset, told.snapshot_id.epoch)
    data = told.unaligned_records or b""
    end = told.position + len(data)
    if got != wanted.id or told.position != wanted.position or end > told.size:
        replica.set_role(role._replace(snapshot=None))
        return False
    is_last = end == told.size
    replica.change_log(StoreSnapshot(wanted.id, told.position, data, is_last))
    replica.set_role(role._replace(snapshot=None if is_last else wanted._replace(position=end)))
    return True
