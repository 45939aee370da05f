"""OffsetDeleteRequest, OffsetDeleteResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.wire.base import EMPTY, Message, Struct


class OffsetDeleteRequestPartition(Struct):
    __slots__ = ("partition_index",)

    def __init__(
        self,
        *,
        partition_index: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.unknown_tags = None


class OffsetDeleteRequestTopic(Struct):
    __slots__ = ("name", "partitions")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[OffsetDeleteRequestPartition] = EMPTY,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class OffsetDeleteRequest(Message):
    __slots__ = ("group_id", "topics")

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[OffsetDeleteRequestTopic] = EMPTY,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tags = None

    KEY = 47
    SCHEMA = """\
OffsetDeleteRequest key=47 type=request listeners=broker versions=0 flexible=none
  GroupId string 0+ entity=groupId
  Topics []OffsetDeleteRequestTopic 0+
    Name string 0+ key entity=topicName
    Partitions []OffsetDeleteRequestPartition 0+
      PartitionIndex int32 0+
"""
    STRUCTS = (OffsetDeleteRequestTopic, OffsetDeleteRequestPartition)


class OffsetDeleteResponsePartition(Struct):
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


class OffsetDeleteResponseTopic(Struct):
    __slots__ = ("name", "partitions")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[OffsetDeleteResponsePartition] = EMPTY,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class OffsetDeleteResponse(Message):
    __slots__ = ("error_code", "throttle_time_ms", "topics")

    def __init__(
        self,
        *,
        error_code: int = 0,
        throttle_time_ms: int = 0,
        topics: list[OffsetDeleteResponseTopic] = EMPTY,
    ) -> None:
        self.error_code = error_code
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tags = None

    KEY = 47
    SCHEMA = """\
OffsetDeleteResponse key=47 type=response versions=0 flexible=none
  ErrorCode int16 0+
  ThrottleTimeMs int32 0+ ignorable
  Topics []OffsetDeleteResponseTopic 0+
    Name string 0+ key entity=topicName
    Partitions []OffsetDeleteResponsePartition 0+
      PartitionIndex int32 0+ key
      ErrorCode int16 0+
"""
    STRUCTS = (OffsetDeleteResponseTopic, OffsetDeleteResponsePartition)
