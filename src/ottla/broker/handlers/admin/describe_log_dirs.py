"""DescribeLogDirs: the log directories of this node, their sizes, and the partitions in them.

A partition that is being moved is listed twice: where it is, and as a future replica in its new directory, with its lag. A
directory that has failed has only KAFKA_STORAGE_ERROR.

v3: an error code for the whole response. v4: total and usable bytes of each directory. v5: whether a directory is cordoned.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ottla.broker.requests.context import Handled, PendingTask, RequestContext
from ottla.broker.requests.scheduler import Pauses
from ottla.errors import KafkaError, LogDirectoryFailed
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition
from ottla.wire.elements import MANY_ELEMENTS, has_many_elements
from ottla.wire.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

if TYPE_CHECKING:
    from ottla.log.directories.log_directories import LogDirectories
    from ottla.log.directories.log_directory import LogDirectory
    from ottla.log.partition_log import PartitionLog

_NO_LAG = -1


def handle(context: RequestContext, request: DescribeLogDirsRequest) -> Handled:
    return PendingTask(_describe(context, request))


def refuse(context: RequestContext, request: DescribeLogDirsRequest, error: KafkaError) -> DescribeLogDirsResponse:
    return DescribeLogDirsResponse(error_code=error.code)


async def _describe(context: RequestContext, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    response, services, pauses = DescribeLogDirsResponse(), context.services, Pauses(context)
    wanted = await pauses.off_loop(partial(_wanted, request)) if has_many_elements(request) else _wanted(request)
    for directory in services.directories.placeable:
        result = DescribeLogDirsResult(log_dir=directory.path)
        result.is_cordoned = services.directories.is_cordoned(directory)
        response.results.append(result)
        try:
            if directory.is_online:
                result.total_bytes, result.usable_bytes = await services.world.disk.space(directory.path)
        except OSError as error:
            services.partitions.lose_directory(LogDirectoryFailed(directory.path, error))
        if directory.is_online:
            result.topics = await _topics(services.directories, directory, wanted, pauses)
        else:
            result.error_code = ErrorCode.KAFKA_STORAGE_ERROR
    return response


def _wanted(request: DescribeLogDirsRequest) -> set[TopicPartition] | None:
    if request.topics is None:
        return None
    return {TopicPartition(topic.topic, index) for topic in request.topics for index in topic.partitions}


async def _topics(
    directories: LogDirectories, directory: LogDirectory, wanted: set[TopicPartition] | None, pauses: Pauses
) -> list[DescribeLogDirsTopic]:
    topics: dict[str, DescribeLogDirsTopic] = {}
    for logs, is_future in ((directory.logs, False), (directory.future_logs, True)):
        sort = partial(sorted, list(logs.items()))
        for partition, log in await pauses.off_loop(sort) if len(logs) > MANY_ELEMENTS else sort():
            await pauses.here()
            if (wanted is None or partition in wanted) and partition in logs:
                topic = topics.setdefault(partition.topic, DescribeLogDirsTopic(name=partition.topic))
                topic.partitions.append(_partition(directories, partition, log, is_future))
    return list(topics.values())


def _partition(
    directories: LogDirectories, partition: TopicPartition, log: PartitionLog, is_future: bool
) -> DescribeLogDirsPartition:
    described = DescribeLogDirsPartition(partition_index=partition.partition, is_future_key=is_future)
    described.partition_size = log.size_bytes
    if not is_future:
        described.offset_lag = max(0, log.high_watermark - log.log_end_offset)
    else:
        owner = directories.directory_of(partition)
        current = owner.logs.get(partition) if owner is not None else None
        described.offset_lag = _NO_LAG if current is None else current.log_end_offset - log.log_end_offset
    return described
