"""ListOffsetsRequest, ListOffsetsResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.wire.base import EMPTY, Message, Struct


class ListOffsetsPartition(Struct):
    __slots__ = ("partition_index", "current_leader_epoch", "timestamp")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        current_leader_epoch: int = -1,
        timestamp: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.current_leader_epoch = current_leader_epoch
        self.timestamp = timestamp
        self.unknown_tags = None


class ListOffsetsTopic(Struct):
    __slots__ = ("name", "partitions")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[ListOffsetsPartition] = EMPTY,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class ListOffsetsRequest(Message):
    __slots__ = ("replica_id", "isolation_level", "topics", "timeout_ms")

    def __init__(
        self,
        *,
        replica_id: int = 0,
        isolation_level: int = 0,
        topics: list[ListOffsetsTopic] = EMPTY,
        timeout_ms: int = 0,
    ) -> None:
        self.replica_id = replica_id
        self.isolation_level = isolation_level
        self.topics = [] if topics is EMPTY else topics
        self.timeout_ms = timeout_ms
        self.unknown_tags = None

    KEY = 2
    SCHEMA = """\
ListOffsetsRequest key=2 type=request listeners=broker versions=1-11 flexible=6+
  ReplicaId int32 0+ entity=brokerId
  IsolationLevel int8 2+
  Topics []ListOffsetsTopic 0+
    Name string 0+ entity=topicName
    Partitions []ListOffsetsPartition 0+
      PartitionIndex int32 0+
      CurrentLeaderEpoch int32 4+ default=-1 ignorable
      Timestamp int64 0+
  TimeoutMs int32 10+ ignorable
"""
    STRUCTS = (ListOffsetsTopic, ListOffsetsPartition)


class ListOffsetsPartitionResponse(Struct):
    __slots__ = ("partition_index", "error_code", "timestamp", "offset", "leader_epoch")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        timestamp: int = -1,
        offset: int = -1,
        leader_epoch: int = -1,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.timestamp = timestamp
        self.offset = offset
        self.leader_epoch = leader_epoch
        self.unknown_tags = None


class ListOffsetsTopicResponse(Struct):
    __slots__ = ("name", "partitions")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[ListOffsetsPartitionResponse] = EMPTY,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class ListOffsetsResponse(Message):
    __slots__ = ("throttle_time_ms", "topics")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[ListOffsetsTopicResponse] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tags = None

    KEY = 2
    SCHEMA = """\
ListOffsetsResponse key=2 type=response versions=1-11 flexible=6+
  ThrottleTimeMs int32 2+ ignorable
  Topics []ListOffsetsTopicResponse 0+
    Name string 0+ entity=topicName
    Partitions []ListOffsetsPartitionResponse 0+
      PartitionIndex int32 0+
      ErrorCode int16 0+
      Timestamp int64 1+ default=-1
      Offset int64 1+ default=-1
      LeaderEpoch int32 4+ default=-1
"""
    STRUCTS = (ListOffsetsTopicResponse, ListOffsetsPartitionResponse)
