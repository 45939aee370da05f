"""DescribeQuorumRequest, DescribeQuorumResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.ids import ZERO_UUID, Uuid
from ottla.wire.base import EMPTY, Message, Struct


class DescribeQuorumRequestPartitionData(Struct):
    __slots__ = ("partition_index",)

    def __init__(
        self,
        *,
        partition_index: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.unknown_tags = None


class DescribeQuorumRequestTopicData(Struct):
    __slots__ = ("topic_name", "partitions")

    def __init__(
        self,
        *,
        topic_name: str = "",
        partitions: list[DescribeQuorumRequestPartitionData] = EMPTY,
    ) -> None:
        self.topic_name = topic_name
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class DescribeQuorumRequest(Message):
    __slots__ = ("topics",)

    def __init__(
        self,
        *,
        topics: list[DescribeQuorumRequestTopicData] = EMPTY,
    ) -> None:
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tags = None

    KEY = 55
    SCHEMA = """\
DescribeQuorumRequest key=55 type=request listeners=broker,controller versions=0-2 flexible=0+
  Topics []TopicData 0+
    TopicName string 0+ entity=topicName
    Partitions []PartitionData 0+
      PartitionIndex int32 0+
"""
    STRUCTS = (DescribeQuorumRequestTopicData, DescribeQuorumRequestPartitionData)


class Listener(Struct):
    __slots__ = ("name", "host", "port")

    def __init__(
        self,
        *,
        name: str = "",
        host: str = "",
        port: int = 0,
    ) -> None:
        self.name = name
        self.host = host
        self.port = port
        self.unknown_tags = None


class Node(Struct):
    __slots__ = ("node_id", "listeners")

    def __init__(
        self,
        *,
        node_id: int = 0,
        listeners: list[Listener] = EMPTY,
    ) -> None:
        self.node_id = node_id
        self.listeners = [] if listeners is EMPTY else listeners
        self.unknown_tags = None


class ReplicaState(Struct):
    __slots__ = ("replica_id", "replica_directory_id", "log_end_offset", "last_fetch_timestamp", "last_caught_up_timestamp")

    def __init__(
        self,
        *,
        replica_id: int = 0,
        replica_directory_id: Uuid = ZERO_UUID,
        log_end_offset: int = 0,
        last_fetch_timestamp: int = -1,
        last_caught_up_timestamp: int = -1,
    ) -> None:
        self.replica_id = replica_id
        self.replica_directory_id = replica_directory_id
        self.log_end_offset = log_end_offset
        self.last_fetch_timestamp = last_fetch_timestamp
        self.last_caught_up_timestamp = last_caught_up_timestamp
        self.unknown_tags = None


class DescribeQuorumResponsePartitionData(Struct):
    __slots__ = ("partition_index", "error_code", "error_message", "leader_id", "leader_epoch", "high_watermark", "current_voters", "observers")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        leader_id: int = 0,
        leader_epoch: int = 0,
        high_watermark: int = 0,
        current_voters: list[ReplicaState] = EMPTY,
        observers: list[ReplicaState] = EMPTY,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.high_watermark = high_watermark
        self.current_voters = [] if current_voters is EMPTY else current_voters
        self.observers = [] if observers is EMPTY else observers
        self.unknown_tags = None


class DescribeQuorumResponseTopicData(Struct):
    __slots__ = ("topic_name", "partitions")

    def __init__(
        self,
        *,
        topic_name: str = "",
        partitions: list[DescribeQuorumResponsePartitionData] = EMPTY,
    ) -> None:
        self.topic_name = topic_name
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class DescribeQuorumResponse(Message):
    __slots__ = ("error_code", "error_message", "topics", "nodes")

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        topics: list[DescribeQuorumResponseTopicData] = EMPTY,
        nodes: list[Node] = EMPTY,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.topics = [] if topics is EMPTY else topics
        self.nodes = [] if nodes is EMPTY else nodes
        self.unknown_tags = None

    KEY = 55
    SCHEMA = """\
DescribeQuorumResponse key=55 type=response versions=0-2 flexible=0+
  ErrorCode int16 0+
  ErrorMessage string 2+ nullable=2+ ignorable
  Topics []TopicData 0+
    TopicName string 0+ entity=topicName
    Partitions []PartitionData 0+
      PartitionIndex int32 0+
      ErrorCode int16 0+
      ErrorMessage string 2+ nullable=2+ ignorable
      LeaderId int32 0+ entity=brokerId
      LeaderEpoch int32 0+
      HighWatermark int64 0+
      CurrentVoters []ReplicaState 0+
      Observers []ReplicaState 0+
  Nodes []Node 2+
    NodeId int32 2+ key entity=brokerId
    Listeners []Listener 2+
      Name string 2+ key
      Host string 2+
      Port uint16 2+
  struct ReplicaState 0+
    ReplicaId int32 0+ entity=brokerId
    ReplicaDirectoryId uuid 2+
    LogEndOffset int64 0+
    LastFetchTimestamp int64 1+ default=-1 ignorable
    LastCaughtUpTimestamp int64 1+ default=-1 ignorable
"""
    STRUCTS = (DescribeQuorumResponseTopicData, DescribeQuorumResponsePartitionData, ReplicaState, Node, Listener)
