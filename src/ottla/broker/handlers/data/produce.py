"""Produce: appends batches, each to its partition. The general path; most requests take the fast one.

The records of a request are views of the buffer that the request came in, and are changed and written from there: nothing is
copied. Where a partition's records are safe at once, as they are on one node unless flush.messages says otherwise, the answer
is there when the handler returns; else the request waits (`purgatory/acks.py`).

Most requests do not come here: `produce_frames.py` answers them from frame to frame, to the same effect. What it declines
comes with what it found out about the batches (`RequestContext.checked`), which is not checked again. Records of a transaction
may have to wait before they are appended (`produce_in_transaction.py`). So do batches for topics that check schema ids, if
the schema registry must be asked (`produce_schemas.py`).

Partitions are appended to in slices (`requests/scheduler.py`). A batch whose check is expensive (it has to be decompressed, or
compressed with another codec) is checked in a worker thread and appended afterwards. No other request of the connection is
handled until the last batch is appended, so that the order of each partition is kept.

Each partition is answered for itself, but for records of a transaction in a request that names none. With acks=0 nothing is
answered, and an error ends the connection, so that the producer learns that there was one.

v5: log start offset in the response. v7: zstd. v8: error messages, for the partition and for single records. v10: endpoints of
new leaders. v11: TRANSACTION_ABORTABLE. v12: partitions added to a transaction implicitly. v13: topic ids instead of names.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, cast

from ottla.broker.handlers.data.leader_hints import leader_hint
from ottla.broker.partitions.partition import ALL_IN_SYNC, Partition
from ottla.broker.purgatory.acks import DelayedProduce
from ottla.broker.requests.apis import is_transactional
from ottla.broker.requests.context import CloseConnection, Handled, RequestContext
from ottla.broker.requests.scheduler import SMALL_CALL_BYTES, in_slices
from ottla.env import OffLoop
from ottla.errors import KafkaError, drop_frames
from ottla.errors.codes import ErrorCode
from ottla.errors.texts import counted
from ottla.ids import Uuid, uuid_text
from ottla.records.effort import ON_LOOP, TooExpensive
from ottla.records.layout import LENGTH_AT, LOG_OVERHEAD
from ottla.records.produced.validate import only_batch
from ottla.wire.elements import MANY_ELEMENTS
from ottla.wire.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

if TYPE_CHECKING:
    from ottla.broker.handlers.data.produce_in_transaction import Verified
    from ottla.broker.partitions.kernel import PartitionTail
    from ottla.broker.requests.pipeline import AnswersFrames
    from ottla.broker.services import Services
    from ottla.env import Steps
    from ottla.log.append import AppendInfo
    from ottla.records.produced.validate import ValidBatch

HINTS_SINCE = 10
TOPIC_IDS_SINCE = 13
NO_ACKS, LEADER_ACKS = 0, 1
ACKS = (ALL_IN_SYNC, LEADER_ACKS, NO_ACKS)
NOT_ASKED: Verified = {}
"""Given as `verified` where the records of transactions are not verified at all."""

_WITHOUT_LOG_START = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.INVALID_REQUIRED_ACKS,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)
"""Errors that are answered without saying where the log begins, as Kafka does."""


def handle(context: RequestContext, request: ProduceRequest, verified: Verified | None = None) -> Handled:
    """Append what came; `verified` is what coordinators have said of the transactions in it."""
    if verified is None and request.transactional_id is not None:
        from ottla.broker.handlers.data.produce_in_transaction import hold  # late: few producers are transactional

        return hold(context, request)
    topics = request.topic_data
    if len(topics) > MANY_ELEMENTS or sum([len(topic.partition_data) for topic in topics]) > MANY_ELEMENTS:
        return in_slices(context, _append_many(context, request, verified))
    if verified is None:
        _check_not_transactional(request)
    if _has_repeats(topics):
        topics = _without_repeats(topics)
        context.checked = None  # it may be about the batch of a partition that is now left out
    return in_slices(context, _append_all(context, request, topics, verified))


def _append_many(context: RequestContext, request: ProduceRequest, verified: Verified | None) -> Steps[Handled]:
    """Append what came for many partitions: a worker thread looks through them first."""
    call = partial(_looked_through, request, verified)
    topics: list[TopicProduceData] = yield OffLoop(call, SMALL_CALL_BYTES)
    if topics is not request.topic_data:
        context.checked = None
    return (yield from _append_all(context, request, topics, verified))


def _looked_through(request: ProduceRequest, verified: Verified | None) -> list[TopicProduceData]:
    if verified is None:
        _check_not_transactional(request)
    topics = request.topic_data
    return _without_repeats(topics) if _has_repeats(topics) else topics


def _append_all(
    context: RequestContext, request: ProduceRequest, topics: list[TopicProduceData], verified: Verified | None
) -> Steps[Handled]:
    response = ProduceResponse()
    delayed = DelayedProduce(response, request.timeout_ms)
    try:
        has_failed = yield from _append_each(context, request, topics, verified, response, delayed)
    except BaseException:
        delayed.abandon()
        raise
    if request.acks == NO_ACKS:
        if has_failed:
            raise _closing(response)
        return None
    if has_failed and context.version >= HINTS_SINCE:
        _hint(context, response)
    if not delayed.is_waiting:
        return response
    for topic in topics:
        for data in topic.partition_data:
            data.records = None  # the frame is not needed while the request waits
    delayed.all_added()
    return delayed


def _append_each(
    context: RequestContext,
    request: ProduceRequest,
    topics: list[TopicProduceData],
    verified: Verified | None,
    response: ProduceResponse,
    delayed: DelayedProduce,
) -> Steps[bool]:
    """Append to each partition and fill in `response`; what is not acknowledged at once is added to `delayed`.

    Returns whether any partition refused.
    """
    acks, version, partitions = request.acks, context.version, context.services.partitions
    has_failed, is_first = False, True
    for topic in topics:
        entry = TopicProduceResponse()
        entry.name, entry.topic_id = topic.name, topic.topic_id
        response.responses.append(entry)
        if not topic.partition_data:
            yield None
        for data in topic.partition_data:
            if not is_first:  # a request for one partition is never parked for a pause
                yield None
            is_first = False
            answer = PartitionProduceResponse()
            answer.index = data.index
            entry.partition_responses.append(answer)
            held = partitions.by_id.get(topic.topic_id) if version >= TOPIC_IDS_SINCE else partitions.by_name.get(topic.name)
            partition = held.get(data.index) if held is not None else None
            # Decoding always gives a view of the frame, which is this request's to change.
            records = cast("memoryview | None", data.records)
            try:
                if partition is None:
                    raise _reason_missing(context, topic, data.index)
                info: AppendInfo | None = None
                checked: ValidBatch | None = None
                if partition.log.config.checks_schemas and partition.is_leading and records is not None and acks in ACKS:
                    checked = yield from _check_schemas(context, partition, records)
                try:
                    info = _append_one(context, request, partition, records, verified, checked)
                except TooExpensive as stopped:
                    drop_frames(stopped)
                if info is None:
                    assert records is not None, "only a batch is expensive"
                    valid = yield from partition.check_off_loop(records, version)
                    info = _append_one(context, request, partition, records, verified, valid)
            except KafkaError as error:
                fail(answer, error, partition if _has_come_to(partition, records, error, version, verified) else None)
                drop_frames(error)  # those of a check hold the decompressed batch
                has_failed = True
            else:
                answer.base_offset = info.first_offset
                answer.log_append_time_ms = info.append_time_ms
                answer.log_start_offset = info.log_start_offset
                if acks != NO_ACKS and not partition.is_acknowledged(info, acks):
                    delayed.add(partition, answer, info.last_offset + 1, acks == ALL_IN_SYNC)
    return has_failed


def _check_schemas(context: RequestContext, partition: Partition, records: memoryview) -> Steps[ValidBatch]:
    from ottla.broker.handlers.data.produce_schemas import check_schemas  # late: few topics have their schema ids checked

    return check_schemas(context.services, partition, records, context.version)


def _append_one(
    context: RequestContext,
    request: ProduceRequest,
    partition: Partition,
    records: memoryview | None,
    verified: Verified | None,
    valid: ValidBatch | None = None,
) -> AppendInfo:
    acks, version = request.acks, context.version
    if records is None or acks not in ACKS or partition.is_internal or is_transactional(records):
        return _append_transactional_or_refuse(context, request, partition, records, verified, valid)
    checked = None if context.checked is None else context.checked.get(partition)
    return partition.append(records, acks, version, checked=checked, effort=ON_LOOP, valid=valid)


def frame_answers(services: Services) -> AnswersFrames:
    """What answers requests without taking them apart, where it can."""
    from ottla.broker.handlers.fast_path.produce_frames import FrameAnswers  # late: it builds on this module

    return FrameAnswers(services)


def refuse(context: RequestContext, request: ProduceRequest, error: KafkaError) -> ProduceResponse:
    response = ProduceResponse()
    for topic in request.topic_data:
        entry = TopicProduceResponse(name=topic.name, topic_id=topic.topic_id)
        response.responses.append(entry)
        for data in topic.partition_data:
            entry.partition_responses.append(PartitionProduceResponse(index=data.index))
            fail(entry.partition_responses[-1], error, None)
    if request.acks == NO_ACKS:
        raise _closing(response)
    return response


# Repeated partitions, transactions, refusals


def _has_repeats(topics: list[TopicProduceData]) -> bool:
    for topic in topics:
        data = topic.partition_data
        if len(data) > 1 and len({each.index for each in data}) < len(data):
            return True
    return len(topics) > 1 and len({(topic.name, topic.topic_id) for topic in topics}) < len(topics)


def _without_repeats(topics: list[TopicProduceData]) -> list[TopicProduceData]:
    """Each topic once, with each partition once. No client sends one twice; if one does, the last counts, as with Kafka."""
    merged: dict[tuple[str, Uuid], dict[int, PartitionProduceData]] = {}
    for topic in topics:
        merged.setdefault((topic.name, topic.topic_id), {}).update({data.index: data for data in topic.partition_data})
    return [
        TopicProduceData(name=name, topic_id=topic_id, partition_data=list(by_index.values()))
        for (name, topic_id), by_index in merged.items()
    ]


def _check_not_transactional(request: ProduceRequest) -> None:
    """Refuse the whole request if it has no transactional id, but a batch that belongs to a transaction."""
    for topic in request.topic_data:
        for data in topic.partition_data:
            records = cast("memoryview | None", data.records)
            if records is not None and is_transactional(records) and _is_whole(records):
                raise KafkaError(
                    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
                    "records of a transaction came in a request without a transactional id; nothing of it is appended: set "
                    "transactional.id",
                )


def _is_whole(records: memoryview) -> bool:
    """Whether the first batch ends before the records do; one that is cut short gets that error later."""
    return int.from_bytes(records[LENGTH_AT:LOG_OVERHEAD], "big", signed=True) + LOG_OVERHEAD <= len(records)


def _append_transactional_or_refuse(
    context: RequestContext,
    request: ProduceRequest,
    partition: Partition,
    records: memoryview | None,
    verified: Verified | None,
    valid: ValidBatch | None,
) -> AppendInfo:
    """Append records of a transaction that its coordinator has verified; refuse everything else that comes here."""
    if records is None:
        raise KafkaError(
            ErrorCode.INVALID_RECORD, f"no records came for {partition.name}: a produce request has one batch each"
        )
    only_batch(records, str(partition.name), context.version)
    if request.acks not in ACKS:
        raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS, f"acks={request.acks} cannot be had: it is 0, 1 or all (-1)")
    if partition.is_internal:
        raise KafkaError(
            ErrorCode.INVALID_TOPIC_EXCEPTION, f"clients may not write to {partition.topic}: brokers keep it for themselves"
        )
    if verified is None or verified is NOT_ASKED:
        proof = None
    elif partition.name not in verified:
        raise KafkaError(
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            f"this node did not lead {partition.name} yet when the transaction's coordinator was asked: send it again",
        )
    else:
        proof = verified[partition.name]
    if isinstance(proof, KafkaError):
        raise proof
    return partition.append(records, request.acks, context.version, verified_by=proof, effort=ON_LOOP, valid=valid)


def _reason_missing(context: RequestContext, topic: TopicProduceData, index: int) -> KafkaError:
    name = topic.name
    if context.version >= TOPIC_IDS_SINCE:
        known = context.services.metadata.topic_by_id(topic.topic_id)
        if known is None:
            return KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, f"no topic has the id {uuid_text(topic.topic_id)}")
        name = known.name
    return context.services.partitions.reason_missing(name, index)


# Refusing


def _has_come_to(
    partition: Partition | None,
    records: memoryview | None,
    error: KafkaError,
    version: int,
    verified: Verified | None,
) -> bool:
    """Whether it was the partition that refused: only then the answer tells where its log begins.

    What is not one batch, and what a transaction's coordinator refuses, has not come so far.
    """
    if partition is None or records is None or (verified is not None and verified.get(partition.name) is error):
        return False
    try:
        only_batch(records, str(partition.name), version)
    except KafkaError:
        return False
    return True


def fail(answer: PartitionProduceResponse, error: KafkaError, partition: PartitionTail | None) -> None:
    answer.error_code = error.code
    answer.error_message = str(error)
    answer.base_offset = -1
    if partition is not None and error.code not in _WITHOUT_LOG_START:
        answer.log_start_offset = partition.log.log_start_offset
    for index, text in error.record_errors:
        answer.record_errors.append(BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=text))


def _closing(response: ProduceResponse) -> CloseConnection:
    """The producer wants no answer: only the end of its connection tells it of an error."""
    failed = [answer.error_message for entry in response.responses for answer in entry.partition_responses if answer.error_code]
    first = failed[0] if failed else "it names no partition"
    return CloseConnection(f"a produce request with acks=0 failed for {counted(len(failed), 'partition')}. The first: {first}")


def _hint(context: RequestContext, response: ProduceResponse) -> None:
    """Tell producers that asked the wrong node where to go."""
    for entry in response.responses:
        for answer in entry.partition_responses:
            if answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
                topic = context.services.metadata.topic_by_id(entry.topic_id) if not entry.name else None
                hint = leader_hint(context, entry.name if topic is None else topic.name, answer.index)
                answer.current_leader = LeaderIdAndEpoch(leader_id=hint.leader, leader_epoch=hint.leader_epoch)
                if hint.host is not None and all(node.node_id != hint.leader for node in response.node_endpoints):
                    response.node_endpoints.append(
                        NodeEndpoint(node_id=hint.leader, host=hint.host, port=hint.port, rack=hint.rack)
                    )
