"""AssignReplicasToDirsRequest, AssignReplicasToDirsResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.ids import ZERO_UUID, Uuid
from ottla.wire.base import EMPTY, Message, Struct


class AssignReplicasToDirsRequestPartitionData(Struct):
    __slots__ = ("partition_index",)

    def __init__(
        self,
        *,
        partition_index: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.unknown_tags = None


class AssignReplicasToDirsRequestTopicData(Struct):
    __slots__ = ("topic_id", "partitions")

    def __init__(
        self,
        *,
        topic_id: Uuid = ZERO_UUID,
        partitions: list[AssignReplicasToDirsRequestPartitionData] = EMPTY,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class AssignReplicasToDirsRequestDirectoryData(Struct):
    __slots__ = ("id", "topics")

    def __init__(
        self,
        *,
        id: Uuid = ZERO_UUID,
        topics: list[AssignReplicasToDirsRequestTopicData] = EMPTY,
    ) -> None:
        self.id = id
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tags = None


class AssignReplicasToDirsRequest(Message):
    __slots__ = ("broker_id", "broker_epoch", "directories")

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = -1,
        directories: list[AssignReplicasToDirsRequestDirectoryData] = EMPTY,
    ) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self.directories = [] if directories is EMPTY else directories
        self.unknown_tags = None

    KEY = 73
    SCHEMA = """\
AssignReplicasToDirsRequest key=73 type=request listeners=controller versions=0 flexible=0+
  BrokerId int32 0+ entity=brokerId
  BrokerEpoch int64 0+ default=-1
  Directories []DirectoryData 0+
    Id uuid 0+
    Topics []TopicData 0+
      TopicId uuid 0+
      Partitions []PartitionData 0+
        PartitionIndex int32 0+
"""
    STRUCTS = (AssignReplicasToDirsRequestDirectoryData, AssignReplicasToDirsRequestTopicData, AssignReplicasToDirsRequestPartitionData)


class AssignReplicasToDirsResponsePartitionData(Struct):
    __slots__ = ("partition_index", "error_code")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.unknown_tags = None


class AssignReplicasToDirsResponseTopicData(Struct):
    __slots__ = ("topic_id", "partitions")

    def __init__(
        self,
        *,
        topic_id: Uuid = ZERO_UUID,
        partitions: list[AssignReplicasToDirsResponsePartitionData] = EMPTY,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class AssignReplicasToDirsResponseDirectoryData(Struct):
    __slots__ = ("id", "topics")

    def __init__(
        self,
        *,
        id: Uuid = ZERO_UUID,
        topics: list[AssignReplicasToDirsResponseTopicData] = EMPTY,
    ) -> None:
        self.id = id
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tags = None


class AssignReplicasToDirsResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "directories")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        directories: list[AssignReplicasToDirsResponseDirectoryData] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.directories = [] if directories is EMPTY else directories
        self.unknown_tags = None

    KEY = 73
    SCHEMA = """\
AssignReplicasToDirsResponse key=73 type=response versions=0 flexible=0+
  ThrottleTimeMs int32 0+
  ErrorCode int16 0+
  Directories []DirectoryData 0+
    Id uuid 0+
    Topics []TopicData 0+
      TopicId uuid 0+
      Partitions []PartitionData 0+
        PartitionIndex int32 0+
        ErrorCode int16 0+
"""
    STRUCTS = (AssignReplicasToDirsResponseDirectoryData, AssignReplicasToDirsResponseTopicData, AssignReplicasToDirsResponsePartitionData)
