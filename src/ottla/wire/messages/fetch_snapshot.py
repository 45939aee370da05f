"""FetchSnapshotRequest, FetchSnapshotResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.ids import ZERO_UUID, Uuid
from ottla.wire.base import EMPTY, NEW, Message, Records, Struct


class FetchSnapshotRequestSnapshotId(Struct):
    __slots__ = ("end_offset", "epoch")

    def __init__(
        self,
        *,
        end_offset: int = 0,
        epoch: int = 0,
    ) -> None:
        self.end_offset = end_offset
        self.epoch = epoch
        self.unknown_tags = None


class FetchSnapshotRequestPartitionSnapshot(Struct):
    __slots__ = ("partition", "current_leader_epoch", "snapshot_id", "position", "replica_directory_id")

    def __init__(
        self,
        *,
        partition: int = 0,
        current_leader_epoch: int = 0,
        snapshot_id: FetchSnapshotRequestSnapshotId = NEW,
        position: int = 0,
        replica_directory_id: Uuid = ZERO_UUID,
    ) -> None:
        self.partition = partition
        self.current_leader_epoch = current_leader_epoch
        self.snapshot_id = FetchSnapshotRequestSnapshotId() if snapshot_id is NEW else snapshot_id
        self.position = position
        self.replica_directory_id = replica_directory_id
        self.unknown_tags = None


class FetchSnapshotRequestTopicSnapshot(Struct):
    __slots__ = ("name", "partitions")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[FetchSnapshotRequestPartitionSnapshot] = EMPTY,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class FetchSnapshotRequest(Message):
    __slots__ = ("cluster_id", "replica_id", "max_bytes", "topics")

    def __init__(
        self,
        *,
        cluster_id: str | None = None,
        replica_id: int = -1,
        max_bytes: int = 2147483647,
        topics: list[FetchSnapshotRequestTopicSnapshot] = EMPTY,
    ) -> None:
        self.cluster_id = cluster_id
        self.replica_id = replica_id
        self.max_bytes = max_bytes
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tags = None

    KEY = 59
    SCHEMA = """\
FetchSnapshotRequest key=59 type=request listeners=controller versions=0-1 flexible=0+
  ClusterId string 0+ nullable=0+ tag=0@0+ default=null
  ReplicaId int32 0+ default=-1 entity=brokerId
  MaxBytes int32 0+ default=0x7fffffff
  Topics []TopicSnapshot 0+
    Name string 0+ entity=topicName
    Partitions []PartitionSnapshot 0+
      Partition int32 0+
      CurrentLeaderEpoch int32 0+
      SnapshotId SnapshotId 0+
        EndOffset int64 0+
        Epoch int32 0+
      Position int64 0+
      ReplicaDirectoryId uuid 1+ tag=0@1+ ignorable
"""
    STRUCTS = (FetchSnapshotRequestTopicSnapshot, FetchSnapshotRequestPartitionSnapshot, FetchSnapshotRequestSnapshotId)


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


class LeaderIdAndEpoch(Struct):
    __slots__ = ("leader_id", "leader_epoch")

    def __init__(
        self,
        *,
        leader_id: int = 0,
        leader_epoch: int = 0,
    ) -> None:
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.unknown_tags = None


class FetchSnapshotResponseSnapshotId(Struct):
    __slots__ = ("end_offset", "epoch")

    def __init__(
        self,
        *,
        end_offset: int = 0,
        epoch: int = 0,
    ) -> None:
        self.end_offset = end_offset
        self.epoch = epoch
        self.unknown_tags = None


class FetchSnapshotResponsePartitionSnapshot(Struct):
    __slots__ = ("index", "error_code", "snapshot_id", "current_leader", "size", "position", "unaligned_records")

    def __init__(
        self,
        *,
        index: int = 0,
        error_code: int = 0,
        snapshot_id: FetchSnapshotResponseSnapshotId = NEW,
        current_leader: LeaderIdAndEpoch | None = None,
        size: int = 0,
        position: int = 0,
        unaligned_records: Records = b"",
    ) -> None:
        self.index = index
        self.error_code = error_code
        self.snapshot_id = FetchSnapshotResponseSnapshotId() if snapshot_id is NEW else snapshot_id
        self.current_leader = current_leader
        self.size = size
        self.position = position
        self.unaligned_records = unaligned_records
        self.unknown_tags = None


class FetchSnapshotResponseTopicSnapshot(Struct):
    __slots__ = ("name", "partitions")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[FetchSnapshotResponsePartitionSnapshot] = EMPTY,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class FetchSnapshotResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "topics", "node_endpoints")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        topics: list[FetchSnapshotResponseTopicSnapshot] = EMPTY,
        node_endpoints: list[NodeEndpoint] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.topics = [] if topics is EMPTY else topics
        self.node_endpoints = [] if node_endpoints is EMPTY else node_endpoints
        self.unknown_tags = None

    KEY = 59
    SCHEMA = """\
FetchSnapshotResponse key=59 type=response versions=0-1 flexible=0+
  ThrottleTimeMs int32 0+ ignorable
  ErrorCode int16 0+
  Topics []TopicSnapshot 0+
    Name string 0+ entity=topicName
    Partitions []PartitionSnapshot 0+
      Index int32 0+
      ErrorCode int16 0+
      SnapshotId SnapshotId 0+
        EndOffset int64 0+
        Epoch int32 0+
      CurrentLeader LeaderIdAndEpoch 0+ tag=0@0+
        LeaderId int32 0+ entity=brokerId
        LeaderEpoch int32 0+
      Size int64 0+
      Position int64 0+
      UnalignedRecords records 0+
  NodeEndpoints []NodeEndpoint 1+ tag=0@1+
    NodeId int32 1+ key entity=brokerId
    Host string 1+
    Port uint16 1+
"""
    STRUCTS = (FetchSnapshotResponseTopicSnapshot, FetchSnapshotResponsePartitionSnapshot, FetchSnapshotResponseSnapshotId, LeaderIdAndEpoch, NodeEndpoint)
