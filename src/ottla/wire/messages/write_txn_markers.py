"""WriteTxnMarkersRequest, WriteTxnMarkersResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.wire.base import EMPTY, Message, Struct


class WritableTxnMarkerTopic(Struct):
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


class WritableTxnMarker(Struct):
    __slots__ = ("producer_id", "producer_epoch", "transaction_result", "topics", "coordinator_epoch", "transaction_version")

    def __init__(
        self,
        *,
        producer_id: int = 0,
        producer_epoch: int = 0,
        transaction_result: bool = False,
        topics: list[WritableTxnMarkerTopic] = EMPTY,
        coordinator_epoch: int = 0,
        transaction_version: int = 0,
    ) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.transaction_result = transaction_result
        self.topics = [] if topics is EMPTY else topics
        self.coordinator_epoch = coordinator_epoch
        self.transaction_version = transaction_version
        self.unknown_tags = None


class WriteTxnMarkersRequest(Message):
    __slots__ = ("markers",)

    def __init__(
        self,
        *,
        markers: list[WritableTxnMarker] = EMPTY,
    ) -> None:
        self.markers = [] if markers is EMPTY else markers
        self.unknown_tags = None

    KEY = 27
    SCHEMA = """\
WriteTxnMarkersRequest key=27 type=request listeners=broker versions=1-2 flexible=1+
  Markers []WritableTxnMarker 0+
    ProducerId int64 0+ entity=producerId
    ProducerEpoch int16 0+
    TransactionResult bool 0+
    Topics []WritableTxnMarkerTopic 0+
      Name string 0+ entity=topicName
      PartitionIndexes []int32 0+
    CoordinatorEpoch int32 0+
    TransactionVersion int8 2+ default=0 ignorable
"""
    STRUCTS = (WritableTxnMarker, WritableTxnMarkerTopic)


class WritableTxnMarkerPartitionResult(Struct):
    __slots__ = ("partition_index", "error_code")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.unknown_tags = None


class WritableTxnMarkerTopicResult(Struct):
    __slots__ = ("name", "partitions")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[WritableTxnMarkerPartitionResult] = EMPTY,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class WritableTxnMarkerResult(Struct):
    __slots__ = ("producer_id", "topics")

    def __init__(
        self,
        *,
        producer_id: int = 0,
        topics: list[WritableTxnMarkerTopicResult] = EMPTY,
    ) -> None:
        self.producer_id = producer_id
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tags = None


class WriteTxnMarkersResponse(Message):
    __slots__ = ("markers",)

    def __init__(
        self,
        *,
        markers: list[WritableTxnMarkerResult] = EMPTY,
    ) -> None:
        self.markers = [] if markers is EMPTY else markers
        self.unknown_tags = None

    KEY = 27
    SCHEMA = """\
WriteTxnMarkersResponse key=27 type=response versions=1-2 flexible=1+
  Markers []WritableTxnMarkerResult 0+
    ProducerId int64 0+ entity=producerId
    Topics []WritableTxnMarkerTopicResult 0+
      Name string 0+ entity=topicName
      Partitions []WritableTxnMarkerPartitionResult 0+
        PartitionIndex int32 0+
        ErrorCode int16 0+
"""
    STRUCTS = (WritableTxnMarkerResult, WritableTxnMarkerTopicResult, WritableTxnMarkerPartitionResult)
