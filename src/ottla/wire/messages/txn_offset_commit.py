"""TxnOffsetCommitRequest, TxnOffsetCommitResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.wire.base import EMPTY, Message, Struct


class TxnOffsetCommitRequestPartition(Struct):
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


class TxnOffsetCommitRequestTopic(Struct):
    __slots__ = ("name", "partitions")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[TxnOffsetCommitRequestPartition] = EMPTY,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class TxnOffsetCommitRequest(Message):
    __slots__ = ("transactional_id", "group_id", "producer_id", "producer_epoch", "generation_id", "member_id", "group_instance_id", "topics")

    def __init__(
        self,
        *,
        transactional_id: str = "",
        group_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        generation_id: int = -1,
        member_id: str = "",
        group_instance_id: str | None = None,
        topics: list[TxnOffsetCommitRequestTopic] = EMPTY,
    ) -> None:
        self.transactional_id = transactional_id
        self.group_id = group_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.generation_id = generation_id
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tags = None

    KEY = 28
    SCHEMA = """\
TxnOffsetCommitRequest key=28 type=request listeners=broker versions=0-5 flexible=3+
  TransactionalId string 0+ entity=transactionalId
  GroupId string 0+ entity=groupId
  ProducerId int64 0+ entity=producerId
  ProducerEpoch int16 0+
  GenerationId int32 3+ default=-1
  MemberId string 3+ default=""
  GroupInstanceId string 3+ nullable=3+ default=null
  Topics []TxnOffsetCommitRequestTopic 0+
    Name string 0+ entity=topicName
    Partitions []TxnOffsetCommitRequestPartition 0+
      PartitionIndex int32 0+
      CommittedOffset int64 0+
      CommittedLeaderEpoch int32 2+ default=-1 ignorable
      CommittedMetadata string 0+ nullable=0+
"""
    STRUCTS = (TxnOffsetCommitRequestTopic, TxnOffsetCommitRequestPartition)


class TxnOffsetCommitResponsePartition(Struct):
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


class TxnOffsetCommitResponseTopic(Struct):
    __slots__ = ("name", "partitions")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[TxnOffsetCommitResponsePartition] = EMPTY,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class TxnOffsetCommitResponse(Message):
    __slots__ = ("throttle_time_ms", "topics")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[TxnOffsetCommitResponseTopic] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tags = None

    KEY = 28
    SCHEMA = """\
TxnOffsetCommitResponse key=28 type=response versions=0-5 flexible=3+
  ThrottleTimeMs int32 0+
  Topics []TxnOffsetCommitResponseTopic 0+
    Name string 0+ entity=topicName
    Partitions []TxnOffsetCommitResponsePartition 0+
      PartitionIndex int32 0+
      ErrorCode int16 0+
"""
    STRUCTS = (TxnOffsetCommitResponseTopic, TxnOffsetCommitResponsePartition)
