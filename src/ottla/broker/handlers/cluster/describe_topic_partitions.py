"""DescribeTopicPartitions: topics and their partitions, a page at a time, with the eligible leader replicas.

Topics come in the order of their names. A page ends after a number of partitions; its cursor says where the next page begins.
If the cursor's topic was deleted since, the next page begins with the first partition of the following topic.

There is only version 0.
"""

from __future__ import annotations

from bisect import bisect_left
from functools import partial
from typing import TYPE_CHECKING

from ottla.broker.handlers.cluster.cluster_view import authorized_operations, unknown_topic_code, view_partition
from ottla.broker.requests.context import Handled, RequestContext
from ottla.broker.requests.scheduler import SMALL_CALL_BYTES, in_slices
from ottla.env import OffLoop
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import INTERNAL_TOPICS
from ottla.metadata.acls import Operation, ResourceType
from ottla.metadata.image.image import MetadataImage
from ottla.metadata.image.topics import PartitionState, Topic
from ottla.wire.elements import MANY_ELEMENTS
from ottla.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseCursor,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)

if TYPE_CHECKING:
    from ottla.env import Steps


def handle(context: RequestContext, request: DescribeTopicPartitionsRequest) -> Handled:
    return in_slices(context, _answer(context, request))


def _answer(context: RequestContext, request: DescribeTopicPartitionsRequest) -> Steps[Handled]:
    image = context.services.metadata.image
    cursor = request.cursor
    if cursor is not None and request.topics and all(topic.name != cursor.topic_name for topic in request.topics):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"the cursor is at topic {cursor.topic_name!r}, which the request does not name"
        )
    if cursor is not None and cursor.partition_index < 0:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"a cursor cannot be at partition {cursor.partition_index}")
    names = {topic.name for topic in request.topics} or image.topics.by_name
    wanted = (yield OffLoop(partial(sorted, names), SMALL_CALL_BYTES)) if len(names) > MANY_ELEMENTS else sorted(names)
    if cursor is not None:
        wanted = wanted[bisect_left(wanted, cursor.topic_name) :]
    limit = max(min(context.services.settings.current.max_request_partition_size_limit, request.response_partition_limit), 1)
    response = DescribeTopicPartitionsResponse()
    denied: list[DescribeTopicPartitionsResponseTopic] = []
    for name in wanted:
        if not context.allows(Operation.DESCRIBE, ResourceType.TOPIC, name, is_silent=not request.topics):
            if request.topics:
                denied.append(_denied(name))
            yield None
            continue
        first = cursor.partition_index if cursor is not None and cursor.topic_name == name else 0
        if limit == 0:
            response.next_cursor = DescribeTopicPartitionsResponseCursor(topic_name=name, partition_index=first)
            break
        topic = image.topics.by_name.get(name)
        described = _describe(context, topic, name)
        response.topics.append(described)
        if topic is None:
            yield None
            continue
        following = max(first, min(first + limit, len(topic.partitions)))
        for index in range(first, following):
            state = topic.partitions[index]
            described.partitions.append(_describe_partition(image, index, state, context.connection.listener))
            yield None
        limit -= len(described.partitions)
        if following < len(topic.partitions):
            response.next_cursor = DescribeTopicPartitionsResponseCursor(topic_name=name, partition_index=following)
            break
    response.topics += denied
    return response


def _denied(name: str) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(name=name, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def _describe(context: RequestContext, topic: Topic | None, name: str) -> DescribeTopicPartitionsResponseTopic:
    """A topic, without its partitions."""
    described = DescribeTopicPartitionsResponseTopic(
        name=name,
        is_internal=name in INTERNAL_TOPICS,
        topic_authorized_operations=authorized_operations(context, ResourceType.TOPIC, name),
    )
    if topic is None:
        described.error_code = unknown_topic_code(name)
    else:
        described.topic_id = topic.id
    return described


def _describe_partition(
    image: MetadataImage, index: int, state: PartitionState, listener: str
) -> DescribeTopicPartitionsResponsePartition:
    view = view_partition(image, state, listener)
    return DescribeTopicPartitionsResponsePartition(
        error_code=view.error_code,
        partition_index=index,
        leader_id=view.leader,
        leader_epoch=state.leader_epoch,
        replica_nodes=list(state.replicas),
        isr_nodes=list(state.isr),
        eligible_leader_replicas=list(state.elr),
        last_known_elr=list(state.last_known_elr),
        offline_replicas=view.offline_replicas,
    )


def refuse(
    context: RequestContext, request: DescribeTopicPartitionsRequest, error: KafkaError
) -> DescribeTopicPartitionsResponse:
    response = DescribeTopicPartitionsResponse()
    response.topics = [DescribeTopicPartitionsResponseTopic(name=topic.name, error_code=error.code) for topic in request.topics]
    return response
