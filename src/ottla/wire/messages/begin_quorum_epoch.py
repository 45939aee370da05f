"""BeginQuorumEpochRequest, BeginQuorumEpochResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.ids import ZERO_UUID, Uuid
from ottla.wire.base import EMPTY, Message, Struct


class LeaderEndpoint(Struct):
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


class BeginQuorumEpochRequestPartitionData(Struct):
    __slots__ = ("partition_index", "voter_directory_id", "leader_id", "leader_epoch")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        voter_directory_id: Uuid = ZERO_UUID,
        leader_id: int = 0,
        leader_epoch: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.voter_directory_id = voter_directory_id
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.unknown_tags = None


class BeginQuorumEpochRequestTopicData(Struct):
    __slots__ = ("topic_name", "partitions")

    def __init__(
        self,
        *,
        topic_name: str = "",
        partitions: list[BeginQuorumEpochRequestPartitionData] = EMPTY,
    ) -> None:
        self.topic_name = topic_name
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class BeginQuorumEpochRequest(Message):
    __slots__ = ("cluster_id", "voter_id", "topics", "leader_endpoints")

    def __init__(
        self,
        *,
        cluster_id: str | None = None,
        voter_id: int = -1,
        topics: list[BeginQuorumEpochRequestTopicData] = EMPTY,
        leader_endpoints: list[LeaderEndpoint] = EMPTY,
    ) -> None:
        self.cluster_id = cluster_id
        self.voter_id = voter_id
        self.topics = [] if topics is EMPTY else topics
        self.leader_endpoints = [] if leader_endpoints is EMPTY else leader_endpoints
        self.unknown_tags = None

    KEY = 53
    SCHEMA = """\
BeginQuorumEpochRequest key=53 type=request listeners=controller versions=0-1 flexible=1+
  ClusterId string 0+ nullable=0+ default=null
  VoterId int32 1+ default=-1 ignorable entity=brokerId
  Topics []TopicData 0+
    TopicName string 0+ entity=topicName
    Partitions []PartitionData 0+
      PartitionIndex int32 0+
      VoterDirectoryId uuid 1+ ignorable
      LeaderId int32 0+ entity=brokerId
      LeaderEpoch int32 0+
  LeaderEndpoints []LeaderEndpoint 1+ ignorable
    Name string 1+ key
    Host string 1+
    Port uint16 1+
"""
    STRUCTS = (BeginQuorumEpochRequestTopicData, BeginQuorumEpochRequestPartitionData, LeaderEndpoint)


class NodeEndpoint(Struct):
    __slots__ = ("node_id", "host", "port")

    def __init__(
        self,
        *,
        node_id: int = 0,
        host: str = "",
        port: int = 0,
    ) -> None:
        self.node_id = node_id
        self.host = host
        self.port = port
        self.unknown_tags = None


class BeginQuorumEpochResponsePartitionData(Struct):
    __slots__ = ("partition_index", "error_code", "leader_id", "leader_epoch")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        leader_id: int = 0,
        leader_epoch: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.unknown_tags = None


class BeginQuorumEpochResponseTopicData(Struct):
    __slots__ = ("topic_name", "partitions")

    def __init__(
        self,
        *,
        topic_name: str = "",
        partitions: list[BeginQuorumEpochResponsePartitionData] = EMPTY,
    ) -> None:
        self.topic_name = topic_name
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class BeginQuorumEpochResponse(Message):
    __slots__ = ("error_code", "topics", "node_endpoints")

    def __init__(
        self,
        *,
        error_code: int = 0,
        topics: list[BeginQuorumEpochResponseTopicData] = EMPTY,
        node_endpoints: list[NodeEndpoint] = EMPTY,
    ) -> None:
        self.error_code = error_code
        self.topics = [] if topics is EMPTY else topics
        self.node_endpoints = [] if node_endpoints is EMPTY else node_endpoints
        self.unknown_tags = None

    KEY = 53
    SCHEMA = """\
BeginQuorumEpochResponse key=53 type=response versions=0-1 flexible=1+
  ErrorCode int16 0+
  Topics []TopicData 0+
    TopicName string 0+ entity=topicName
    Partitions []PartitionData 0+
      PartitionIndex int32 0+
      ErrorCode int16 0+
      LeaderId int32 0+ entity=brokerId
      LeaderEpoch int32 0+
  NodeEndpoints []NodeEndpoint 1+ tag=0@1+
    NodeId int32 1+ key entity=brokerId
    Host string 1+
    Port uint16 1+
"""
    STRUCTS = (BeginQuorumEpochResponseTopicData, BeginQuorumEpochResponsePartitionData, NodeEndpoint)
