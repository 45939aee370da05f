"""ProduceRequest, ProduceResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.ids import ZERO_UUID, Uuid
from ottla.wire.base import EMPTY, Message, Records, Struct


class PartitionProduceData(Struct):
    __slots__ = ("index", "records")

    def __init__(
        self,
        *,
        index: int = 0,
        records: Records | None = None,
    ) -> None:
        self.index = index
        self.records = records
        self.unknown_tags = None


class TopicProduceData(Struct):
    __slots__ = ("name", "topic_id", "partition_data")

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: Uuid = ZERO_UUID,
        partition_data: list[PartitionProduceData] = EMPTY,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partition_data = [] if partition_data is EMPTY else partition_data
        self.unknown_tags = None


class ProduceRequest(Message):
    __slots__ = ("transactional_id", "acks", "timeout_ms", "topic_data")

    def __init__(
        self,
        *,
        transactional_id: str | None = None,
        acks: int = 0,
        timeout_ms: int = 0,
        topic_data: list[TopicProduceData] = EMPTY,
    ) -> None:
        self.transactional_id = transactional_id
        self.acks = acks
        self.timeout_ms = timeout_ms
        self.topic_data = [] if topic_data is EMPTY else topic_data
        self.unknown_tags = None

    KEY = 0
    SCHEMA = """\
ProduceRequest key=0 type=request listeners=broker versions=3-13 flexible=9+
  TransactionalId string 3+ nullable=3+ default=null entity=transactionalId
  Acks int16 0+
  TimeoutMs int32 0+
  TopicData []TopicProduceData 0+
    Name string 0-12 key ignorable entity=topicName
    TopicId uuid 13+ key ignorable
    PartitionData []PartitionProduceData 0+
      Index int32 0+
      Records records 0+ nullable=0+
"""
    STRUCTS = (TopicProduceData, PartitionProduceData)


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
        leader_id: int = -1,
        leader_epoch: int = -1,
    ) -> None:
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.unknown_tags = None


class BatchIndexAndErrorMessage(Struct):
    __slots__ = ("batch_index", "batch_index_error_message")

    def __init__(
        self,
        *,
        batch_index: int = 0,
        batch_index_error_message: str | None = None,
    ) -> None:
        self.batch_index = batch_index
        self.batch_index_error_message = batch_index_error_message
        self.unknown_tags = None


class PartitionProduceResponse(Struct):
    __slots__ = ("index", "error_code", "base_offset", "log_append_time_ms", "log_start_offset", "record_errors", "error_message", "current_leader")

    def __init__(
        self,
        *,
        index: int = 0,
        error_code: int = 0,
        base_offset: int = 0,
        log_append_time_ms: int = -1,
        log_start_offset: int = -1,
        record_errors: list[BatchIndexAndErrorMessage] = EMPTY,
        error_message: str | None = None,
        current_leader: LeaderIdAndEpoch | None = None,
    ) -> None:
        self.index = index
        self.error_code = error_code
        self.base_offset = base_offset
        self.log_append_time_ms = log_append_time_ms
        self.log_start_offset = log_start_offset
        self.record_errors = [] if record_errors is EMPTY else record_errors
        self.error_message = error_message
        self.current_leader = current_leader
        self.unknown_tags = None


class TopicProduceResponse(Struct):
    __slots__ = ("name", "topic_id", "partition_responses")

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: Uuid = ZERO_UUID,
        partition_responses: list[PartitionProduceResponse] = EMPTY,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partition_responses = [] if partition_responses is EMPTY else partition_responses
        self.unknown_tags = None


class ProduceResponse(Message):
    __slots__ = ("responses", "throttle_time_ms", "node_endpoints")

    def __init__(
        self,
        *,
        responses: list[TopicProduceResponse] = EMPTY,
        throttle_time_ms: int = 0,
        node_endpoints: list[NodeEndpoint] = EMPTY,
    ) -> None:
        self.responses = [] if responses is EMPTY else responses
        self.throttle_time_ms = throttle_time_ms
        self.node_endpoints = [] if node_endpoints is EMPTY else node_endpoints
        self.unknown_tags = None

    KEY = 0
    SCHEMA = """\
ProduceResponse key=0 type=response versions=3-13 flexible=9+
  Responses []TopicProduceResponse 0+
    Name string 0-12 key ignorable entity=topicName
    TopicId uuid 13+ key ignorable
    PartitionResponses []PartitionProduceResponse 0+
      Index int32 0+
      ErrorCode int16 0+
      BaseOffset int64 0+
      LogAppendTimeMs int64 2+ default=-1 ignorable
      LogStartOffset int64 5+ default=-1 ignorable
      RecordErrors []BatchIndexAndErrorMessage 8+ ignorable
        BatchIndex int32 8+
        BatchIndexErrorMessage string 8+ nullable=8+ default=null
      ErrorMessage string 8+ nullable=8+ default=null ignorable
      CurrentLeader LeaderIdAndEpoch 10+ tag=0@10+
        LeaderId int32 10+ default=-1 entity=brokerId
        LeaderEpoch int32 10+ default=-1
  ThrottleTimeMs int32 1+ default=0 ignorable
  NodeEndpoints []NodeEndpoint 10+ tag=0@10+
    NodeId int32 10+ key entity=brokerId
    Host string 10+
    Port int32 10+
    Rack string 10+ nullable=10+ default=null
"""
    STRUCTS = (TopicProduceResponse, PartitionProduceResponse, BatchIndexAndErrorMessage, LeaderIdAndEpoch, NodeEndpoint)
