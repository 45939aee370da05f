"""OffsetCommitRequest, OffsetCommitResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.ids import ZERO_UUID, Uuid
from ottla.wire.base import EMPTY, Message, Struct


class OffsetCommitRequestPartition(Struct):
    __slots__ = ("partition_index", "committed_offset", "committed_leader_epoch", "committed_metadata")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,
        committed_metadata: str | None = "",
    ) -> None:
        self.partition_index = partition_index
        self.committed_offset = committed_offset
        self.committed_leader_epoch = committed_leader_epoch
        self.committed_metadata = committed_metadata
        self.unknown_tags = None


class OffsetCommitRequestTopic(Struct):
    __slots__ = ("name", "topic_id", "partitions")

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: Uuid = ZERO_UUID,
        partitions: list[OffsetCommitRequestPartition] = EMPTY,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class OffsetCommitRequest(Message):
    __slots__ = ("group_id", "generation_id_or_member_epoch", "member_id", "group_instance_id", "retention_time_ms", "topics")

    def __init__(
        self,
        *,
        group_id: str = "",
        generation_id_or_member_epoch: int = -1,
        member_id: str = "",
        group_instance_id: str | None = None,
        retention_time_ms: int = -1,
        topics: list[OffsetCommitRequestTopic] = EMPTY,
    ) -> None:
        self.group_id = group_id
        self.generation_id_or_member_epoch = generation_id_or_member_epoch
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.retention_time_ms = retention_time_ms
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tags = None

    KEY = 8
    SCHEMA = """\
OffsetCommitRequest key=8 type=request listeners=broker versions=2-10 flexible=8+
  GroupId string 0+ entity=groupId
  GenerationIdOrMemberEpoch int32 1+ default=-1 ignorable
  MemberId string 1+ ignorable
  GroupInstanceId string 7+ nullable=7+ default=null
  RetentionTimeMs int64 2-4 default=-1 ignorable
  Topics []OffsetCommitRequestTopic 0+
    Name string 0-9 ignorable entity=topicName
    TopicId uuid 10+ ignorable
    Partitions []OffsetCommitRequestPartition 0+
      PartitionIndex int32 0+
      CommittedOffset int64 0+
      CommittedLeaderEpoch int32 6+ default=-1 ignorable
      CommittedMetadata string 0+ nullable=0+
"""
    STRUCTS = (OffsetCommitRequestTopic, OffsetCommitRequestPartition)


class OffsetCommitResponsePartition(Struct):
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


class OffsetCommitResponseTopic(Struct):
    __slots__ = ("name", "topic_id", "partitions")

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: Uuid = ZERO_UUID,
        partitions: list[OffsetCommitResponsePartition] = EMPTY,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class OffsetCommitResponse(Message):
    __slots__ = ("throttle_time_ms", "topics")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[OffsetCommitResponseTopic] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tags = None

    KEY = 8
    SCHEMA = """\
OffsetCommitResponse key=8 type=response versions=2-10 flexible=8+
  ThrottleTimeMs int32 3+ ignorable
  Topics []OffsetCommitResponseTopic 0+
    Name string 0-9 ignorable entity=topicName
    TopicId uuid 10+ ignorable
    Partitions []OffsetCommitResponsePartition 0+
      PartitionIndex int32 0+
      ErrorCode int16 0+
"""
    STRUCTS = (OffsetCommitResponseTopic, OffsetCommitResponsePartition)
