"""DescribeQuorum: the leader and the high watermark of the metadata log, its voters and observers. The leader answers.

A broker forwards the request to the leader; a controller that does not lead refuses it.

v1: when each replica last fetched and was last caught up. v2: directory ids, endpoints of the nodes, error messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ottla.broker.channel.forwarded import ForwardedRequest
from ottla.broker.requests.context import Handled, PendingTask, RequestContext
from ottla.broker.requests.scheduler import in_slices
from ottla.broker.runtime.quorum_facts import QuorumFacts, ReplicaFacts
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import ZERO_UUID
from ottla.log.names import CLUSTER_METADATA_TOPIC
from ottla.metadata.acls import Operation, ResourceType
from ottla.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    DescribeQuorumResponsePartitionData,
    DescribeQuorumResponseTopicData,
    Listener,
    Node,
    ReplicaState,
)

if TYPE_CHECKING:
    from ottla.env import Steps

_DIRECTORIES_AND_NODES_SINCE = 2

_TRY_MS = 2000
"""How long one attempt to reach the leader takes; the next one asks which node leads by then."""
_ATTEMPTS_MAX = 12


def handle(context: RequestContext, request: DescribeQuorumRequest) -> Handled:
    if not _is_about_metadata_log(request):
        return in_slices(context, _failed(request, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    if context.services.quorum.is_leader:
        return _described(context)
    if context.connection.is_controller_listener:
        return in_slices(context, _failed(request, ErrorCode.NOT_LEADER_OR_FOLLOWER))
    return PendingTask(_from_leader(context, request))


async def _from_leader(context: RequestContext, request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    """The leader's response; raises `KafkaError` if none can be reached."""
    for attempt in range(1, _ATTEMPTS_MAX + 1):
        if context.services.quorum.is_leader:
            return _described(context)
        try:
            response: DescribeQuorumResponse = await context.services.channel.forward(
                ForwardedRequest.of(context, request), _TRY_MS
            )
        except KafkaError as refused:
            if refused.code != ErrorCode.REQUEST_TIMED_OUT or attempt == _ATTEMPTS_MAX:
                raise
        else:
            return response
    raise AssertionError("unreachable: the last attempt returns or raises")


def _described(context: RequestContext) -> DescribeQuorumResponse:
    if not context.connection.is_controller_listener:  # nothing was forwarded, so nothing was authorized yet
        context.require(Operation.DESCRIBE, ResourceType.CLUSTER)
    facts = context.services.quorum.facts()
    described = DescribeQuorumResponsePartitionData(
        partition_index=0,
        error_message=None,
        leader_id=facts.leader_id,
        leader_epoch=facts.leader_epoch,
        high_watermark=facts.high_watermark,
        current_voters=_replicas(facts.voters, context.version),
        observers=_replicas(facts.observers, context.version),
    )
    return DescribeQuorumResponse(
        error_message=None,
        topics=[DescribeQuorumResponseTopicData(topic_name=CLUSTER_METADATA_TOPIC, partitions=[described])],
        nodes=_nodes(facts) if context.version >= _DIRECTORIES_AND_NODES_SINCE else [],
    )


def _replicas(replicas: Sequence[ReplicaFacts], version: int) -> list[ReplicaState]:
    return [
        ReplicaState(
            replica_id=each.replica_id,
            replica_directory_id=each.directory_id if version >= _DIRECTORIES_AND_NODES_SINCE else ZERO_UUID,
            log_end_offset=each.log_end_offset,
            last_fetch_timestamp=each.last_fetch_ms,
            last_caught_up_timestamp=each.last_caught_up_ms,
        )
        for each in replicas
    ]


def _nodes(facts: QuorumFacts) -> list[Node]:
    return [
        Node(node_id=id, listeners=[Listener(name=name, host=host, port=port) for name, (host, port) in endpoints.items()])
        for id, endpoints in facts.endpoints.items()
    ]


def _is_about_metadata_log(request: DescribeQuorumRequest) -> bool:
    """Whether the request names the metadata log and nothing else. No other partition has a quorum."""
    if len(request.topics) != 1 or len(request.topics[0].partitions) != 1:
        return False
    (topic,) = request.topics
    return topic.topic_name == CLUSTER_METADATA_TOPIC and topic.partitions[0].partition_index == 0


def _failed(request: DescribeQuorumRequest, code: int) -> Steps[Handled]:
    """Every partition gets `code`."""
    response = DescribeQuorumResponse(error_message=None)
    for topic in request.topics:
        yield None
        answer = DescribeQuorumResponseTopicData(topic_name=topic.topic_name)
        response.topics.append(answer)
        for each in topic.partitions:
            yield None
            answer.partitions.append(
                DescribeQuorumResponsePartitionData(partition_index=each.partition_index, error_code=code, error_message=None)
            )
    return response


def refuse(context: RequestContext, request: DescribeQuorumRequest, error: KafkaError) -> DescribeQuorumResponse:
    return DescribeQuorumResponse(error_code=error.code, error_message=str(error))
