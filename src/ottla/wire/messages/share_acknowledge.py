"""ShareAcknowledgeRequest, ShareAcknowledgeResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.ids import ZERO_UUID, Uuid
from ottla.wire.base import EMPTY, NEW, Message, Struct


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


class AcknowledgePartition(Struct):
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


class AcknowledgeTopic(Struct):
    __slots__ = ("topic_id", "partitions")

    def __init__(
        self,
        *,
        topic_id: Uuid = ZERO_UUID,
        partitions: list[AcknowledgePartition] = EMPTY,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class ShareAcknowledgeRequest(Message):
    __slots__ = ("group_id", "member_id", "share_session_epoch", "is_renew_ack", "topics")

    def __init__(
        self,
        *,
        group_id: str | None = None,
        member_id: str | None = "",
        share_session_epoch: int = 0,
        is_renew_ack: bool = False,
        topics: list[AcknowledgeTopic] = EMPTY,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.share_session_epoch = share_session_epoch
        self.is_renew_ack = is_renew_ack
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tags = None

    KEY = 79
    SCHEMA = """\
ShareAcknowledgeRequest key=79 type=request listeners=broker versions=1-2 flexible=0+
  GroupId string 0+ nullable=0+ default=null entity=groupId
  MemberId string 0+ nullable=0+
  ShareSessionEpoch int32 0+
  IsRenewAck bool 2+ default=false
  Topics []AcknowledgeTopic 0+
    TopicId uuid 0+ key
    Partitions []AcknowledgePartition 0+
      PartitionIndex int32 0+ key
      AcknowledgementBatches []AcknowledgementBatch 0+
        FirstOffset int64 0+
        LastOffset int64 0+
        AcknowledgeTypes []int8 0+
"""
    STRUCTS = (AcknowledgeTopic, AcknowledgePartition, AcknowledgementBatch)


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
    __slots__ = ("partition_index", "error_code", "error_message", "current_leader")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        current_leader: LeaderIdAndEpoch = NEW,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message
        self.current_leader = LeaderIdAndEpoch() if current_leader is NEW else current_leader
        self.unknown_tags = None


class ShareAcknowledgeTopicResponse(Struct):
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


class ShareAcknowledgeResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "acquisition_lock_timeout_ms", "responses", "node_endpoints")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        acquisition_lock_timeout_ms: int = 0,
        responses: list[ShareAcknowledgeTopicResponse] = EMPTY,
        node_endpoints: list[NodeEndpoint] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.acquisition_lock_timeout_ms = acquisition_lock_timeout_ms
        self.responses = [] if responses is EMPTY else responses
        self.node_endpoints = [] if node_endpoints is EMPTY else node_endpoints
        self.unknown_tags = None

    KEY = 79
    SCHEMA = """\
ShareAcknowledgeResponse key=79 type=response versions=1-2 flexible=0+
  ThrottleTimeMs int32 0+
  ErrorCode int16 0+
  ErrorMessage string 0+ nullable=0+ default=null
  AcquisitionLockTimeoutMs int32 2+ ignorable
  Responses []ShareAcknowledgeTopicResponse 0+
    TopicId uuid 0+ key
    Partitions []PartitionData 0+
      PartitionIndex int32 0+
      ErrorCode int16 0+
      ErrorMessage string 0+ nullable=0+ default=null
      CurrentLeader LeaderIdAndEpoch 0+
        LeaderId int32 0+
        LeaderEpoch int32 0+
  NodeEndpoints []NodeEndpoint 0+
    NodeId int32 0+ key entity=brokerId
    Host string 0+
    Port int32 0+
    Rack string 0+ nullable=0+ default=null
"""
    STRUCTS = (ShareAcknowledgeTopicResponse, PartitionData, LeaderIdAndEpoch, NodeEndpoint)
