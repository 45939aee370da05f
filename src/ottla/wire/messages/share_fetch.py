"""ShareFetchRequest, ShareFetchResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.ids import ZERO_UUID, Uuid
from ottla.wire.base import EMPTY, NEW, Message, Records, Struct


class ForgottenTopic(Struct):
    __slots__ = ("topic_id", "partitions")

    def __init__(
        self,
        *,
        topic_id: Uuid = ZERO_UUID,
        partitions: list[int] = EMPTY,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class AcknowledgementBatch(Struct):
    __slots__ = ("first_offset", "last_offset", "acknowledge_types")

    def __init__(
        self,
        *,
        first_offset: int = 0,
        last_offset: int = 0,
        acknowledge_types: list[int] = EMPTY,
    ) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.acknowledge_types = [] if acknowledge_types is EMPTY else acknowledge_types
        self.unknown_tags = None


class FetchPartition(Struct):
    __slots__ = ("partition_index", "acknowledgement_batches")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        acknowledgement_batches: list[AcknowledgementBatch] = EMPTY,
    ) -> None:
        self.partition_index = partition_index
        self.acknowledgement_batches = [] if acknowledgement_batches is EMPTY else acknowledgement_batches
        self.unknown_tags = None


class FetchTopic(Struct):
    __slots__ = ("topic_id", "partitions")

    def __init__(
        self,
        *,
        topic_id: Uuid = ZERO_UUID,
        partitions: list[FetchPartition] = EMPTY,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class ShareFetchRequest(Message):
    __slots__ = ("group_id", "member_id", "share_session_epoch", "max_wait_ms", "min_bytes", "max_bytes", "max_records", "batch_size", "share_acquire_mode", "is_renew_ack", "topics", "forgotten_topics_data")

    def __init__(
        self,
        *,
        group_id: str | None = None,
        member_id: str | None = "",
        share_session_epoch: int = 0,
        max_wait_ms: int = 0,
        min_bytes: int = 0,
        max_bytes: int = 2147483647,
        max_records: int = 0,
        batch_size: int = 0,
        share_acquire_mode: int = 0,
        is_renew_ack: bool = False,
        topics: list[FetchTopic] = EMPTY,
        forgotten_topics_data: list[ForgottenTopic] = EMPTY,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.share_session_epoch = share_session_epoch
        self.max_wait_ms = max_wait_ms
        self.min_bytes = min_bytes
        self.max_bytes = max_bytes
        self.max_records = max_records
        self.batch_size = batch_size
        self.share_acquire_mode = share_acquire_mode
        self.is_renew_ack = is_renew_ack
        self.topics = [] if topics is EMPTY else topics
        self.forgotten_topics_data = [] if forgotten_topics_data is EMPTY else forgotten_topics_data
        self.unknown_tags = None

    KEY = 78
    SCHEMA = """\
ShareFetchRequest key=78 type=request listeners=broker versions=1-2 flexible=0+
  GroupId string 0+ nullable=0+ default=null entity=groupId
  MemberId string 0+ nullable=0+
  ShareSessionEpoch int32 0+
  MaxWaitMs int32 0+
  MinBytes int32 0+
  MaxBytes int32 0+ default=0x7fffffff
  MaxRecords int32 1+
  BatchSize int32 1+
  ShareAcquireMode int8 2+ default=0 ignorable
  IsRenewAck bool 2+ default=false
  Topics []FetchTopic 0+
    TopicId uuid 0+ key
    Partitions []FetchPartition 0+
      PartitionIndex int32 0+ key
      PartitionMaxBytes int32 0
      AcknowledgementBatches []AcknowledgementBatch 0+
        FirstOffset int64 0+
        LastOffset int64 0+
        AcknowledgeTypes []int8 0+
  ForgottenTopicsData []ForgottenTopic 0+
    TopicId uuid 0+
    Partitions []int32 0+
"""
    STRUCTS = (FetchTopic, FetchPartition, AcknowledgementBatch, ForgottenTopic)


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


class AcquiredRecords(Struct):
    __slots__ = ("first_offset", "last_offset", "delivery_count")

    def __init__(
        self,
        *,
        first_offset: int = 0,
        last_offset: int = 0,
        delivery_count: int = 0,
    ) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.delivery_count = delivery_count
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


class PartitionData(Struct):
    __slots__ = ("partition_index", "error_code", "error_message", "acknowledge_error_code", "acknowledge_error_message", "current_leader", "records", "acquired_records")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        acknowledge_error_code: int = 0,
        acknowledge_error_message: str | None = None,
        current_leader: LeaderIdAndEpoch = NEW,
        records: Records = b"",
        acquired_records: list[AcquiredRecords] = EMPTY,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message
        self.acknowledge_error_code = acknowledge_error_code
        self.acknowledge_error_message = acknowledge_error_message
        self.current_leader = LeaderIdAndEpoch() if current_leader is NEW else current_leader
        self.records = records
        self.acquired_records = [] if acquired_records is EMPTY else acquired_records
        self.unknown_tags = None


class ShareFetchableTopicResponse(Struct):
    __slots__ = ("topic_id", "partitions")

    def __init__(
        self,
        *,
        topic_id: Uuid = ZERO_UUID,
        partitions: list[PartitionData] = EMPTY,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class ShareFetchResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "acquisition_lock_timeout_ms", "responses", "node_endpoints")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        acquisition_lock_timeout_ms: int = 0,
        responses: list[ShareFetchableTopicResponse] = EMPTY,
        node_endpoints: list[NodeEndpoint] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.acquisition_lock_timeout_ms = acquisition_lock_timeout_ms
        self.responses = [] if responses is EMPTY else responses
        self.node_endpoints = [] if node_endpoints is EMPTY else node_endpoints
        self.unknown_tags = None

    KEY = 78
    SCHEMA = """\
ShareFetchResponse key=78 type=response versions=1-2 flexible=0+
  ThrottleTimeMs int32 0+
  ErrorCode int16 0+
  ErrorMessage string 0+ nullable=0+ default=null
  AcquisitionLockTimeoutMs int32 1+
  Responses []ShareFetchableTopicResponse 0+
    TopicId uuid 0+ key
    Partitions []PartitionData 0+
      PartitionIndex int32 0+
      ErrorCode int16 0+
      ErrorMessage string 0+ nullable=0+ default=null
      AcknowledgeErrorCode int16 0+
      AcknowledgeErrorMessage string 0+ nullable=0+ default=null
      CurrentLeader LeaderIdAndEpoch 0+
        LeaderId int32 0+
        LeaderEpoch int32 0+
      Records records 0+ nullable=0
      AcquiredRecords []AcquiredRecords 0+
        FirstOffset int64 0+
        LastOffset int64 0+
        DeliveryCount int16 0+
  NodeEndpoints []NodeEndpoint 0+
    NodeId int32 0+ key entity=brokerId
    Host string 0+
    Port int32 0+
    Rack string 0+ nullable=0+ default=null
"""
    STRUCTS = (ShareFetchableTopicResponse, PartitionData, LeaderIdAndEpoch, AcquiredRecords, NodeEndpoint)
