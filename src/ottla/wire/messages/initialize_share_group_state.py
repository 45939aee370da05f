"""InitializeShareGroupStateRequest, InitializeShareGroupStateResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.ids import ZERO_UUID, Uuid
from ottla.wire.base import EMPTY, Message, Struct


class PartitionData(Struct):
    __slots__ = ("partition", "state_epoch", "start_offset")

    def __init__(
        self,
        *,
        partition: int = 0,
        state_epoch: int = 0,
        start_offset: int = 0,
    ) -> None:
        self.partition = partition
        self.state_epoch = state_epoch
        self.start_offset = start_offset
        self.unknown_tags = None


class InitializeStateData(Struct):
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


class InitializeShareGroupStateRequest(Message):
    __slots__ = ("group_id", "topics")

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[InitializeStateData] = EMPTY,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tags = None

    KEY = 83
    SCHEMA = """\
InitializeShareGroupStateRequest key=83 type=request listeners=broker versions=0 flexible=0+
  GroupId string 0+
  Topics []InitializeStateData 0+
    TopicId uuid 0+
    Partitions []PartitionData 0+
      Partition int32 0+
      StateEpoch int32 0+
      StartOffset int64 0+
"""
    STRUCTS = (InitializeStateData, PartitionData)


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


class InitializeStateResult(Struct):
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


class InitializeShareGroupStateResponse(Message):
    __slots__ = ("results",)

    def __init__(
        self,
        *,
        results: list[InitializeStateResult] = EMPTY,
    ) -> None:
        self.results = [] if results is EMPTY else results
        self.unknown_tags = None

    KEY = 83
    SCHEMA = """\
InitializeShareGroupStateResponse key=83 type=response versions=0 flexible=0+
  Results []InitializeStateResult 0+
    TopicId uuid 0+
    Partitions []PartitionResult 0+
      Partition int32 0+
      ErrorCode int16 0+
      ErrorMessage string 0+ nullable=0+ default=null
"""
    STRUCTS = (InitializeStateResult, PartitionResult)
