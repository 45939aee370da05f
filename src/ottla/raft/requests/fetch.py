"""Fetch of the metadata log: a follower reads on from its log end. Its offset acknowledges that everything below is durable.

The leader answers at once with records, an error, the point where the logs diverge, or the snapshot to load first. With nothing
to say it parks the request until records are appended, the high watermark passes the follower's, or the wait is over.

v12: the fetched epoch, diverging epochs, snapshot ids. v13: topic ids. v15: the replica's id moved. v17: directory ids, the
leader's address in answers. v18: the follower's high watermark (KIP-1166).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.errors.codes import ErrorCode
from ottla.ids import METADATA_TOPIC_ID
from ottla.raft.effects import Answer, AnswerWithRecords, AppendFetched, Effect, Truncate
from ottla.raft.log_view import Diverging, check_position, covers, truncation_offset
from ottla.raft.requests.common import (
    TOPIC,
    endpoints_in,
    has_wrong_cluster,
    leader_address,
    learn_from_answer,
    refuse_leader_request,
)
from ottla.raft.roles.follower import Follower, SnapshotFetch
from ottla.raft.roles.leader import Leader
from ottla.raft.snapshots import SnapshotId
from ottla.raft.voters import ReplicaKey
from ottla.wire.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ReplicaState,
)
from ottla.wire.messages.fetch import SnapshotId as WireSnapshotId

if TYPE_CHECKING:
    from ottla.raft.connections import InFlight
    from ottla.raft.replica import Inbound, Replica

_TOPIC_IDS_SINCE = 13
_ENDPOINTS_SINCE = 17


def build(replica: Replica) -> FetchRequest:
    known = replica.high_watermark
    partition = FetchPartition(
        current_leader_epoch=replica.epoch,
        fetch_offset=replica.log.end_offset,
        last_fetched_epoch=replica.log.last_epoch,
        partition_max_bytes=0,
        replica_directory_id=replica.local.directory_id,
        high_watermark=-1 if known is None else known,
    )
    return FetchRequest(
        cluster_id=replica.settings.cluster_id,
        replica_state=ReplicaState(replica_id=replica.local.id),
        max_wait_ms=replica.settings.fetch_max_wait_ms,
        max_bytes=replica.settings.fetch_max_bytes,
        topics=[FetchTopic(topic=TOPIC, topic_id=METADATA_TOPIC_ID, partitions=[partition])],
    )


# -- At the leader


def handle(replica: Replica, inbound: Inbound, now_ms: int) -> FetchResponse | None:
    """The answer; None if the request is parked or answered with records."""
    request: FetchRequest = inbound.message
    if has_wrong_cluster(replica, request.cluster_id):
        return FetchResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    asked = _partition(request, inbound.version)
    if asked is None:
        return FetchResponse(error_code=ErrorCode.INVALID_REQUEST)
    if (
        request.max_wait_ms < 0
        or asked.fetch_offset < 0
        or asked.last_fetched_epoch < 0
        or asked.last_fetched_epoch > asked.current_leader_epoch
    ):
        return answer(replica, inbound, ErrorCode.INVALID_REQUEST)
    effect = complete(replica, inbound, now_ms, is_new=True)
    if effect is None and request.max_wait_ms > 0:
        replica.park(inbound, now_ms + request.max_wait_ms)
    else:
        replica.effects.append(effect or Answer(inbound.token, answer(replica, inbound)))
    return None


def complete(replica: Replica, inbound: Inbound, now_ms: int, is_new: bool = False) -> Effect | None:
    """The effect that answers this Fetch; None as long as there is nothing to say.

    Only a new one proves that its sender is there: a parked one may be of a follower that was cut off since.
    """
    request: FetchRequest = inbound.message
    asked = request.topics[0].partitions[0]
    refusal = refuse_leader_request(replica, asked.current_leader_epoch)
    if refusal is not None:
        return Answer(inbound.token, answer(replica, inbound, refusal))
    role = replica.role
    assert isinstance(role, Leader)
    problem = check_position(replica.log, asked.fetch_offset, asked.last_fetched_epoch)
    if isinstance(problem, Diverging | SnapshotId):
        return Answer(inbound.token, answer(replica, inbound, problem=problem))
    state = request.replica_state
    sender_id = request.replica_id if state is None else state.replica_id  # the field has moved in version 15
    if sender_id >= 0 and is_new:
        replica.follower_fetched(ReplicaKey(sender_id, asked.replica_directory_id), asked.fetch_offset, now_ms)
    response = answer(replica, inbound)
    if asked.fetch_offset < replica.log.end_offset:
        return AnswerWithRecords(inbound.token, response, asked.fetch_offset, request.max_bytes)
    told = response.responses[0].partitions[0].high_watermark
    # Versions before 18 give no high watermark, and its default is the largest number: they wait for records alone.
    return Answer(inbound.token, response) if asked.high_watermark < told else None


def answer(
    replica: Replica, inbound: Inbound, error: int = ErrorCode.NONE, problem: Diverging | SnapshotId | None = None
) -> FetchResponse:
    """An answer without records."""
    role = replica.role
    known = role.high_watermark if isinstance(role, Leader) and error == ErrorCode.NONE else None
    partition = PartitionData(
        error_code=error,
        high_watermark=-1 if known is None else known,
        log_start_offset=replica.log.start_offset,
        current_leader=LeaderIdAndEpoch(leader_id=replica.leader_id, leader_epoch=replica.epoch),
        aborted_transactions=None,
        records=b"",
    )
    if isinstance(problem, Diverging):
        partition.diverging_epoch = EpochEndOffset(epoch=problem.epoch, end_offset=problem.end_offset)
    elif problem is not None:
        partition.snapshot_id = WireSnapshotId(end_offset=problem.offset, epoch=problem.epoch)
    return FetchResponse(
        responses=[FetchableTopicResponse(topic=TOPIC, topic_id=METADATA_TOPIC_ID, partitions=[partition])],
        node_endpoints=leader_address(replica, NodeEndpoint, inbound.listener) if inbound.version >= _ENDPOINTS_SINCE else [],
    )


def not_leader(replica: Replica, inbound: Inbound) -> FetchResponse:
    """The answer to a parked Fetch when this replica leads no more."""
    return answer(replica, inbound, ErrorCode.NOT_LEADER_OR_FOLLOWER)


def _partition(request: FetchRequest, version: int) -> FetchPartition | None:
    if len(request.topics) != 1 or len(request.topics[0].partitions) != 1 or request.topics[0].partitions[0].partition != 0:
        return None
    topic = request.topics[0]
    is_ours = topic.topic_id == METADATA_TOPIC_ID if version >= _TOPIC_IDS_SINCE else topic.topic == TOPIC
    return topic.partitions[0] if is_ours else None


# -- At the follower


def answered(replica: Replica, sent: InFlight, response: FetchResponse, now_ms: int) -> bool:
    """The leader has answered; returns whether its connection may be used again at once."""
    if response.error_code != ErrorCode.NONE or len(response.responses) != 1 or len(response.responses[0].partitions) != 1:
        return False
    told = response.responses[0].partitions[0]
    leader = told.current_leader or LeaderIdAndEpoch()
    endpoints = endpoints_in(replica, leader.leader_id, response.node_endpoints)
    handled = learn_from_answer(replica, told.error_code, leader.leader_id, leader.leader_epoch, endpoints, now_ms)
    if handled is not None:
        return (_has_resigned(replica, sent, told) and replica.ask_early(now_ms)) or handled
    role = replica.role
    if not isinstance(role, Follower):
        return False
    replica.may_ask_early = False
    role = role._replace(fetch_deadline_ms=now_ms + replica.settings.fetch_timeout_ms, has_fetched=True)
    replica.set_role(role)
    replica.lost_leader_epoch = -1
    replica.told_high_watermark = max(told.high_watermark, replica.told_high_watermark)
    if told.diverging_epoch is not None and told.diverging_epoch.epoch >= 0:
        return _truncate(replica, Diverging(told.diverging_epoch.epoch, told.diverging_epoch.end_offset))
    if told.snapshot_id is not None and (told.snapshot_id.epoch >= 0 or told.snapshot_id.end_offset >= 0):
        wanted = SnapshotId(told.snapshot_id.end_offset, told.snapshot_id.epoch)
        if min(wanted) < 0:
            return False
        if covers(replica.log, wanted):
            return False  # the log may have records behind it that this replica has acknowledged
        # Also if the snapshot is there: a kill after it was stored may have left a log that diverges from it.
        replica.set_role(role._replace(snapshot=SnapshotFetch(wanted)))
        return True
    if told.records:
        replica.change_log(AppendFetched(told.records, role.epoch))
    if told.high_watermark >= 0:
        replica.leader_high_watermark = max(told.high_watermark, replica.leader_high_watermark)
    return True


def _has_resigned(replica: Replica, sent: InFlight, told: PartitionData) -> bool:
    """Whether the leader that this replica follows has answered that it leads no more: it has been started again."""
    role, leader = replica.role, told.current_leader
    return (
        told.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        and isinstance(role, Follower)
        and sent.destination.id == role.leader_id
        and leader is not None
        and leader.leader_epoch == role.epoch
    )


def _truncate(replica: Replica, diverging: Diverging) -> bool:
    offset = truncation_offset(replica.log, diverging)
    if replica.high_watermark is not None and offset < replica.high_watermark:
        replica.broken(
            f"the leader of epoch {replica.epoch} wants the metadata log cut at offset {offset}, below the high watermark "
            f"{replica.high_watermark}: committed records would be lost"
        )
    if offset < replica.log.end_offset:
        replica.change_log(Truncate(offset))
        replica.history.truncate_to(offset)
        replica.synced_offset = min(replica.synced_offset, offset)
    return True
