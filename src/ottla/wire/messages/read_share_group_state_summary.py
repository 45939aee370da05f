"""ReadShareGroupStateSummaryRequest, ReadShareGroupStateSummaryResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.ids import ZERO_UUID, Uuid
from ottla.wire.base import EMPTY, Message, Struct


class PartitionData(Struct):
    __slots__ = ("partition", "leader_epoch")

    def __init__(
        self,
        *,
        partition: int = 0,
        leader_epoch: int = 0,
    ) -> None:
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.unknown_tags = None


class ReadStateSummaryData(Struct):
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


class ReadShareGroupStateSummaryRequest(Message):
    __slots__ = ("group_id", "topics")

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[ReadStateSummaryData] = EMPTY,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tags = None

    KEY = 87
    SCHEMA = """\
ReadShareGroupStateSummaryRequest key=87 type=request listeners=broker versions=0-1 flexible=0+
  GroupId string 0+
  Topics []ReadStateSummaryData 0+
    TopicId uuid 0+
    Partitions []PartitionData 0+
      Partition int32 0+
      LeaderEpoch int32 0+
"""
    STRUCTS = (ReadStateSummaryData, PartitionData)


class PartitionResult(Struct):
    __slots__ = ("partition", "error_code", "error_message", "state_epoch", "leader_epoch", "start_offset", "delivery_complete_count")

    def __init__(
        self,
        *,
        partition: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        state_epoch: int = 0,
        leader_epoch: int = 0,
        start_offset: int = 0,
        delivery_complete_count: int = -1,
    ) -> None:
        self.partition = partition
        self.error_code = error_code
        self.error_message = error_message
        self.state_epoch = state_epoch
        self.leader_epoch = leader_epoch
        self.start_offset = start_offset
        self.delivery_complete_count = delivery_complete_count
        self.unknown_tags = None


class ReadStateSummaryResult(Struct):
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


class ReadShareGroupStateSummaryResponse(Message):
    __slots__ = ("results",)

    def __init__(
        self,
        *,
        results: list[ReadStateSummaryResult] = EMPTY,
    ) -> None:
        self.results = [] if results is EMPTY else results
        self.unknown_tags = None

    KEY = 87
    SCHEMA = """\
ReadShareGroupStateSummaryResponse key=87 type=response versions=0-1 flexible=0+
  Results []ReadStateSummaryResult 0+
    TopicId uuid 0+
    Partitions []PartitionResult 0+
      Partition int32 0+
      ErrorCode int16 0+
      ErrorMessage string 0+ nullable=0+ default=null
      StateEpoch int32 0+
      LeaderEpoch int32 0+
      StartOffset int64 0+
      DeliveryCompleteCount int32 1+ default=-1 ignorable
"""
    STRUCTS = (ReadStateSummaryResult, PartitionResult)
