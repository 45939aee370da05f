"""DescribeProducersRequest, DescribeProducersResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.wire.base import EMPTY, Message, Struct


class TopicRequest(Struct):
    __slots__ = ("name", "partition_indexes")

    def __init__(
        self,
        *,
        name: str = "",
        partition_indexes: list[int] = EMPTY,
    ) -> None:
        self.name = name
        self.partition_indexes = [] if partition_indexes is EMPTY else partition_indexes
        self.unknown_tags = None


class DescribeProducersRequest(Message):
    __slots__ = ("topics",)

    def __init__(
        self,
        *,
        topics: list[TopicRequest] = EMPTY,
    ) -> None:
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tags = None

    KEY = 61
    SCHEMA = """\
DescribeProducersRequest key=61 type=request listeners=broker versions=0 flexible=0+
  Topics []TopicRequest 0+
    Name string 0+ entity=topicName
    PartitionIndexes []int32 0+
"""
    STRUCTS = (TopicRequest,)


class ProducerState(Struct):
    __slots__ = ("producer_id", "producer_epoch", "last_sequence", "last_timestamp", "coordinator_epoch", "current_txn_start_offset")

    def __init__(
        self,
        *,
        producer_id: int = 0,
        producer_epoch: int = 0,
        last_sequence: int = -1,
        last_timestamp: int = -1,
        coordinator_epoch: int = 0,
        current_txn_start_offset: int = -1,
    ) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.last_sequence = last_sequence
        self.last_timestamp = last_timestamp
        self.coordinator_epoch = coordinator_epoch
        self.current_txn_start_offset = current_txn_start_offset
        self.unknown_tags = None


class PartitionResponse(Struct):
    __slots__ = ("partition_index", "error_code", "error_message", "active_producers")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        active_producers: list[ProducerState] = EMPTY,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message
        self.active_producers = [] if active_producers is EMPTY else active_producers
        self.unknown_tags = None


class TopicResponse(Struct):
    __slots__ = ("name", "partitions")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[PartitionResponse] = EMPTY,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class DescribeProducersResponse(Message):
    __slots__ = ("throttle_time_ms", "topics")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[TopicResponse] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tags = None

    KEY = 61
    SCHEMA = """\
DescribeProducersResponse key=61 type=response versions=0 flexible=0+
  ThrottleTimeMs int32 0+
  Topics []TopicResponse 0+
    Name string 0+ entity=topicName
    Partitions []PartitionResponse 0+
      PartitionIndex int32 0+
      ErrorCode int16 0+
      ErrorMessage string 0+ nullable=0+ default=null
      ActiveProducers []ProducerState 0+
        ProducerId int64 0+ entity=producerId
        ProducerEpoch int32 0+
        LastSequence int32 0+ default=-1
        LastTimestamp int64 0+ default=-1
        CoordinatorEpoch int32 0+
        CurrentTxnStartOffset int64 0+ default=-1
"""
    STRUCTS = (TopicResponse, PartitionResponse, ProducerState)
