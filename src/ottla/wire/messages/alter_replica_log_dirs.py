"""AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.wire.base import EMPTY, Message, Struct


class AlterReplicaLogDirTopic(Struct):
    __slots__ = ("name", "partitions")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[int] = EMPTY,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class AlterReplicaLogDir(Struct):
    __slots__ = ("path", "topics")

    def __init__(
        self,
        *,
        path: str = "",
        topics: list[AlterReplicaLogDirTopic] = EMPTY,
    ) -> None:
        self.path = path
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tags = None


class AlterReplicaLogDirsRequest(Message):
    __slots__ = ("dirs",)

    def __init__(
        self,
        *,
        dirs: list[AlterReplicaLogDir] = EMPTY,
    ) -> None:
        self.dirs = [] if dirs is EMPTY else dirs
        self.unknown_tags = None

    KEY = 34
    SCHEMA = """\
AlterReplicaLogDirsRequest key=34 type=request listeners=broker versions=1-2 flexible=2+
  Dirs []AlterReplicaLogDir 0+
    Path string 0+ key
    Topics []AlterReplicaLogDirTopic 0+
      Name string 0+ key entity=topicName
      Partitions []int32 0+
"""
    STRUCTS = (AlterReplicaLogDir, AlterReplicaLogDirTopic)


class AlterReplicaLogDirPartitionResult(Struct):
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


class AlterReplicaLogDirTopicResult(Struct):
    __slots__ = ("topic_name", "partitions")

    def __init__(
        self,
        *,
        topic_name: str = "",
        partitions: list[AlterReplicaLogDirPartitionResult] = EMPTY,
    ) -> None:
        self.topic_name = topic_name
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class AlterReplicaLogDirsResponse(Message):
    __slots__ = ("throttle_time_ms", "results")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[AlterReplicaLogDirTopicResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is EMPTY else results
        self.unknown_tags = None

    KEY = 34
    SCHEMA = """\
AlterReplicaLogDirsResponse key=34 type=response versions=1-2 flexible=2+
  ThrottleTimeMs int32 0+
  Results []AlterReplicaLogDirTopicResult 0+
    TopicName string 0+ entity=topicName
    Partitions []AlterReplicaLogDirPartitionResult 0+
      PartitionIndex int32 0+
      ErrorCode int16 0+
"""
    STRUCTS = (AlterReplicaLogDirTopicResult, AlterReplicaLogDirPartitionResult)
