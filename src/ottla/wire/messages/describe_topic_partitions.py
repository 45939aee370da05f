"""DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.ids import ZERO_UUID, Uuid
from ottla.wire.base import EMPTY, Message, Struct


class DescribeTopicPartitionsRequestCursor(Struct):
    __slots__ = ("topic_name", "partition_index")

    def __init__(
        self,
        *,
        topic_name: str = "",
        partition_index: int = 0,
    ) -> None:
        self.topic_name = topic_name
        self.partition_index = partition_index
        self.unknown_tags = None


class TopicRequest(Struct):
    __slots__ = ("name",)

    def __init__(
        self,
        *,
        name: str = "",
    ) -> None:
        self.name = name
        self.unknown_tags = None


class DescribeTopicPartitionsRequest(Message):
    __slots__ = ("topics", "response_partition_limit", "cursor")

    def __init__(
        self,
        *,
        topics: list[TopicRequest] = EMPTY,
        response_partition_limit: int = 2000,
        cursor: DescribeTopicPartitionsRequestCursor | None = None,
    ) -> None:
        self.topics = [] if topics is EMPTY else topics
        self.response_partition_limit = response_partition_limit
        self.cursor = cursor
        self.unknown_tags = None

    KEY = 75
    SCHEMA = """\
DescribeTopicPartitionsRequest key=75 type=request listeners=broker versions=0 flexible=0+
  Topics []TopicRequest 0+
    Name string 0+ entity=topicName
  ResponsePartitionLimit int32 0+ default=2000
  Cursor Cursor 0+ nullable=0+ default=null
    TopicName string 0+ entity=topicName
    PartitionIndex int32 0+
"""
    STRUCTS = (TopicRequest, DescribeTopicPartitionsRequestCursor)


class DescribeTopicPartitionsResponseCursor(Struct):
    __slots__ = ("topic_name", "partition_index")

    def __init__(
        self,
        *,
        topic_name: str = "",
        partition_index: int = 0,
    ) -> None:
        self.topic_name = topic_name
        self.partition_index = partition_index
        self.unknown_tags = None


class DescribeTopicPartitionsResponsePartition(Struct):
    __slots__ = ("error_code", "partition_index", "leader_id", "leader_epoch", "replica_nodes", "isr_nodes", "eligible_leader_replicas", "last_known_elr", "offline_replicas")

    def __init__(
        self,
        *,
        error_code: int = 0,
        partition_index: int = 0,
        leader_id: int = 0,
        leader_epoch: int = -1,
        replica_nodes: list[int] = EMPTY,
        isr_nodes: list[int] = EMPTY,
        eligible_leader_replicas: list[int] | None = None,
        last_known_elr: list[int] | None = None,
        offline_replicas: list[int] = EMPTY,
    ) -> None:
        self.error_code = error_code
        self.partition_index = partition_index
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.replica_nodes = [] if replica_nodes is EMPTY else replica_nodes
        self.isr_nodes = [] if isr_nodes is EMPTY else isr_nodes
        self.eligible_leader_replicas = eligible_leader_replicas
        self.last_known_elr = last_known_elr
        self.offline_replicas = [] if offline_replicas is EMPTY else offline_replicas
        self.unknown_tags = None


class DescribeTopicPartitionsResponseTopic(Struct):
    __slots__ = ("error_code", "name", "topic_id", "is_internal", "partitions", "topic_authorized_operations")

    def __init__(
        self,
        *,
        error_code: int = 0,
        name: str | None = "",
        topic_id: Uuid = ZERO_UUID,
        is_internal: bool = False,
        partitions: list[DescribeTopicPartitionsResponsePartition] = EMPTY,
        topic_authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code = error_code
        self.name = name
        self.topic_id = topic_id
        self.is_internal = is_internal
        self.partitions = [] if partitions is EMPTY else partitions
        self.topic_authorized_operations = topic_authorized_operations
        self.unknown_tags = None


class DescribeTopicPartitionsResponse(Message):
    __slots__ = ("throttle_time_ms", "topics", "next_cursor")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[DescribeTopicPartitionsResponseTopic] = EMPTY,
        next_cursor: DescribeTopicPartitionsResponseCursor | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is EMPTY else topics
        self.next_cursor = next_cursor
        self.unknown_tags = None

    KEY = 75
    SCHEMA = """\
DescribeTopicPartitionsResponse key=75 type=response versions=0 flexible=0+
  ThrottleTimeMs int32 0+ ignorable
  Topics []DescribeTopicPartitionsResponseTopic 0+
    ErrorCode int16 0+
    Name string 0+ nullable=0+ key entity=topicName
    TopicId uuid 0+ ignorable
    IsInternal bool 0+ default=false ignorable
    Partitions []DescribeTopicPartitionsResponsePartition 0+
      ErrorCode int16 0+
      PartitionIndex int32 0+
      LeaderId int32 0+ entity=brokerId
      LeaderEpoch int32 0+ default=-1 ignorable
      ReplicaNodes []int32 0+ entity=brokerId
      IsrNodes []int32 0+ entity=brokerId
      EligibleLeaderReplicas []int32 0+ nullable=0+ default=null entity=brokerId
      LastKnownElr []int32 0+ nullable=0+ default=null entity=brokerId
      OfflineReplicas []int32 0+ ignorable entity=brokerId
    TopicAuthorizedOperations int32 0+ default=-2147483648
  NextCursor Cursor 0+ nullable=0+ default=null
    TopicName string 0+ entity=topicName
    PartitionIndex int32 0+
"""
    STRUCTS = (DescribeTopicPartitionsResponseTopic, DescribeTopicPartitionsResponsePartition, DescribeTopicPartitionsResponseCursor)
