"""FetchRequest, FetchResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.ids import ZERO_UUID, Uuid
from ottla.wire.base import EMPTY, Message, Records, Struct


class ForgottenTopic(Struct):
    __slots__ = ("topic", "topic_id", "partitions")

    def __init__(
        self,
        *,
        topic: str = "",
        topic_id: Uuid = ZERO_UUID,
        partitions: list[int] = EMPTY,
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class FetchPartition(Struct):
    __slots__ = ("partition", "current_leader_epoch", "fetch_offset", "last_fetched_epoch", "log_start_offset", "partition_max_bytes", "replica_directory_id", "high_watermark")

    def __init__(
        self,
        *,
        partition: int = 0,
        current_leader_epoch: int = -1,
        fetch_offset: int = 0,
        last_fetched_epoch: int = -1,
        log_start_offset: int = -1,
        partition_max_bytes: int = 0,
        replica_directory_id: Uuid = ZERO_UUID,
        high_watermark: int = 9223372036854775807,
    ) -> None:
        self.partition = partition
        self.current_leader_epoch = current_leader_epoch
        self.fetch_offset = fetch_offset
        self.last_fetched_epoch = last_fetched_epoch
        self.log_start_offset = log_start_offset
        self.partition_max_bytes = partition_max_bytes
        self.replica_directory_id = replica_directory_id
        self.high_watermark = high_watermark
        self.unknown_tags = None


class FetchTopic(Struct):
    __slots__ = ("topic", "topic_id", "partitions")

    def __init__(
        self,
        *,
        topic: str = "",
        topic_id: Uuid = ZERO_UUID,
        partitions: list[FetchPartition] = EMPTY,
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class ReplicaState(Struct):
    __slots__ = ("replica_id", "replica_epoch")

    def __init__(
        self,
        *,
        replica_id: int = -1,
        replica_epoch: int = -1,
    ) -> None:
        self.replica_id = replica_id
        self.replica_epoch = replica_epoch
        self.unknown_tags = None


class FetchRequest(Message):
    __slots__ = ("cluster_id", "replica_id", "replica_state", "max_wait_ms", "min_bytes", "max_bytes", "isolation_level", "session_id", "session_epoch", "topics", "forgotten_topics_data", "rack_id")

    def __init__(
        self,
        *,
        cluster_id: str | None = None,
        replica_id: int = -1,
        replica_state: ReplicaState | None = None,
        max_wait_ms: int = 0,
        min_bytes: int = 0,
        max_bytes: int = 2147483647,
        isolation_level: int = 0,
        session_id: int = 0,
        session_epoch: int = -1,
        topics: list[FetchTopic] = EMPTY,
        forgotten_topics_data: list[ForgottenTopic] = EMPTY,
        rack_id: str = "",
    ) -> None:
        self.cluster_id = cluster_id
        self.replica_id = replica_id
        self.replica_state = replica_state
        self.max_wait_ms = max_wait_ms
        self.min_bytes = min_bytes
        self.max_bytes = max_bytes
        self.isolation_level = isolation_level
        self.session_id = session_id
        self.session_epoch = session_epoch
        self.topics = [] if topics is EMPTY else topics
        self.forgotten_topics_data = [] if forgotten_topics_data is EMPTY else forgotten_topics_data
        self.rack_id = rack_id
        self.unknown_tags = None

    KEY = 1
    SCHEMA = """\
FetchRequest key=1 type=request listeners=broker,controller versions=4-18 flexible=12+
  ClusterId string 12+ nullable=12+ tag=0@12+ default=null ignorable
  ReplicaId int32 0-14 default=-1 entity=brokerId
  ReplicaState ReplicaState 15+ tag=1@15+
    ReplicaId int32 15+ default=-1 entity=brokerId
    ReplicaEpoch int64 15+ default=-1
  MaxWaitMs int32 0+
  MinBytes int32 0+
  MaxBytes int32 3+ default=0x7fffffff ignorable
  IsolationLevel int8 4+ default=0 ignorable
  SessionId int32 7+ default=0 ignorable
  SessionEpoch int32 7+ default=-1 ignorable
  Topics []FetchTopic 0+
    Topic string 0-12 ignorable entity=topicName
    TopicId uuid 13+ ignorable
    Partitions []FetchPartition 0+
      Partition int32 0+
      CurrentLeaderEpoch int32 9+ default=-1 ignorable
      FetchOffset int64 0+
      LastFetchedEpoch int32 12+ default=-1
      LogStartOffset int64 5+ default=-1 ignorable
      PartitionMaxBytes int32 0+
      ReplicaDirectoryId uuid 17+ tag=0@17+ ignorable
      HighWatermark int64 18+ tag=1@18+ default=9223372036854775807 ignorable
  ForgottenTopicsData []ForgottenTopic 7+
    Topic string 7-12 ignorable entity=topicName
    TopicId uuid 13+ ignorable
    Partitions []int32 7+
  RackId string 11+ default="" ignorable
"""
    STRUCTS = (ReplicaState, FetchTopic, FetchPartition, ForgottenTopic)


class NodeEndpoint(Struct):
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


class AbortedTransaction(Struct):
    __slots__ = ("producer_id", "first_offset")

    def __init__(
        self,
        *,
        producer_id: int = 0,
        first_offset: int = 0,
    ) -> None:
        self.producer_id = producer_id
        self.first_offset = first_offset
        self.unknown_tags = None


class SnapshotId(Struct):
    __slots__ = ("end_offset", "epoch")

    def __init__(
        self,
        *,
        end_offset: int = -1,
        epoch: int = -1,
    ) -> None:
        self.end_offset = end_offset
        self.epoch = epoch
        self.unknown_tags = None


class LeaderIdAndEpoch(Struct):
    __slots__ = ("leader_id", "leader_epoch")

    def __init__(
        self,
        *,
        leader_id: int = -1,
        leader_epoch: int = -1,
    ) -> None:
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.unknown_tags = None


class EpochEndOffset(Struct):
    __slots__ = ("epoch", "end_offset")

    def __init__(
        self,
        *,
        epoch: int = -1,
        end_offset: int = -1,
    ) -> None:
        self.epoch = epoch
        self.end_offset = end_offset
        self.unknown_tags = None


class PartitionData(Struct):
    __slots__ = ("partition_index", "error_code", "high_watermark", "last_stable_offset", "log_start_offset", "diverging_epoch", "current_leader", "snapshot_id", "aborted_transactions", "preferred_read_replica", "records")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        high_watermark: int = 0,
        last_stable_offset: int = -1,
        log_start_offset: int = -1,
        diverging_epoch: EpochEndOffset | None = None,
        current_leader: LeaderIdAndEpoch | None = None,
        snapshot_id: SnapshotId | None = None,
        aborted_transactions: list[AbortedTransaction] | None = EMPTY,
        preferred_read_replica: int = -1,
        records: Records | None = None,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.high_watermark = high_watermark
        self.last_stable_offset = last_stable_offset
        self.log_start_offset = log_start_offset
        self.diverging_epoch = diverging_epoch
        self.current_leader = current_leader
        self.snapshot_id = snapshot_id
        self.aborted_transactions = [] if aborted_transactions is EMPTY else aborted_transactions
        self.preferred_read_replica = preferred_read_replica
        self.records = records
        self.unknown_tags = None


class FetchableTopicResponse(Struct):
    __slots__ = ("topic", "topic_id", "partitions")

    def __init__(
        self,
        *,
        topic: str = "",
        topic_id: Uuid = ZERO_UUID,
        partitions: list[PartitionData] = EMPTY,
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class FetchResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "session_id", "responses", "node_endpoints")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        session_id: int = 0,
        responses: list[FetchableTopicResponse] = EMPTY,
        node_endpoints: list[NodeEndpoint] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.session_id = session_id
        self.responses = [] if responses is EMPTY else responses
        self.node_endpoints = [] if node_endpoints is EMPTY else node_endpoints
        self.unknown_tags = None

    KEY = 1
    SCHEMA = """\
FetchResponse key=1 type=response versions=4-18 flexible=12+
  ThrottleTimeMs int32 1+ ignorable
  ErrorCode int16 7+ ignorable
  SessionId int32 7+ default=0
  Responses []FetchableTopicResponse 0+
    Topic string 0-12 ignorable entity=topicName
    TopicId uuid 13+ ignorable
    Partitions []PartitionData 0+
      PartitionIndex int32 0+
      ErrorCode int16 0+
      HighWatermark int64 0+
      LastStableOffset int64 4+ default=-1 ignorable
      LogStartOffset int64 5+ default=-1 ignorable
      DivergingEpoch EpochEndOffset 12+ tag=0@12+
        Epoch int32 12+ default=-1
        EndOffset int64 12+ default=-1
      CurrentLeader LeaderIdAndEpoch 12+ tag=1@12+
        LeaderId int32 12+ default=-1 entity=brokerId
        LeaderEpoch int32 12+ default=-1
      SnapshotId SnapshotId 12+ tag=2@12+
        EndOffset int64 0+ default=-1
        Epoch int32 0+ default=-1
      AbortedTransactions []AbortedTransaction 4+ nullable=4+ ignorable
        ProducerId int64 4+ entity=producerId
        FirstOffset int64 4+
      PreferredReadReplica int32 11+ default=-1 entity=brokerId
      Records records 0+ nullable=0+
  NodeEndpoints []NodeEndpoint 16+ tag=0@16+
    NodeId int32 16+ key entity=brokerId
    Host string 16+
    Port int32 16+
    Rack string 16+ nullable=16+ default=null
"""
    STRUCTS = (FetchableTopicResponse, PartitionData, EpochEndOffset, LeaderIdAndEpoch, SnapshotId, AbortedTransaction, NodeEndpoint)
