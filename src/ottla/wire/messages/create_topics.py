"""CreateTopicsRequest, CreateTopicsResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.ids import ZERO_UUID, Uuid
from ottla.wire.base import EMPTY, Message, Struct


class CreatableTopicConfig(Struct):
    __slots__ = ("name", "value")

    def __init__(
        self,
        *,
        name: str = "",
        value: str | None = "",
    ) -> None:
        self.name = name
        self.value = value
        self.unknown_tags = None


class CreatableReplicaAssignment(Struct):
    __slots__ = ("partition_index", "broker_ids")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        broker_ids: list[int] = EMPTY,
    ) -> None:
        self.partition_index = partition_index
        self.broker_ids = [] if broker_ids is EMPTY else broker_ids
        self.unknown_tags = None


class CreatableTopic(Struct):
    __slots__ = ("name", "num_partitions", "replication_factor", "assignments", "configs")

    def __init__(
        self,
        *,
        name: str = "",
        num_partitions: int = 0,
        replication_factor: int = 0,
        assignments: list[CreatableReplicaAssignment] = EMPTY,
        configs: list[CreatableTopicConfig] = EMPTY,
    ) -> None:
        self.name = name
        self.num_partitions = num_partitions
        self.replication_factor = replication_factor
        self.assignments = [] if assignments is EMPTY else assignments
        self.configs = [] if configs is EMPTY else configs
        self.unknown_tags = None


class CreateTopicsRequest(Message):
    __slots__ = ("topics", "timeout_ms", "validate_only")

    def __init__(
        self,
        *,
        topics: list[CreatableTopic] = EMPTY,
        timeout_ms: int = 60000,
        validate_only: bool = False,
    ) -> None:
        self.topics = [] if topics is EMPTY else topics
        self.timeout_ms = timeout_ms
        self.validate_only = validate_only
        self.unknown_tags = None

    KEY = 19
    SCHEMA = """\
CreateTopicsRequest key=19 type=request listeners=broker,controller versions=2-7 flexible=5+
  Topics []CreatableTopic 0+
    Name string 0+ key entity=topicName
    NumPartitions int32 0+
    ReplicationFactor int16 0+
    Assignments []CreatableReplicaAssignment 0+
      PartitionIndex int32 0+ key
      BrokerIds []int32 0+ entity=brokerId
    Configs []CreatableTopicConfig 0+
      Name string 0+ key
      Value string 0+ nullable=0+
  timeoutMs int32 0+ default=60000
  validateOnly bool 1+ default=false
"""
    STRUCTS = (CreatableTopic, CreatableReplicaAssignment, CreatableTopicConfig)


class CreatableTopicConfigs(Struct):
    __slots__ = ("name", "value", "read_only", "config_source", "is_sensitive")

    def __init__(
        self,
        *,
        name: str = "",
        value: str | None = "",
        read_only: bool = False,
        config_source: int = -1,
        is_sensitive: bool = False,
    ) -> None:
        self.name = name
        self.value = value
        self.read_only = read_only
        self.config_source = config_source
        self.is_sensitive = is_sensitive
        self.unknown_tags = None


class CreatableTopicResult(Struct):
    __slots__ = ("name", "topic_id", "error_code", "error_message", "topic_config_error_code", "num_partitions", "replication_factor", "configs")

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: Uuid = ZERO_UUID,
        error_code: int = 0,
        error_message: str | None = "",
        topic_config_error_code: int = 0,
        num_partitions: int = -1,
        replication_factor: int = -1,
        configs: list[CreatableTopicConfigs] | None = EMPTY,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.error_code = error_code
        self.error_message = error_message
        self.topic_config_error_code = topic_config_error_code
        self.num_partitions = num_partitions
        self.replication_factor = replication_factor
        self.configs = [] if configs is EMPTY else configs
        self.unknown_tags = None


class CreateTopicsResponse(Message):
    __slots__ = ("throttle_time_ms", "topics")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[CreatableTopicResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tags = None

    KEY = 19
    SCHEMA = """\
CreateTopicsResponse key=19 type=response versions=2-7 flexible=5+
  ThrottleTimeMs int32 2+ ignorable
  Topics []CreatableTopicResult 0+
    Name string 0+ key entity=topicName
    TopicId uuid 7+ ignorable
    ErrorCode int16 0+
    ErrorMessage string 1+ nullable=0+ ignorable
    TopicConfigErrorCode int16 5+ tag=0@5+ ignorable
    NumPartitions int32 5+ default=-1 ignorable
    ReplicationFactor int16 5+ default=-1 ignorable
    Configs []CreatableTopicConfigs 5+ nullable=5+ ignorable
      Name string 5+
      Value string 5+ nullable=5+
      ReadOnly bool 5+
      ConfigSource int8 5+ default=-1 ignorable
      IsSensitive bool 5+
"""
    STRUCTS = (CreatableTopicResult, CreatableTopicConfigs)
