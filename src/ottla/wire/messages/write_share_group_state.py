"""WriteShareGroupStateRequest, WriteShareGroupStateResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.ids import ZERO_UUID, Uuid
from ottla.wire.base import EMPTY, Message, Struct


class StateBatch(Struct):
    __slots__ = ("first_offset", "last_offset", "delivery_state", "delivery_count")

    def __init__(
        self,
        *,
        first_offset: int = 0,
        last_offset: int = 0,
        delivery_state: int = 0,
        delivery_count: int = 0,
    ) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.delivery_state = delivery_state
        self.delivery_count = delivery_count
        self.unknown_tags = None


class PartitionData(Struct):
    __slots__ = ("partition", "state_epoch", "leader_epoch", "start_offset", "delivery_complete_count", "state_batches")

    def __init__(
        self,
        *,
        partition: int = 0,
        state_epoch: int = 0,
        leader_epoch: int = 0,
        start_offset: int = 0,
        delivery_complete_count: int = -1,
        state_batches: list[StateBatch] = EMPTY,
    ) -> None:
        self.partition = partition
        self.state_epoch = state_epoch
        self.leader_epoch = leader_epoch
        self.start_offset = start_offset
        self.delivery_complete_count = delivery_complete_count
        self.state_batches = [] if state_batches is EMPTY else state_batches
        self.unknown_tags = None


class WriteStateData(Struct):
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


class WriteShareGroupStateRequest(Message):
    __slots__ = ("group_id", "topics")

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[WriteStateData] = EMPTY,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tags = None

    KEY = 85
    SCHEMA = """\
WriteShareGroupStateRequest key=85 type=request listeners=broker versions=0-1 flexible=0+
  GroupId string 0+
  Topics []WriteStateData 0+
    TopicId uuid 0+
    Partitions []PartitionData 0+
      Partition int32 0+
      StateEpoch int32 0+
      LeaderEpoch int32 0+
      StartOffset int64 0+
      DeliveryCompleteCount int32 1+ default=-1 ignorable
      StateBatches []StateBatch 0+
        FirstOffset int64 0+
        LastOffset int64 0+
        DeliveryState int8 0+
        DeliveryCount int16 0+
"""
    STRUCTS = (WriteStateData, PartitionData, StateBatch)


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


class WriteStateResult(Struct):
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


class WriteShareGroupStateResponse(Message):
    __slots__ = ("results",)

    def __init__(
        self,
        *,
        results: list[WriteStateResult] = EMPTY,
    ) -> None:
        self.results = [] if results is EMPTY else results
        self.unknown_tags = None

    KEY = 85
    SCHEMA = """\
WriteShareGroupStateResponse key=85 type=response versions=0-1 flexible=0+
  Results []WriteStateResult 0+
    TopicId uuid 0+
    Partitions []PartitionResult 0+
      Partition int32 0+
      ErrorCode int16 0+
      ErrorMessage string 0+ nullable=0+ default=null
"""
    STRUCTS = (WriteStateResult, PartitionResult)
