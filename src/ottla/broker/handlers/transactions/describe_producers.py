"""DescribeProducers: the producers that a partition remembers, and the transactions they have open there.

A partition that is named again is described again, as in Kafka, up to `REPEATED_PRODUCERS_MAX` producers in all; after that
it is left out. After `PRODUCERS_MAX` producers a response takes no further partition: each is refused. Long responses are made
in slices.

There is only version 0.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from ottla.broker.handlers.data.hosted_partitions import hosted
from ottla.broker.requests.context import Handled, RequestContext
from ottla.broker.requests.scheduler import in_slices
from ottla.env import Reserve
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import topic_name_fault
from ottla.log.producers.producer_entry import ProducerEntry
from ottla.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicRequest,
    TopicResponse,
)

if TYPE_CHECKING:
    from ottla.env import Steps

PRODUCERS_MAX = 200_000
PRODUCER_BYTES = 300
"""What one producer takes while the response is made."""
REPEATED_PRODUCERS_MAX = 10_000
PRODUCERS_PER_STEP = 1000


def handle(context: RequestContext, request: DescribeProducersRequest) -> Handled:
    return in_slices(context, _describe_all(context, request))


def refuse(context: RequestContext, request: DescribeProducersRequest, error: KafkaError) -> DescribeProducersResponse:
    return DescribeProducersResponse(topics=[_failed(topic, error.code, str(error)) for topic in request.topics])


def _failed(topic: TopicRequest, code: int, text: str) -> TopicResponse:
    failed = [_refused(index, code, text) for index in topic.partition_indexes]
    return TopicResponse(name=topic.name, partitions=failed)


def _refused(index: int, code: int, text: str) -> PartitionResponse:
    return PartitionResponse(partition_index=index, error_code=code, error_message=text)


def _describe_all(context: RequestContext, request: DescribeProducersRequest) -> Steps[Handled]:
    named = {(topic.name, index) for topic in request.topics for index in topic.partition_indexes}
    count = sum(len(found.log.producers.producers) for name in named if (found := context.services.partitions.find(*name)))
    yield Reserve((min(count, PRODUCERS_MAX) + REPEATED_PRODUCERS_MAX) * PRODUCER_BYTES)
    response = DescribeProducersResponse()
    described: dict[tuple[str, int], PartitionResponse] = {}
    producers_left, repeated_left = PRODUCERS_MAX, REPEATED_PRODUCERS_MAX
    for topic in request.topics:
        yield None
        answer = TopicResponse(name=topic.name)
        response.topics.append(answer)
        refusal = _topic_refusal(context, topic.name)
        for index in topic.partition_indexes:
            yield None
            known = described.get((topic.name, index))
            if known is not None:
                repeated_left -= 1 + len(known.active_producers)
                if repeated_left >= 0:
                    answer.partitions.append(known)
                continue
            if refusal is not None:
                partition = _refused(index, refusal.code, str(refusal))
            elif producers_left <= 0:
                text = f"one response has room for {PRODUCERS_MAX} producers: ask for fewer partitions at once"
                partition = _refused(index, ErrorCode.INVALID_REQUEST, text)
            else:
                partition = yield from _describe_partition(context, topic.name, index)
            described[topic.name, index] = partition
            producers_left -= len(partition.active_producers)
            answer.partitions.append(partition)
    return response


def _topic_refusal(context: RequestContext, name: str) -> KafkaError | None:
    fault = topic_name_fault(name)
    if fault is not None:
        return KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)
    if context.services.metadata.topic(name) is None:
        return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic {name}")
    return None


def _describe_partition(context: RequestContext, topic: str, index: int) -> Steps[PartitionResponse]:
    described = PartitionResponse(partition_index=index)
    try:
        producers = hosted(context.services, topic, index).log.producers.producers
    except KafkaError as error:
        return _refused(index, error.code, str(error))
    entries = iter(list(producers.values()))  # the producers may change between two slices
    while some := [_describe(entry) for entry in islice(entries, PRODUCERS_PER_STEP)]:
        described.active_producers += some
        yield None
    return described


def _describe(entry: ProducerEntry) -> ProducerState:
    state = ProducerState()
    state.producer_id = entry.producer_id
    state.producer_epoch = entry.epoch
    state.last_sequence = entry.last_sequence
    state.last_timestamp = entry.last_timestamp_ms
    state.coordinator_epoch = entry.coordinator_epoch
    if entry.transaction_first_offset is not None:
        state.current_txn_start_offset = entry.transaction_first_offset
    return state
