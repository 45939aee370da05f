"""ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.wire.base import EMPTY, Message, Struct


class ListPartitionReassignmentsTopics(Struct):
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


class ListPartitionReassignmentsRequest(Message):
    __slots__ = ("timeout_ms", "topics")

    def __init__(
        self,
        *,
        timeout_ms: int = 60000,
        topics: list[ListPartitionReassignmentsTopics] | None = None,
    ) -> None:
        self.timeout_ms = timeout_ms
        self.topics = topics
        self.unknown_tags = None

    KEY = 46
    SCHEMA = """\
ListPartitionReassignmentsRequest key=46 type=request listeners=broker,controller versions=0 flexible=0+
  TimeoutMs int32 0+ default=60000
  Topics []ListPartitionReassignmentsTopics 0+ nullable=0+ default=null
    Name string 0+ entity=topicName
    PartitionIndexes []int32 0+
"""
    STRUCTS = (ListPartitionReassignmentsTopics,)


class OngoingPartitionReassignment(Struct):
    __slots__ = ("partition_index", "replicas", "adding_replicas", "removing_replicas")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        replicas: list[int] = EMPTY,
        adding_replicas: list[int] = EMPTY,
        removing_replicas: list[int] = EMPTY,
    ) -> None:
        self.partition_index = partition_index
        self.replicas = [] if replicas is EMPTY else replicas
        self.adding_replicas = [] if adding_replicas is EMPTY else adding_replicas
        self.removing_replicas = [] if removing_replicas is EMPTY else removing_replicas
        self.unknown_tags = None


class OngoingTopicReassignment(Struct):
    __slots__ = ("name", "partitions")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[OngoingPartitionReassignment] = EMPTY,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class ListPartitionReassignmentsResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "topics")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        topics: list[OngoingTopicReassignment] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tags = None

    KEY = 46
    SCHEMA = """\
ListPartitionReassignmentsResponse key=46 type=response versions=0 flexible=0+
  ThrottleTimeMs int32 0+
  ErrorCode int16 0+
  ErrorMessage string 0+ nullable=0+
  Topics []OngoingTopicReassignment 0+
    Name string 0+ entity=topicName
    Partitions []OngoingPartitionReassignment 0+
      PartitionIndex int32 0+
      Replicas []int32 0+ entity=brokerId
      AddingReplicas []int32 0+ entity=brokerId
      RemovingReplicas []int32 0+ entity=brokerId
"""
    STRUCTS = (OngoingTopicReassignment, OngoingPartitionReassignment)
