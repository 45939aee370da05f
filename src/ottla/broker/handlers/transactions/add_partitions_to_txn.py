"""AddPartitionsToTxn: adds partitions to a transaction, or verifies that they belong to it.

v0 to v3: sent by producers of transaction versions 0 and 1, for one transaction. v2: PRODUCER_FENCED; older clients get
INVALID_PRODUCER_EPOCH. v4: sent by brokers, for many transactions: verifies partitions, or adds them for producers of
transaction version 2. v5 has no new fields.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ottla.broker.handlers.transactions.transaction_calls import code_for
from ottla.broker.requests.context import Handled, PendingTask, RequestContext
from ottla.broker.requests.scheduler import SMALL_CALL_BYTES, Pauses, in_slices
from ottla.coordinator.contract import Producer
from ottla.env import OffLoop
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import INTERNAL_TOPICS, TopicPartition
from ottla.metadata.acls import Operation, ResourceType
from ottla.wire.elements import has_many_elements
from ottla.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)

if TYPE_CHECKING:
    from ottla.env import Steps

FENCED_SINCE = 2
BROKERS_SINCE = 4
_CLIENT_VERSION, _BROKER_VERSION = 0, 2
"""The transaction version of the producer: 0 or 1 if a client sends the request, 2 if a broker does."""


def handle(context: RequestContext, request: AddPartitionsToTxnRequest) -> Handled:
    if context.version >= BROKERS_SINCE:
        context.require(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)
        return PendingTask(_handle_all(context, request.transactions))
    return in_slices(context, _handle_one_in_slices(context, request))


def _handle_one_in_slices(context: RequestContext, request: AddPartitionsToTxnRequest) -> Steps[Handled]:
    topics = request.v3_and_below_topics
    context.require(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.v3_and_below_transactional_id)
    names = {topic.name for topic in topics}
    denied = {name for name in names if not context.allows(Operation.WRITE, ResourceType.TOPIC, name)}
    check = partial(_refused, context, topics, denied)
    refused: list[AddPartitionsToTxnTopicResult] | None = (
        (yield OffLoop(check, SMALL_CALL_BYTES)) if has_many_elements(request) else check()
    )
    if refused is not None:
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=refused)
    transactional_id = request.v3_and_below_transactional_id
    if not transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "a transactional id must not be empty")
    producer = Producer(request.v3_and_below_producer_id, request.v3_and_below_producer_epoch)
    response = AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_results(topics, {}))
    return context.services.coordinators.transactions.ask(
        transactional_id,
        lambda shard, reply, now: shard.add_partitions(
            transactional_id, producer, _partitions(topics), _CLIENT_VERSION, reply, response, now
        ),
    )


def refuse(context: RequestContext, request: AddPartitionsToTxnRequest, error: KafkaError) -> AddPartitionsToTxnResponse:
    code = code_for(error, context.version, FENCED_SINCE)
    if context.version >= BROKERS_SINCE:
        return AddPartitionsToTxnResponse(error_code=code)
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_all_failed(request.v3_and_below_topics, code))


async def _handle_all(
    context: RequestContext, transactions: Sequence[AddPartitionsToTxnTransaction]
) -> AddPartitionsToTxnResponse:
    response, pauses = AddPartitionsToTxnResponse(), Pauses(context)
    for transaction in transactions:
        response.results_by_transaction.append(
            AddPartitionsToTxnResult(
                transactional_id=transaction.transactional_id, topic_results=await _handle_one(context, transaction, pauses)
            )
        )
        await pauses.here()
    return response


async def _handle_one(
    context: RequestContext, transaction: AddPartitionsToTxnTransaction, pauses: Pauses
) -> list[AddPartitionsToTxnTopicResult]:
    topics, transactional_id = transaction.topics, transaction.transactional_id
    check = partial(_refused, context, topics, ())
    refused = await pauses.off_loop(check) if has_many_elements(transaction) else check()
    if refused is not None:
        return refused
    producer = Producer(transaction.producer_id, transaction.producer_epoch)
    transactions = context.services.coordinators.transactions
    wanted = _partitions(topics)
    try:
        if not transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "a transactional id must not be empty")
        if transaction.verify_only:
            codes: dict[TopicPartition, int] = await transactions.look(
                transactional_id, lambda shard, now: shard.verify(transactional_id, producer, wanted)
            )
        else:
            codes = await transactions.call(
                transactional_id,
                lambda shard, reply, now: shard.add_partitions(
                    transactional_id, producer, wanted, _BROKER_VERSION, reply, {}, now
                ),
            )
    except KafkaError as error:
        return _all_failed(topics, code_for(error, context.version, FENCED_SINCE))
    return _results(topics, codes)


def _partitions(topics: Sequence[AddPartitionsToTxnTopic]) -> list[TopicPartition]:
    return [TopicPartition(topic.name, index) for topic in topics for index in topic.partitions]


def _refused(
    context: RequestContext, topics: Sequence[AddPartitionsToTxnTopic], denied: Container[str]
) -> list[AddPartitionsToTxnTopicResult] | None:
    """The results of all partitions if one of them cannot be added, else None: all are added or none."""
    codes: dict[TopicPartition, int] = {}
    for name in _partitions(topics):
        if name.topic in denied or (context.version < BROKERS_SINCE and name.topic in INTERNAL_TOPICS):
            codes[name] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif context.services.metadata.partition(*name) is None:
            codes[name] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        else:
            codes[name] = ErrorCode.OPERATION_NOT_ATTEMPTED
    is_refused = any(code != ErrorCode.OPERATION_NOT_ATTEMPTED for code in codes.values())
    return _results(topics, codes) if is_refused else None


def _results(
    topics: Sequence[AddPartitionsToTxnTopic], codes: dict[TopicPartition, int]
) -> list[AddPartitionsToTxnTopicResult]:
    return [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(
                    partition_index=index,
                    partition_error_code=codes.get(TopicPartition(topic.name, index), ErrorCode.NONE),
                )
                for index in topic.partitions
            ],
        )
        for topic in topics
    ]


def _all_failed(topics: Sequence[AddPartitionsToTxnTopic], code: int) -> list[AddPartitionsToTxnTopicResult]:
    return _results(topics, dict.fromkeys(_partitions(topics), code))
