"""DescribeProducers: the producers that a partition remembers, and the transactions they have open there.

There is only version 0.
"""

from __future__ import annotations

from ottla.broker.handlers.data.hosted_partitions import hosted
from ottla.broker.request import Handled, RequestContext
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


def handle(context: RequestContext, request: DescribeProducersRequest) -> Handled:
    return DescribeProducersResponse(topics=[_describe_topic(context, topic) for topic in request.topics])


def refuse(context: RequestContext, request: DescribeProducersRequest, error: KafkaError) -> DescribeProducersResponse:
    return DescribeProducersResponse(topics=[_failed(topic, error.code, str(error)) for topic in request.topics])


def _failed(topic: TopicRequest, code: int, text: str) -> TopicResponse:
    failed = [
        PartitionResponse(partition_index=index, error_code=code, error_message=text) for index in topic.partition_indexes
    ]
    return TopicResponse(name=topic.name, partitions=failed)


def _describe_topic(context: RequestContext, topic: TopicRequest) -> TopicResponse:
    fault = topic_name_fault(topic.name)
    if fault is not None:
        return _failed(topic, ErrorCode.INVALID_TOPIC_EXCEPTION, fault)
    if context.services.metadata.topic(topic.name) is None:
        return _failed(topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic {topic.name}")
    described = [_describe_partition(context, topic.name, index) for index in topic.partition_indexes]
    return TopicResponse(name=topic.name, partitions=described)


def _describe_partition(context: RequestContext, topic: str, index: int) -> PartitionResponse:
    described = PartitionResponse(partition_index=index)
    try:
        producers = hosted(context.services, topic, index).log.producers.producers
    except KafkaError as error:
        described.error_code, described.error_message = error.code, str(error)
        return described
    described.active_producers = [_describe(entry) for entry in producers.values()]
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
