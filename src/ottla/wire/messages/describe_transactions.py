"""DescribeTransactionsRequest, DescribeTransactionsResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.wire.base import EMPTY, Message, Struct


class DescribeTransactionsRequest(Message):
    __slots__ = ("transactional_ids",)

    def __init__(
        self,
        *,
        transactional_ids: list[str] = EMPTY,
    ) -> None:
        self.transactional_ids = [] if transactional_ids is EMPTY else transactional_ids
        self.unknown_tags = None

    KEY = 65
    SCHEMA = """\
DescribeTransactionsRequest key=65 type=request listeners=broker versions=0 flexible=0+
  TransactionalIds []string 0+ entity=transactionalId
"""
    STRUCTS = ()


class TopicData(Struct):
    __slots__ = ("topic", "partitions")

    def __init__(
        self,
        *,
        topic: str = "",
        partitions: list[int] = EMPTY,
    ) -> None:
        self.topic = topic
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class TransactionState(Struct):
    __slots__ = ("error_code", "transactional_id", "transaction_state", "transaction_timeout_ms", "transaction_start_time_ms", "producer_id", "producer_epoch", "topics")

    def __init__(
        self,
        *,
        error_code: int = 0,
        transactional_id: str = "",
        transaction_state: str = "",
        transaction_timeout_ms: int = 0,
        transaction_start_time_ms: int = 0,
        producer_id: int = 0,
        producer_epoch: int = 0,
        topics: list[TopicData] = EMPTY,
    ) -> None:
        self.error_code = error_code
        self.transactional_id = transactional_id
        self.transaction_state = transaction_state
        self.transaction_timeout_ms = transaction_timeout_ms
        self.transaction_start_time_ms = transaction_start_time_ms
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tags = None


class DescribeTransactionsResponse(Message):
    __slots__ = ("throttle_time_ms", "transaction_states")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        transaction_states: list[TransactionState] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.transaction_states = [] if transaction_states is EMPTY else transaction_states
        self.unknown_tags = None

    KEY = 65
    SCHEMA = """\
DescribeTransactionsResponse key=65 type=response versions=0 flexible=0+
  ThrottleTimeMs int32 0+
  TransactionStates []TransactionState 0+
    ErrorCode int16 0+
    TransactionalId string 0+ entity=transactionalId
    TransactionState string 0+
    TransactionTimeoutMs int32 0+
    TransactionStartTimeMs int64 0+
    ProducerId int64 0+ entity=producerId
    ProducerEpoch int16 0+
    Topics []TopicData 0+
      Topic string 0+ key entity=topicName
      Partitions []int32 0+
"""
    STRUCTS = (TransactionState, TopicData)
