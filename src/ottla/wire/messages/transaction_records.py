"""TransactionLogKey, TransactionLogValue. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.wire.base import EMPTY, Message, Struct


class TransactionLogKey(Message):
    __slots__ = ("transactional_id",)

    def __init__(
        self,
        *,
        transactional_id: str = "",
    ) -> None:
        self.transactional_id = transactional_id
        self.unknown_tags = None

    KEY = 0
    SCHEMA = """\
TransactionLogKey key=0 type=coordinator-key versions=0 flexible=none
  TransactionalId string 0
"""
    STRUCTS = ()


class PartitionsSchema(Struct):
    __slots__ = ("topic", "partition_ids")

    def __init__(
        self,
        *,
        topic: str = "",
        partition_ids: list[int] = EMPTY,
    ) -> None:
        self.topic = topic
        self.partition_ids = [] if partition_ids is EMPTY else partition_ids
        self.unknown_tags = None


class TransactionLogValue(Message):
    __slots__ = ("producer_id", "previous_producer_id", "next_producer_id", "producer_epoch", "next_producer_epoch", "transaction_timeout_ms", "transaction_status", "transaction_partitions", "transaction_last_update_timestamp_ms", "transaction_start_timestamp_ms", "client_transaction_version")

    def __init__(
        self,
        *,
        producer_id: int = 0,
        previous_producer_id: int = -1,
        next_producer_id: int = -1,
        producer_epoch: int = 0,
        next_producer_epoch: int = -1,
        transaction_timeout_ms: int = 0,
        transaction_status: int = 0,
        transaction_partitions: list[PartitionsSchema] | None = EMPTY,
        transaction_last_update_timestamp_ms: int = 0,
        transaction_start_timestamp_ms: int = 0,
        client_transaction_version: int = 0,
    ) -> None:
        self.producer_id = producer_id
        self.previous_producer_id = previous_producer_id
        self.next_producer_id = next_producer_id
        self.producer_epoch = producer_epoch
        self.next_producer_epoch = next_producer_epoch
        self.transaction_timeout_ms = transaction_timeout_ms
        self.transaction_status = transaction_status
        self.transaction_partitions = [] if transaction_partitions is EMPTY else transaction_partitions
        self.transaction_last_update_timestamp_ms = transaction_last_update_timestamp_ms
        self.transaction_start_timestamp_ms = transaction_start_timestamp_ms
        self.client_transaction_version = client_transaction_version
        self.unknown_tags = None

    KEY = 0
    SCHEMA = """\
TransactionLogValue key=0 type=coordinator-value versions=0-1 flexible=1+
  ProducerId int64 0+
  PreviousProducerId int64 1+ tag=0@1+ default=-1
  NextProducerId int64 1+ tag=1@1+ default=-1
  ProducerEpoch int16 0+
  NextProducerEpoch int16 1+ tag=3@1+ default=-1
  TransactionTimeoutMs int32 0+
  TransactionStatus int8 0+
  TransactionPartitions []PartitionsSchema 0+ nullable=0+
    Topic string 0+
    PartitionIds []int32 0+
  TransactionLastUpdateTimestampMs int64 0+
  TransactionStartTimestampMs int64 0+
  ClientTransactionVersion int16 1+ tag=2@1+ default=0
"""
    STRUCTS = (PartitionsSchema,)
