"""DeleteShareGroupStateRequest, DeleteShareGroupStateResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.ids import ZERO_UUID, Uuid
from ottla.wire.base import EMPTY, Message, Struct


class PartitionData(Struct):
    __slots__ = ("partition",)

    def __init__(
        self,
        *,
        partition: int = 0,
    ) -> None:
        self.partition = partition
        self.unknown_tags = None


class DeleteStateData(Struct):
    __slots__ = ("topic_id", "partitions")

    def __init__(
        self,
        *,
        topic_id: Uuid = ZERO_UUID,
        partitions: list[PartitionData] = EMPTY,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class DeleteShareGroupStateRequest(Message):
    __slots__ = ("group_id", "topics")

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[DeleteStateData] = EMPTY,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tags = None

    KEY = 86
    SCHEMA = """\
DeleteShareGroupStateRequest key=86 type=request listeners=broker versions=0 flexible=0+
  GroupId string 0+
  Topics []DeleteStateData 0+
    TopicId uuid 0+
    Partitions []PartitionData 0+
      Partition int32 0+
"""
    STRUCTS = (DeleteStateData, PartitionData)


class PartitionResult(Struct):
    __slots__ = ("partition", "error_code", "error_message")

    def __init__(
        self,
        *,
        partition: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.partition = partition
        self.error_code = error_code
        self.error_message = error_message
        self.unknown_tags = None


class DeleteStateResult(Struct):
    __slots__ = ("topic_id", "partitions")

    def __init__(
        self,
        *,
        topic_id: Uuid = ZERO_UUID,
        partitions: list[PartitionResult] = EMPTY,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class DeleteShareGroupStateResponse(Message):
    __slots__ = ("results",)

    def __init__(
        self,
        *,
        results: list[DeleteStateResult] = EMPTY,
    ) -> None:
        self.results = [] if results is EMPTY else results
        self.unknown_tags = None

    KEY = 86
    SCHEMA = """\
DeleteShareGroupStateResponse key=86 type=response versions=0 flexible=0+
  Results []DeleteStateResult 0+
    TopicId uuid 0+
    Partitions []PartitionResult 0+
      Partition int32 0+
      ErrorCode int16 0+
      ErrorMessage string 0+ nullable=0+ default=null
"""
    STRUCTS = (DeleteStateResult, PartitionResult)
