"""DescribeLogDirsRequest, DescribeLogDirsResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.wire.base import EMPTY, Message, Struct


class DescribableLogDirTopic(Struct):
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


class DescribeLogDirsRequest(Message):
    __slots__ = ("topics",)

    def __init__(
        self,
        *,
        topics: list[DescribableLogDirTopic] | None = EMPTY,
    ) -> None:
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tags = None

    KEY = 35
    SCHEMA = """\
DescribeLogDirsRequest key=35 type=request listeners=broker versions=1-5 flexible=2+
  Topics []DescribableLogDirTopic 0+ nullable=0+
    Topic string 0+ key entity=topicName
    Partitions []int32 0+
"""
    STRUCTS = (DescribableLogDirTopic,)


class DescribeLogDirsPartition(Struct):
    __slots__ = ("partition_index", "partition_size", "offset_lag", "is_future_key")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        partition_size: int = 0,
        offset_lag: int = 0,
        is_future_key: bool = False,
    ) -> None:
        self.partition_index = partition_index
        self.partition_size = partition_size
        self.offset_lag = offset_lag
        self.is_future_key = is_future_key
        self.unknown_tags = None


class DescribeLogDirsTopic(Struct):
    __slots__ = ("name", "partitions")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[DescribeLogDirsPartition] = EMPTY,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class DescribeLogDirsResult(Struct):
    __slots__ = ("error_code", "log_dir", "topics", "total_bytes", "usable_bytes", "is_cordoned")

    def __init__(
        self,
        *,
        error_code: int = 0,
        log_dir: str = "",
        topics: list[DescribeLogDirsTopic] = EMPTY,
        total_bytes: int = -1,
        usable_bytes: int = -1,
        is_cordoned: bool = False,
    ) -> None:
        self.error_code = error_code
        self.log_dir = log_dir
        self.topics = [] if topics is EMPTY else topics
        self.total_bytes = total_bytes
        self.usable_bytes = usable_bytes
        self.is_cordoned = is_cordoned
        self.unknown_tags = None


class DescribeLogDirsResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "results")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        results: list[DescribeLogDirsResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.results = [] if results is EMPTY else results
        self.unknown_tags = None

    KEY = 35
    SCHEMA = """\
DescribeLogDirsResponse key=35 type=response versions=1-5 flexible=2+
  ThrottleTimeMs int32 0+
  ErrorCode int16 3+ ignorable
  Results []DescribeLogDirsResult 0+
    ErrorCode int16 0+
    LogDir string 0+
    Topics []DescribeLogDirsTopic 0+
      Name string 0+ entity=topicName
      Partitions []DescribeLogDirsPartition 0+
        PartitionIndex int32 0+
        PartitionSize int64 0+
        OffsetLag int64 0+
        IsFutureKey bool 0+
    TotalBytes int64 4+ default=-1 ignorable
    UsableBytes int64 4+ default=-1 ignorable
    IsCordoned bool 5+ default=false ignorable
"""
    STRUCTS = (DescribeLogDirsResult, DescribeLogDirsTopic, DescribeLogDirsPartition)
