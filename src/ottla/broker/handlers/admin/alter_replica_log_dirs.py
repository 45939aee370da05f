"""AlterReplicaLogDirs: moves partitions to other log directories of this node. Answered when the moves have begun.

A partition that this node does not hold yet is refused. If it is created later, it is created in the requested directory.

All versions (1 and 2) have the same fields.
"""

from __future__ import annotations

from ottla.broker.requests.context import Handled, PendingTask, RequestContext
from ottla.broker.requests.scheduler import Pauses
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition
from ottla.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)


def handle(context: RequestContext, request: AlterReplicaLogDirsRequest) -> Handled:
    # If a partition is named twice, the last directory counts.
    wanted = {
        TopicPartition(topic.name, index): directory.path
        for directory in request.dirs
        for topic in directory.topics
        for index in topic.partitions
    }
    return PendingTask(_move(context, wanted))


def refuse(context: RequestContext, request: AlterReplicaLogDirsRequest, error: KafkaError) -> AlterReplicaLogDirsResponse:
    return _response(
        {
            TopicPartition(topic.name, index): error.code
            for directory in request.dirs
            for topic in directory.topics
            for index in topic.partitions
        }
    )


async def _move(context: RequestContext, wanted: dict[TopicPartition, str]) -> AlterReplicaLogDirsResponse:
    codes: dict[TopicPartition, int] = {}
    services, pauses = context.services, Pauses(context)
    for partition, path in wanted.items():
        try:
            await services.moves.request(partition, path)
            codes[partition] = ErrorCode.NONE
        except KafkaError as error:
            codes[partition] = error.code
        await pauses.here()
    return _response(codes)


def _response(codes: dict[TopicPartition, int]) -> AlterReplicaLogDirsResponse:
    topics: dict[str, AlterReplicaLogDirTopicResult] = {}
    for partition, code in codes.items():
        topic = topics.setdefault(partition.topic, AlterReplicaLogDirTopicResult(topic_name=partition.topic))
        topic.partitions.append(AlterReplicaLogDirPartitionResult(partition_index=partition.partition, error_code=code))
    return AlterReplicaLogDirsResponse(results=list(topics.values()))
