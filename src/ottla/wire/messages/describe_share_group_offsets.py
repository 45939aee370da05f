"""DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.ids import ZERO_UUID, Uuid
from ottla.wire.base import EMPTY, Message, Struct


class DescribeShareGroupOffsetsRequestTopic(Struct):
    __slots__ = ("topic_name", "partitions")

    def __init__(
        self,
        *,
        topic_name: str = "",
        partitions: list[int] = EMPTY,
    ) -> None:
        self.topic_name = topic_name
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class DescribeShareGroupOffsetsRequestGroup(Struct):
    __slots__ = ("group_id", "topics")

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[DescribeShareGroupOffsetsRequestTopic] | None = EMPTY,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tags = None


class DescribeShareGroupOffsetsRequest(Message):
    __slots__ = ("groups",)

    def __init__(
        self,
        *,
        groups: list[DescribeShareGroupOffsetsRequestGroup] = EMPTY,
    ) -> None:
        self.groups = [] if groups is EMPTY else groups
        self.unknown_tags = None

    KEY = 90
    SCHEMA = """\
DescribeShareGroupOffsetsRequest key=90 type=request listeners=broker versions=0-1 flexible=0+
  Groups []DescribeShareGroupOffsetsRequestGroup 0+
    GroupId string 0+ entity=groupId
    Topics []DescribeShareGroupOffsetsRequestTopic 0+ nullable=0+
      TopicName string 0+ entity=topicName
      Partitions []int32 0+
"""
    STRUCTS = (DescribeShareGroupOffsetsRequestGroup, DescribeShareGroupOffsetsRequestTopic)


class DescribeShareGroupOffsetsResponsePartition(Struct):
    __slots__ = ("partition_index", "start_offset", "leader_epoch", "lag", "error_code", "error_message")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        start_offset: int = 0,
        leader_epoch: int = 0,
        lag: int = -1,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.partition_index = partition_index
        self.start_offset = start_offset
        self.leader_epoch = leader_epoch
        self.lag = lag
        self.error_code = error_code
        self.error_message = error_message
        self.unknown_tags = None


class DescribeShareGroupOffsetsResponseTopic(Struct):
    __slots__ = ("topic_name", "topic_id", "partitions")

    def __init__(
        self,
        *,
        topic_name: str = "",
        topic_id: Uuid = ZERO_UUID,
        partitions: list[DescribeShareGroupOffsetsResponsePartition] = EMPTY,
    ) -> None:
        self.topic_name = topic_name
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class DescribeShareGroupOffsetsResponseGroup(Struct):
    __slots__ = ("group_id", "topics", "error_code", "error_message")

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[DescribeShareGroupOffsetsResponseTopic] = EMPTY,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is EMPTY else topics
        self.error_code = error_code
        self.error_message = error_message
        self.unknown_tags = None


class DescribeShareGroupOffsetsResponse(Message):
    __slots__ = ("throttle_time_ms", "groups")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        groups: list[DescribeShareGroupOffsetsResponseGroup] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.groups = [] if groups is EMPTY else groups
        self.unknown_tags = None

    KEY = 90
    SCHEMA = """\
DescribeShareGroupOffsetsResponse key=90 type=response versions=0-1 flexible=0+
  ThrottleTimeMs int32 0+
  Groups []DescribeShareGroupOffsetsResponseGroup 0+
    GroupId string 0+ entity=groupId
    Topics []DescribeShareGroupOffsetsResponseTopic 0+
      TopicName string 0+ entity=topicName
      TopicId uuid 0+
      Partitions []DescribeShareGroupOffsetsResponsePartition 0+
        PartitionIndex int32 0+
        StartOffset int64 0+
        LeaderEpoch int32 0+
        Lag int64 1+ default=-1 ignorable
        ErrorCode int16 0+
        ErrorMessage string 0+ nullable=0+ default=null
    ErrorCode int16 0+
    ErrorMessage string 0+ nullable=0+ default=null
"""
    STRUCTS = (DescribeShareGroupOffsetsResponseGroup, DescribeShareGroupOffsetsResponseTopic, DescribeShareGroupOffsetsResponsePartition)
