"""OffsetFetchRequest, OffsetFetchResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.ids import ZERO_UUID, Uuid
from ottla.wire.base import EMPTY, Message, Struct


class OffsetFetchRequestTopics(Struct):
    __slots__ = ("name", "topic_id", "partition_indexes")

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: Uuid = ZERO_UUID,
        partition_indexes: list[int] = EMPTY,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partition_indexes = [] if partition_indexes is EMPTY else partition_indexes
        self.unknown_tags = None


class OffsetFetchRequestGroup(Struct):
    __slots__ = ("group_id", "member_id", "member_epoch", "topics")

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str | None = None,
        member_epoch: int = -1,
        topics: list[OffsetFetchRequestTopics] | None = EMPTY,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tags = None


class OffsetFetchRequestTopic(Struct):
    __slots__ = ("name", "partition_indexes")

    def __init__(
        self,
        *,
        name: str = "",
        partition_indexes: list[int] = EMPTY,
    ) -> None:
        self.name = name
        self.partition_indexes = [] if partition_indexes is EMPTY else partition_indexes
        self.unknown_tags = None


class OffsetFetchRequest(Message):
    __slots__ = ("group_id", "topics", "groups", "require_stable")

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[OffsetFetchRequestTopic] | None = EMPTY,
        groups: list[OffsetFetchRequestGroup] = EMPTY,
        require_stable: bool = False,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is EMPTY else topics
        self.groups = [] if groups is EMPTY else groups
        self.require_stable = require_stable
        self.unknown_tags = None

    KEY = 9
    SCHEMA = """\
OffsetFetchRequest key=9 type=request listeners=broker versions=1-10 flexible=6+
  GroupId string 0-7 entity=groupId
  Topics []OffsetFetchRequestTopic 0-7 nullable=2-7
    Name string 0-7 entity=topicName
    PartitionIndexes []int32 0-7
  Groups []OffsetFetchRequestGroup 8+
    GroupId string 8+ entity=groupId
    MemberId string 9+ nullable=9+ default=null ignorable
    MemberEpoch int32 9+ default=-1 ignorable
    Topics []OffsetFetchRequestTopics 8+ nullable=8+
      Name string 8-9 ignorable entity=topicName
      TopicId uuid 10+ ignorable
      PartitionIndexes []int32 8+
  RequireStable bool 7+ default=false
"""
    STRUCTS = (OffsetFetchRequestTopic, OffsetFetchRequestGroup, OffsetFetchRequestTopics)


class OffsetFetchResponsePartitions(Struct):
    __slots__ = ("partition_index", "committed_offset", "committed_leader_epoch", "metadata", "error_code")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,
        metadata: str | None = "",
        error_code: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.committed_offset = committed_offset
        self.committed_leader_epoch = committed_leader_epoch
        self.metadata = metadata
        self.error_code = error_code
        self.unknown_tags = None


class OffsetFetchResponseTopics(Struct):
    __slots__ = ("name", "topic_id", "partitions")

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: Uuid = ZERO_UUID,
        partitions: list[OffsetFetchResponsePartitions] = EMPTY,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class OffsetFetchResponseGroup(Struct):
    __slots__ = ("group_id", "topics", "error_code")

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[OffsetFetchResponseTopics] = EMPTY,
        error_code: int = 0,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is EMPTY else topics
        self.error_code = error_code
        self.unknown_tags = None


class OffsetFetchResponsePartition(Struct):
    __slots__ = ("partition_index", "committed_offset", "committed_leader_epoch", "metadata", "error_code")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,
        metadata: str | None = "",
        error_code: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.committed_offset = committed_offset
        self.committed_leader_epoch = committed_leader_epoch
        self.metadata = metadata
        self.error_code = error_code
        self.unknown_tags = None


class OffsetFetchResponseTopic(Struct):
    __slots__ = ("name", "partitions")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[OffsetFetchResponsePartition] = EMPTY,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class OffsetFetchResponse(Message):
    __slots__ = ("throttle_time_ms", "topics", "error_code", "groups")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[OffsetFetchResponseTopic] = EMPTY,
        error_code: int = 0,
        groups: list[OffsetFetchResponseGroup] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is EMPTY else topics
        self.error_code = error_code
        self.groups = [] if groups is EMPTY else groups
        self.unknown_tags = None

    KEY = 9
    SCHEMA = """\
OffsetFetchResponse key=9 type=response versions=1-10 flexible=6+
  ThrottleTimeMs int32 3+ ignorable
  Topics []OffsetFetchResponseTopic 0-7
    Name string 0-7 entity=topicName
    Partitions []OffsetFetchResponsePartition 0-7
      PartitionIndex int32 0-7
      CommittedOffset int64 0-7
      CommittedLeaderEpoch int32 5-7 default=-1 ignorable
      Metadata string 0-7 nullable=0-7
      ErrorCode int16 0-7
  ErrorCode int16 2-7 default=0 ignorable
  Groups []OffsetFetchResponseGroup 8+
    GroupId string 8+ entity=groupId
    Topics []OffsetFetchResponseTopics 8+
      Name string 8-9 ignorable entity=topicName
      TopicId uuid 10+ ignorable
      Partitions []OffsetFetchResponsePartitions 8+
        PartitionIndex int32 8+
        CommittedOffset int64 8+
        CommittedLeaderEpoch int32 8+ default=-1 ignorable
        Metadata string 8+ nullable=8+
        ErrorCode int16 8+
    ErrorCode int16 8+ default=0
"""
    STRUCTS = (OffsetFetchResponseTopic, OffsetFetchResponsePartition, OffsetFetchResponseGroup, OffsetFetchResponseTopics, OffsetFetchResponsePartitions)
