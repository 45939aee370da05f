"""AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.wire.base import EMPTY, Message, Struct


class ReassignablePartition(Struct):
    __slots__ = ("partition_index", "replicas")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        replicas: list[int] | None = None,
    ) -> None:
        self.partition_index = partition_index
        self.replicas = replicas
        self.unknown_tags = None


class ReassignableTopic(Struct):
    __slots__ = ("name", "partitions")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[ReassignablePartition] = EMPTY,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class AlterPartitionReassignmentsRequest(Message):
    __slots__ = ("timeout_ms", "allow_replication_factor_change", "topics")

    def __init__(
        self,
        *,
        timeout_ms: int = 60000,
        allow_replication_factor_change: bool = True,
        topics: list[ReassignableTopic] = EMPTY,
    ) -> None:
        self.timeout_ms = timeout_ms
        self.allow_replication_factor_change = allow_replication_factor_change
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tags = None

    KEY = 45
    SCHEMA = """\
AlterPartitionReassignmentsRequest key=45 type=request listeners=broker,controller versions=0-1 flexible=0+
  TimeoutMs int32 0+ default=60000
  AllowReplicationFactorChange bool 1+ default=true
  Topics []ReassignableTopic 0+
    Name string 0+ entity=topicName
    Partitions []ReassignablePartition 0+
      PartitionIndex int32 0+
      Replicas []int32 0+ nullable=0+ default=null entity=brokerId
"""
    STRUCTS = (ReassignableTopic, ReassignablePartition)


class ReassignablePartitionResponse(Struct):
    __slots__ = ("partition_index", "error_code", "error_message")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message
        self.unknown_tags = None


class ReassignableTopicResponse(Struct):
    __slots__ = ("name", "partitions")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[ReassignablePartitionResponse] = EMPTY,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class AlterPartitionReassignmentsResponse(Message):
    __slots__ = ("throttle_time_ms", "allow_replication_factor_change", "error_code", "error_message", "responses")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        allow_replication_factor_change: bool = True,
        error_code: int = 0,
        error_message: str | None = "",
        responses: list[ReassignableTopicResponse] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.allow_replication_factor_change = allow_replication_factor_change
        self.error_code = error_code
        self.error_message = error_message
        self.responses = [] if responses is EMPTY else responses
        self.unknown_tags = None

    KEY = 45
    SCHEMA = """\
AlterPartitionReassignmentsResponse key=45 type=response versions=0-1 flexible=0+
  ThrottleTimeMs int32 0+
  AllowReplicationFactorChange bool 1+ default=true ignorable
  ErrorCode int16 0+
  ErrorMessage string 0+ nullable=0+
  Responses []ReassignableTopicResponse 0+
    Name string 0+ entity=topicName
    Partitions []ReassignablePartitionResponse 0+
      PartitionIndex int32 0+
      ErrorCode int16 0+
      ErrorMessage string 0+ nullable=0+
"""
    STRUCTS = (ReassignableTopicResponse, ReassignablePartitionResponse)
