"""MetadataRequest, MetadataResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.ids import ZERO_UUID, Uuid
from ottla.wire.base import EMPTY, Message, Struct


class MetadataRequestTopic(Struct):
    __slots__ = ("topic_id", "name")

    def __init__(
        self,
        *,
        topic_id: Uuid = ZERO_UUID,
        name: str | None = "",
    ) -> None:
        self.topic_id = topic_id
        self.name = name
        self.unknown_tags = None


class MetadataRequest(Message):
    __slots__ = ("topics", "allow_auto_topic_creation", "include_cluster_authorized_operations", "include_topic_authorized_operations")

    def __init__(
        self,
        *,
        topics: list[MetadataRequestTopic] | None = EMPTY,
        allow_auto_topic_creation: bool = True,
        include_cluster_authorized_operations: bool = False,
        include_topic_authorized_operations: bool = False,
    ) -> None:
        self.topics = [] if topics is EMPTY else topics
        self.allow_auto_topic_creation = allow_auto_topic_creation
        self.include_cluster_authorized_operations = include_cluster_authorized_operations
        self.include_topic_authorized_operations = include_topic_authorized_operations
        self.unknown_tags = None

    KEY = 3
    SCHEMA = """\
MetadataRequest key=3 type=request listeners=broker versions=0-13 flexible=9+
  Topics []MetadataRequestTopic 0+ nullable=1+
    TopicId uuid 10+ ignorable
    Name string 0+ nullable=10+ entity=topicName
  AllowAutoTopicCreation bool 4+ default=true
  IncludeClusterAuthorizedOperations bool 8-10
  IncludeTopicAuthorizedOperations bool 8+
"""
    STRUCTS = (MetadataRequestTopic,)


class MetadataResponsePartition(Struct):
    __slots__ = ("error_code", "partition_index", "leader_id", "leader_epoch", "replica_nodes", "isr_nodes", "offline_replicas")

    def __init__(
        self,
        *,
        error_code: int = 0,
        partition_index: int = 0,
        leader_id: int = 0,
        leader_epoch: int = -1,
        replica_nodes: list[int] = EMPTY,
        isr_nodes: list[int] = EMPTY,
        offline_replicas: list[int] = EMPTY,
    ) -> None:
        self.error_code = error_code
        self.partition_index = partition_index
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.replica_nodes = [] if replica_nodes is EMPTY else replica_nodes
        self.isr_nodes = [] if isr_nodes is EMPTY else isr_nodes
        self.offline_replicas = [] if offline_replicas is EMPTY else offline_replicas
        self.unknown_tags = None


class MetadataResponseTopic(Struct):
    __slots__ = ("error_code", "name", "topic_id", "is_internal", "partitions", "topic_authorized_operations")

    def __init__(
        self,
        *,
        error_code: int = 0,
        name: str | None = "",
        topic_id: Uuid = ZERO_UUID,
        is_internal: bool = False,
        partitions: list[MetadataResponsePartition] = EMPTY,
        topic_authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code = error_code
        self.name = name
        self.topic_id = topic_id
        self.is_internal = is_internal
        self.partitions = [] if partitions is EMPTY else partitions
        self.topic_authorized_operations = topic_authorized_operations
        self.unknown_tags = None


class MetadataResponseBroker(Struct):
    __slots__ = ("node_id", "host", "port", "rack")

    def __init__(
        self,
        *,
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        rack: str | None = None,
    ) -> None:
        self.node_id = node_id
        self.host = host
        self.port = port
        self.rack = rack
        self.unknown_tags = None


class MetadataResponse(Message):
    __slots__ = ("throttle_time_ms", "brokers", "cluster_id", "controller_id", "topics", "cluster_authorized_operations", "error_code")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        brokers: list[MetadataResponseBroker] = EMPTY,
        cluster_id: str | None = None,
        controller_id: int = -1,
        topics: list[MetadataResponseTopic] = EMPTY,
        cluster_authorized_operations: int = -2147483648,
        error_code: int = 0,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.brokers = [] if brokers is EMPTY else brokers
        self.cluster_id = cluster_id
        self.controller_id = controller_id
        self.topics = [] if topics is EMPTY else topics
        self.cluster_authorized_operations = cluster_authorized_operations
        self.error_code = error_code
        self.unknown_tags = None

    KEY = 3
    SCHEMA = """\
MetadataResponse key=3 type=response versions=0-13 flexible=9+
  ThrottleTimeMs int32 3+ ignorable
  Brokers []MetadataResponseBroker 0+
    NodeId int32 0+ key entity=brokerId
    Host string 0+
    Port int32 0+
    Rack string 1+ nullable=1+ default=null ignorable
  ClusterId string 2+ nullable=2+ default=null ignorable
  ControllerId int32 1+ default=-1 ignorable entity=brokerId
  Topics []MetadataResponseTopic 0+
    ErrorCode int16 0+
    Name string 0+ nullable=12+ key entity=topicName
    TopicId uuid 10+ ignorable
    IsInternal bool 1+ default=false ignorable
    Partitions []MetadataResponsePartition 0+
      ErrorCode int16 0+
      PartitionIndex int32 0+
      LeaderId int32 0+ entity=brokerId
      LeaderEpoch int32 7+ default=-1 ignorable
      ReplicaNodes []int32 0+ entity=brokerId
      IsrNodes []int32 0+ entity=brokerId
      OfflineReplicas []int32 5+ ignorable entity=brokerId
    TopicAuthorizedOperations int32 8+ default=-2147483648
  ClusterAuthorizedOperations int32 8-10 default=-2147483648
  ErrorCode int16 13+ ignorable
"""
    STRUCTS = (MetadataResponseBroker, MetadataResponseTopic, MetadataResponsePartition)
