"""AddOffsetsToTxn: adds the offsets of a group to a transaction, before TxnOffsetCommit.

v2: PRODUCER_FENCED; older clients get INVALID_PRODUCER_EPOCH. v4 has no new fields.
"""

from __future__ import annotations

from ottla.broker.handlers.transactions.transaction_calls import code_for
from ottla.broker.requests.context import Handled, RequestContext
from ottla.coordinator.contract import Producer
from ottla.coordinator.placement import partition_for
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import OFFSETS_TOPIC, TopicPartition
from ottla.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse

FENCED_SINCE = 2
_CLIENT_VERSION = 0
"""Only producers of transaction versions 0 and 1 send this request; with version 2 TxnOffsetCommit adds the offsets."""


def handle(context: RequestContext, request: AddOffsetsToTxnRequest) -> Handled:
    if not request.transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "a transactional id must not be empty")
    services = context.services
    offsets = services.metadata.topic(OFFSETS_TOPIC)
    count = services.settings.current.offsets_topic_num_partitions if offsets is None else len(offsets.partitions)
    partition = TopicPartition(OFFSETS_TOPIC, partition_for(request.group_id, count))
    producer = Producer(request.producer_id, request.producer_epoch)
    return services.coordinators.transactions.ask(
        request.transactional_id,
        lambda shard, reply, now: shard.add_partitions(
            request.transactional_id, producer, (partition,), _CLIENT_VERSION, reply, AddOffsetsToTxnResponse(), now
        ),
    )


def refuse(context: RequestContext, request: AddOffsetsToTxnRequest, error: KafkaError) -> AddOffsetsToTxnResponse:
    return AddOffsetsToTxnResponse(error_code=code_for(error, context.version, FENCED_SINCE))
