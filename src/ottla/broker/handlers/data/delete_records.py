"""DeleteRecords: raises the log start offset of partitions. The response has the new one.

Other replicas take it over with their next fetch. The response waits until those that are up have it, for `timeout_ms` at most.

The new log start offset is checkpointed to disk before the response, so that no restart shows deleted records again. (Apache
Kafka writes the checkpoint once a minute.) The next round of retention deletes the segments.

All versions (0 to 2) have the same fields.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ottla.broker.handlers.data.hosted_partitions import ask
from ottla.broker.requests.context import Handled, PendingTask, RequestContext
from ottla.broker.requests.scheduler import in_slices
from ottla.env.uninterrupted import uninterrupted
from ottla.errors import KafkaError, LogDirectoryFailed
from ottla.errors.codes import ErrorCode
from ottla.ids import INTERNAL_TOPICS, TopicPartition
from ottla.wire.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

if TYPE_CHECKING:
    from ottla.broker.partitions.partition import Partition
    from ottla.broker.services import Services
    from ottla.env import Steps
    from ottla.log.partition_log import PartitionLog

HIGH_WATERMARK = -1
_NO_OFFSET = -1


def handle(context: RequestContext, request: DeleteRecordsRequest) -> Handled:
    return in_slices(context, _delete_each(context, request))


def _delete_each(context: RequestContext, request: DeleteRecordsRequest) -> Steps[Handled]:
    # If a partition is named twice, the last offset counts.
    wanted = {
        TopicPartition(topic.name, each.partition_index): each.offset for topic in request.topics for each in topic.partitions
    }
    results: dict[TopicPartition, DeleteRecordsPartitionResult] = {}
    for partition, offset in wanted.items():
        results[partition] = _delete(context.services, partition, offset)
        yield None
    deleted = [partition for partition, result in results.items() if result.error_code == ErrorCode.NONE]
    if not deleted:
        return _response(results)
    return PendingTask(_make_sure(context.services, results, deleted, request.timeout_ms), may_give_up=True)


def refuse(context: RequestContext, request: DeleteRecordsRequest, error: KafkaError) -> DeleteRecordsResponse:
    return _response(
        {
            TopicPartition(topic.name, each.partition_index): _failed(each.partition_index, error.code)
            for topic in request.topics
            for each in topic.partitions
        }
    )


def _failed(index: int, code: int) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(partition_index=index, low_watermark=_NO_OFFSET, error_code=code)


def _response(results: dict[TopicPartition, DeleteRecordsPartitionResult]) -> DeleteRecordsResponse:
    topics: dict[str, DeleteRecordsTopicResult] = {}
    for partition, result in results.items():
        topics.setdefault(partition.topic, DeleteRecordsTopicResult(name=partition.topic)).partitions.append(result)
    return DeleteRecordsResponse(topics=list(topics.values()))


def _delete(services: Services, partition: TopicPartition, offset: int) -> DeleteRecordsPartitionResult:
    """Raise the log start offset of one partition, in memory."""
    try:
        if services.metadata.partition(*partition) is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {partition}")
        if partition.topic in INTERNAL_TOPICS:
            raise KafkaError(
                ErrorCode.INVALID_TOPIC_EXCEPTION, f"records of the internal topic {partition.topic} are not deleted by hand"
            )
        leader = services.partitions.leader(*partition)
        low_watermark = ask(leader, lambda log: _shorten(log, offset))
        leader.look_for_followers()  # their next responses carry the new log start offset
    except KafkaError as error:
        return _failed(partition.partition, error.code)
    return DeleteRecordsPartitionResult(partition_index=partition.partition, low_watermark=low_watermark)


def _shorten(log: PartitionLog, offset: int) -> int:
    if not log.config.delete:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION,
            f"{log.partition} is compacted, and its cleanup.policy has no delete: its records are not deleted by offset",
        )
    if offset == HIGH_WATERMARK:
        offset = log.high_watermark
    if offset < 0:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"{offset} is no offset of {log.partition}")
    log.delete_records(offset)
    return log.log_start_offset


async def _make_sure(
    services: Services,
    results: dict[TopicPartition, DeleteRecordsPartitionResult],
    deleted: list[TopicPartition],
    timeout_ms: int,
) -> DeleteRecordsResponse:
    """The response, when the new log start offsets are on disk and on the other replicas."""
    deadline_s = asyncio.get_running_loop().time() + timeout_ms / 1000
    await uninterrupted(_write_down(services, results, deleted))  # also if the request is given up meanwhile
    for partition in deleted:
        result, held = results[partition], services.partitions.find(*partition)
        if result.error_code == ErrorCode.NONE and held is not None and held.in_sync is not None:
            code = await reach(held, result.low_watermark, deadline_s)
            if code != ErrorCode.NONE:
                results[partition] = _failed(partition.partition, code)
    return _response(results)


async def _write_down(
    services: Services, results: dict[TopicPartition, DeleteRecordsPartitionResult], deleted: list[TopicPartition]
) -> None:
    written: set[str] = set()
    for partition in deleted:
        # A partition may move to another directory while the checkpoint of this one is written.
        while (directory := services.directories.directory_of(partition)) is not None and directory.path not in written:
            try:
                await directory.write_log_starts()
            except LogDirectoryFailed as failure:
                services.partitions.lose_directory(failure)
                results[partition] = _failed(partition.partition, ErrorCode.KAFKA_STORAGE_ERROR)
                break
            written.add(directory.path)


class LowWatermarkWait:
    """Waits until the low watermark of `partition` is at `offset`. `done` gets an error code."""

    __slots__ = ("_offset", "_partition", "done")

    def __init__(self, partition: Partition, offset: int) -> None:
        self._partition = partition
        self._offset = offset
        self.done: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        partition.ack_waits[self] = None

    def settle(self, partition: Partition) -> bool:
        """Called by the partition when something has changed: True if the wait is over."""
        if self.done.done():
            return True
        if not partition.is_leading:
            self.done.set_result(partition.refusal().code)
        elif partition.low_watermark >= self._offset:
            self.done.set_result(ErrorCode.NONE)
        return self.done.done()

    def leave(self) -> None:
        self._partition.ack_waits.pop(self, None)


async def reach(partition: Partition, offset: int, deadline_s: float) -> int:
    """Wait until the low watermark is at `offset`; returns NONE, REQUEST_TIMED_OUT or why this node leads no more."""
    wait = LowWatermarkWait(partition, offset)
    try:
        if wait.settle(partition):
            return wait.done.result()
        async with asyncio.timeout_at(deadline_s):
            return await wait.done
    except TimeoutError:
        return ErrorCode.REQUEST_TIMED_OUT
    finally:
        wait.leave()
