"""DeleteRecordsRequest, DeleteRecordsResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.wire.base import EMPTY, Message, Struct


class DeleteRecordsPartition(Struct):
    __slots__ = ("partition_index", "offset")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        offset: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.offset = offset
        self.unknown_tags = None


class DeleteRecordsTopic(Struct):
    __slots__ = ("name", "partitions")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[DeleteRecordsPartition] = EMPTY,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class DeleteRecordsRequest(Message):
    __slots__ = ("topics", "timeout_ms")

    def __init__(
        self,
        *,
        topics: list[DeleteRecordsTopic] = EMPTY,
        timeout_ms: int = 0,
    ) -> None:
        self.topics = [] if topics is EMPTY else topics
        self.timeout_ms = timeout_ms
        self.unknown_tags = None

    KEY = 21
    SCHEMA = """\
DeleteRecordsRequest key=21 type=request listeners=broker versions=0-2 flexible=2+
  Topics []DeleteRecordsTopic 0+
    Name string 0+ entity=topicName
    Partitions []DeleteRecordsPartition 0+
      PartitionIndex int32 0+
      Offset int64 0+
  TimeoutMs int32 0+
"""
    STRUCTS = (DeleteRecordsTopic, DeleteRecordsPartition)


class DeleteRecordsPartitionResult(Struct):
    __slots__ = ("partition_index", "low_watermark", "error_code")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        low_watermark: int = 0,
        error_code: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.low_watermark = low_watermark
        self.error_code = error_code
        self.unknown_tags = None


class DeleteRecordsTopicResult(Struct):
    __slots__ = ("name", "partitions")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[DeleteRecordsPartitionResult] = EMPTY,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class DeleteRecordsResponse(Message):
    __slots__ = ("throttle_time_ms", "topics")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[DeleteRecordsTopicResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tags = None

    KEY = 21
    SCHEMA = """\
DeleteRecordsResponse key=21 type=response versions=0-2 flexible=2+
  ThrottleTimeMs int32 0+
  Topics []DeleteRecordsTopicResult 0+
    Name string 0+ key entity=topicName
    Partitions []DeleteRecordsPartitionResult 0+
      PartitionIndex int32 0+ key
      LowWatermark int64 0+
      ErrorCode int16 0+
"""
    STRUCTS = (DeleteRecordsTopicResult, DeleteRecordsPartitionResult)
