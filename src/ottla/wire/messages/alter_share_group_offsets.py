"""AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.ids import ZERO_UUID, Uuid
from ottla.wire.base import EMPTY, Message, Struct


class AlterShareGroupOffsetsRequestPartition(Struct):
    __slots__ = ("partition_index", "start_offset")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        start_offset: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.start_offset = start_offset
        self.unknown_tags = None


class AlterShareGroupOffsetsRequestTopic(Struct):
    __slots__ = ("topic_name", "partitions")

    def __init__(
        self,
        *,
        topic_name: str = "",
        partitions: list[AlterShareGroupOffsetsRequestPartition] = EMPTY,
    ) -> None:
        self.topic_name = topic_name
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class AlterShareGroupOffsetsRequest(Message):
    __slots__ = ("group_id", "topics")

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[AlterShareGroupOffsetsRequestTopic] = EMPTY,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tags = None

    KEY = 91
    SCHEMA = """\
AlterShareGroupOffsetsRequest key=91 type=request listeners=broker versions=0 flexible=0+
  GroupId string 0+ entity=groupId
  Topics []AlterShareGroupOffsetsRequestTopic 0+
    TopicName string 0+ key entity=topicName
    Partitions []AlterShareGroupOffsetsRequestPartition 0+
      PartitionIndex int32 0+
      StartOffset int64 0+
"""
    STRUCTS = (AlterShareGroupOffsetsRequestTopic, AlterShareGroupOffsetsRequestPartition)


class AlterShareGroupOffsetsResponsePartition(Struct):
    __slots__ = ("partition_index", "error_code", "error_message")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message
        self.unknown_tags = None


class AlterShareGroupOffsetsResponseTopic(Struct):
    __slots__ = ("topic_name", "topic_id", "partitions")

    def __init__(
        self,
        *,
        topic_name: str = "",
        topic_id: Uuid = ZERO_UUID,
        partitions: list[AlterShareGroupOffsetsResponsePartition] = EMPTY,
    ) -> None:
        self.topic_name = topic_name
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class AlterShareGroupOffsetsResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "responses")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        responses: list[AlterShareGroupOffsetsResponseTopic] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.responses = [] if responses is EMPTY else responses
        self.unknown_tags = None

    KEY = 91
    SCHEMA = """\
AlterShareGroupOffsetsResponse key=91 type=response versions=0 flexible=0+
  ThrottleTimeMs int32 0+
  ErrorCode int16 0+
  ErrorMessage string 0+ nullable=0+ default=null
  Responses []AlterShareGroupOffsetsResponseTopic 0+
    TopicName string 0+ key entity=topicName
    TopicId uuid 0+
    Partitions []AlterShareGroupOffsetsResponsePartition 0+
      PartitionIndex int32 0+
      ErrorCode int16 0+
      ErrorMessage string 0+ nullable=0+ default=null
"""
    STRUCTS = (AlterShareGroupOffsetsResponseTopic, AlterShareGroupOffsetsResponsePartition)
