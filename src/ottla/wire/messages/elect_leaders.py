"""ElectLeadersRequest, ElectLeadersResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.wire.base import EMPTY, Message, Struct


class TopicPartitions(Struct):
    __slots__ = ("topic", "partitions")

    def __init__(
        self,
        *,
        topic: str = "",
        partitions: list[int] = EMPTY,
    ) -> None:
        self.topic = topic
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class ElectLeadersRequest(Message):
    __slots__ = ("election_type", "topic_partitions", "timeout_ms")

    def __init__(
        self,
        *,
        election_type: int = 0,
        topic_partitions: list[TopicPartitions] | None = EMPTY,
        timeout_ms: int = 60000,
    ) -> None:
        self.election_type = election_type
        self.topic_partitions = [] if topic_partitions is EMPTY else topic_partitions
        self.timeout_ms = timeout_ms
        self.unknown_tags = None

    KEY = 43
    SCHEMA = """\
ElectLeadersRequest key=43 type=request listeners=broker,controller versions=0-2 flexible=2+
  ElectionType int8 1+
  TopicPartitions []TopicPartitions 0+ nullable=0+
    Topic string 0+ key entity=topicName
    Partitions []int32 0+
  TimeoutMs int32 0+ default=60000
"""
    STRUCTS = (TopicPartitions,)


class PartitionResult(Struct):
    __slots__ = ("partition_id", "error_code", "error_message")

    def __init__(
        self,
        *,
        partition_id: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.partition_id = partition_id
        self.error_code = error_code
        self.error_message = error_message
        self.unknown_tags = None


class ReplicaElectionResult(Struct):
    __slots__ = ("topic", "partition_result")

    def __init__(
        self,
        *,
        topic: str = "",
        partition_result: list[PartitionResult] = EMPTY,
    ) -> None:
        self.topic = topic
        self.partition_result = [] if partition_result is EMPTY else partition_result
        self.unknown_tags = None


class ElectLeadersResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "replica_election_results")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        replica_election_results: list[ReplicaElectionResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.replica_election_results = [] if replica_election_results is EMPTY else replica_election_results
        self.unknown_tags = None

    KEY = 43
    SCHEMA = """\
ElectLeadersResponse key=43 type=response versions=0-2 flexible=2+
  ThrottleTimeMs int32 0+
  ErrorCode int16 1+
  ReplicaElectionResults []ReplicaElectionResult 0+
    Topic string 0+ entity=topicName
    PartitionResult []PartitionResult 0+
      PartitionId int32 0+
      ErrorCode int16 0+
      ErrorMessage string 0+ nullable=0+
"""
    STRUCTS = (ReplicaElectionResult, PartitionResult)
