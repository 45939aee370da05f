"""ListOffsets: where a partition begins and ends, and which record is the first not older than a time.

Negative times have meanings of their own, each since a version. In an older version, or if it is unknown, the partition gets
UNSUPPORTED_VERSION. There is no remote storage: nothing has been uploaded, and nothing waits to be.

A search by time may have to look into many batches. It is done in slices (`broker/requests/scheduler.py`).

A consumer sees nothing above the high watermark, or above the last stable offset under read_committed. Other replicas and
debugging tools see the whole log.

v2: isolation level. v4: leader epochs, in request and response. v5: OFFSET_NOT_AVAILABLE. v7: time -3, the record with the
largest timestamp. v8: -4, earliest local offset. v9: -5, latest offset in remote storage. v10: timeout for lookups in remote
storage, not used. v11: -6, earliest offset that waits for upload.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ottla.broker.handlers.data.hosted_partitions import hosted
from ottla.broker.requests.context import Handled, RequestContext
from ottla.broker.requests.scheduler import in_slices
from ottla.errors import KafkaError, OttlaError
from ottla.errors.codes import ErrorCode
from ottla.log.segments.time_lookup import TimedOffset
from ottla.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

if TYPE_CHECKING:
    from ottla.broker.partitions.partition import Partition
    from ottla.env import Steps
    from ottla.log.partition_log import PartitionLog

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6

_SINCE_VERSION = {LATEST: 0, EARLIEST: 0, MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11}
_LEADER_EPOCH_SINCE = 4
_OFFSET_NOT_AVAILABLE_SINCE = 5

_CONSUMER = -1
_DEBUGGING_CONSUMER = -2
_READ_UNCOMMITTED, _READ_COMMITTED = 0, 1


def handle(context: RequestContext, request: ListOffsetsRequest) -> Handled:
    if request.isolation_level not in (_READ_UNCOMMITTED, _READ_COMMITTED):
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"isolation level {request.isolation_level} is neither 0 (read_uncommitted) nor 1 (read_committed)",
        )
    return in_slices(context, _answer_all(context, request))


def _answer_all(context: RequestContext, request: ListOffsetsRequest) -> Steps[Handled]:
    asked = Counter((topic.name, each.partition_index) for topic in request.topics for each in topic.partitions)
    answers: dict[str, ListOffsetsTopicResponse] = {}
    for topic in request.topics:
        if not topic.partitions:  # as in Kafka, a topic without partitions is not in the response
            continue
        answer = answers.get(topic.name)
        if answer is None:
            answer = answers[topic.name] = ListOffsetsTopicResponse(name=topic.name)
        for each in topic.partitions:
            times = asked.pop((topic.name, each.partition_index), 0)
            if times > 1:  # as in Kafka, a repeated partition is refused
                answer.partitions.append(_failed(each.partition_index, ErrorCode.INVALID_REQUEST))
            elif times == 1:
                answer.partitions.append((yield from _answer_one(context, request, topic.name, each)))
            yield None
    return ListOffsetsResponse(topics=list(answers.values()))


def refuse(context: RequestContext, request: ListOffsetsRequest, error: KafkaError) -> ListOffsetsResponse:
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name, partitions=[_failed(each.partition_index, error.code) for each in topic.partitions]
            )
            for topic in request.topics
        ]
    )


def _failed(index: int, code: int) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=index, error_code=code)


def _answer_one(
    context: RequestContext, request: ListOffsetsRequest, topic: str, asked: ListOffsetsPartition
) -> Steps[ListOffsetsPartitionResponse]:
    index, services = asked.partition_index, context.services
    if asked.timestamp < 0 and _SINCE_VERSION.get(asked.timestamp, context.version + 1) > context.version:
        return _failed(index, ErrorCode.UNSUPPORTED_VERSION)
    try:
        if request.replica_id == _DEBUGGING_CONSUMER and asked.current_leader_epoch == -1:
            partition = hosted(services, topic, index)
        else:
            partition = services.partitions.leader(topic, index, asked.current_leader_epoch)
        try:
            found = yield from _find(partition, asked.timestamp, request, context.version)
        except OttlaError as failure:
            raise partition.refused_by(failure) from None
    except KafkaError as error:
        return _failed(index, error.code)
    response = ListOffsetsPartitionResponse(partition_index=index)
    if found is not None:
        response.timestamp, response.offset = found.timestamp, found.offset
        if context.version >= _LEADER_EPOCH_SINCE:
            response.leader_epoch = found.leader_epoch
    return response


def _find(partition: Partition, timestamp: int, request: ListOffsetsRequest, version: int) -> Steps[TimedOffset | None]:
    log, leader_epoch = partition.log, partition.leader_epoch
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return log.earliest_offset()
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return None
    if timestamp == LATEST:
        found: TimedOffset | None = TimedOffset(-1, _bound(log, request), leader_epoch)
    else:
        steps = log.search_max_timestamp() if timestamp == MAX_TIMESTAMP else log.search_by_time(timestamp)
        found = yield from steps
        if partition.leader_epoch != leader_epoch or log.failure is not None:
            raise partition.refusal()  # it has a new leader since the search began
        if found is not None and found.offset < _bound(log, request):
            return found
        found = None
    if request.replica_id == _CONSUMER and _is_catching_up(log, leader_epoch):
        code = ErrorCode.OFFSET_NOT_AVAILABLE if version >= _OFFSET_NOT_AVAILABLE_SINCE else ErrorCode.LEADER_NOT_AVAILABLE
        raise KafkaError(code, f"the new leader of {log.partition} does not know yet how far the partition is replicated")
    return found


def _bound(log: PartitionLog, request: ListOffsetsRequest) -> int:
    """The end of what the reader may see."""
    if request.replica_id != _CONSUMER:
        return log.log_end_offset
    return log.last_stable_offset if request.isolation_level == _READ_COMMITTED else log.high_watermark


def _is_catching_up(log: PartitionLog, leader_epoch: int) -> bool:
    """Whether the high watermark is below the start of this leader's epoch: a consumer could be sent behind its position."""
    newest = log.epochs.latest_entry
    return newest is not None and newest[0] == leader_epoch and log.high_watermark < newest[1]
