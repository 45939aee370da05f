"""VoteRequest, VoteResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.ids import ZERO_UUID, Uuid
from ottla.wire.base import EMPTY, Message, Struct


class VoteRequestPartitionData(Struct):
    __slots__ = ("partition_index", "replica_epoch", "replica_id", "replica_directory_id", "voter_directory_id", "last_offset_epoch", "last_offset", "pre_vote")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        replica_epoch: int = 0,
        replica_id: int = 0,
        replica_directory_id: Uuid = ZERO_UUID,
        voter_directory_id: Uuid = ZERO_UUID,
        last_offset_epoch: int = 0,
        last_offset: int = 0,
        pre_vote: bool = False,
    ) -> None:
        self.partition_index = partition_index
        self.replica_epoch = replica_epoch
        self.replica_id = replica_id
        self.replica_directory_id = replica_directory_id
        self.voter_directory_id = voter_directory_id
        self.last_offset_epoch = last_offset_epoch
        self.last_offset = last_offset
        self.pre_vote = pre_vote
        self.unknown_tags = None


class VoteRequestTopicData(Struct):
    __slots__ = ("topic_name", "partitions")

    def __init__(
        self,
        *,
        topic_name: str = "",
        partitions: list[VoteRequestPartitionData] = EMPTY,
    ) -> None:
        self.topic_name = topic_name
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class VoteRequest(Message):
    __slots__ = ("cluster_id", "voter_id", "topics")

    def __init__(
        self,
        *,
        cluster_id: str | None = None,
        voter_id: int = -1,
        topics: list[VoteRequestTopicData] = EMPTY,
    ) -> None:
        self.cluster_id = cluster_id
        self.voter_id = voter_id
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tags = None

    KEY = 52
    SCHEMA = """\
VoteRequest key=52 type=request listeners=controller versions=0-2 flexible=0+
  ClusterId string 0+ nullable=0+ default=null
  VoterId int32 1+ default=-1 ignorable entity=brokerId
  Topics []TopicData 0+
    TopicName string 0+ entity=topicName
    Partitions []PartitionData 0+
      PartitionIndex int32 0+
      ReplicaEpoch int32 0+
      ReplicaId int32 0+ entity=brokerId
      ReplicaDirectoryId uuid 1+ ignorable
      VoterDirectoryId uuid 1+ ignorable
      LastOffsetEpoch int32 0+
      LastOffset int64 0+
      PreVote bool 2+
"""
    STRUCTS = (VoteRequestTopicData, VoteRequestPartitionData)


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


class VoteResponsePartitionData(Struct):
    __slots__ = ("partition_index", "error_code", "leader_id", "leader_epoch", "vote_granted")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        leader_id: int = 0,
        leader_epoch: int = 0,
        vote_granted: bool = False,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.vote_granted = vote_granted
        self.unknown_tags = None


class VoteResponseTopicData(Struct):
    __slots__ = ("topic_name", "partitions")

    def __init__(
        self,
        *,
        topic_name: str = "",
        partitions: list[VoteResponsePartitionData] = EMPTY,
    ) -> None:
        self.topic_name = topic_name
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class VoteResponse(Message):
    __slots__ = ("error_code", "topics", "node_endpoints")

    def __init__(
        self,
        *,
        error_code: int = 0,
        topics: list[VoteResponseTopicData] = EMPTY,
        node_endpoints: list[NodeEndpoint] = EMPTY,
    ) -> None:
        self.error_code = error_code
        self.topics = [] if topics is EMPTY else topics
        self.node_endpoints = [] if node_endpoints is EMPTY else node_endpoints
        self.unknown_tags = None

    KEY = 52
    SCHEMA = """\
VoteResponse key=52 type=response versions=0-2 flexible=0+
  ErrorCode int16 0+
  Topics []TopicData 0+
    TopicName string 0+ entity=topicName
    Partitions []PartitionData 0+
      PartitionIndex int32 0+
      ErrorCode int16 0+
      LeaderId int32 0+ entity=brokerId
      LeaderEpoch int32 0+
      VoteGranted bool 0+
  NodeEndpoints []NodeEndpoint 1+ tag=0@1+
    NodeId int32 1+ key entity=brokerId
    Host string 1+
    Port uint16 1+
"""
    STRUCTS = (VoteResponseTopicData, VoteResponsePartitionData, NodeEndpoint)
