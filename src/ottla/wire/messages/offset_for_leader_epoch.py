"""OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.wire.base import EMPTY, Message, Struct


class OffsetForLeaderPartition(Struct):
    __slots__ = ("partition", "current_leader_epoch", "leader_epoch")

    def __init__(
        self,
        *,
        partition: int = 0,
        current_leader_epoch: int = -1,
        leader_epoch: int = 0,
    ) -> None:
        self.partition = partition
        self.current_leader_epoch = current_leader_epoch
        self.leader_epoch = leader_epoch
        self.unknown_tags = None


class OffsetForLeaderTopic(Struct):
    __slots__ = ("topic", "partitions")

    def __init__(
        self,
        *,
        topic: str = "",
        partitions: list[OffsetForLeaderPartition] = EMPTY,
    ) -> None:
        self.topic = topic
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class OffsetForLeaderEpochRequest(Message):
    __slots__ = ("replica_id", "topics")

    def __init__(
        self,
        *,
        replica_id: int = -2,
        topics: list[OffsetForLeaderTopic] = EMPTY,
    ) -> None:
        self.replica_id = replica_id
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tags = None

    KEY = 23
    SCHEMA = """\
OffsetForLeaderEpochRequest key=23 type=request listeners=broker versions=2-4 flexible=4+
  ReplicaId int32 3+ default=-2 ignorable entity=brokerId
  Topics []OffsetForLeaderTopic 0+
    Topic string 0+ key entity=topicName
    Partitions []OffsetForLeaderPartition 0+
      Partition int32 0+
      CurrentLeaderEpoch int32 2+ default=-1 ignorable
      LeaderEpoch int32 0+
"""
    STRUCTS = (OffsetForLeaderTopic, OffsetForLeaderPartition)


class EpochEndOffset(Struct):
    __slots__ = ("error_code", "partition", "leader_epoch", "end_offset")

    def __init__(
        self,
        *,
        error_code: int = 0,
        partition: int = 0,
        leader_epoch: int = -1,
        end_offset: int = -1,
    ) -> None:
        self.error_code = error_code
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.end_offset = end_offset
        self.unknown_tags = None


class OffsetForLeaderTopicResult(Struct):
    __slots__ = ("topic", "partitions")

    def __init__(
        self,
        *,
        topic: str = "",
        partitions: list[EpochEndOffset] = EMPTY,
    ) -> None:
        self.topic = topic
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class OffsetForLeaderEpochResponse(Message):
    __slots__ = ("throttle_time_ms", "topics")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[OffsetForLeaderTopicResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tags = None

    KEY = 23
    SCHEMA = """\
OffsetForLeaderEpochResponse key=23 type=response versions=2-4 flexible=4+
  ThrottleTimeMs int32 2+ ignorable
  Topics []OffsetForLeaderTopicResult 0+
    Topic string 0+ key entity=topicName
    Partitions []EpochEndOffset 0+
      ErrorCode int16 0+
      Partition int32 0+
      LeaderEpoch int32 1+ default=-1 ignorable
      EndOffset int64 0+ default=-1
"""
    STRUCTS = (OffsetForLeaderTopicResult, EpochEndOffset)
