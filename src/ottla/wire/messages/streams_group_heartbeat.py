"""StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.wire.base import EMPTY, NEW, Message, Struct


class TaskOffset(Struct):
    __slots__ = ("subtopology_id", "partition", "offset")

    def __init__(
        self,
        *,
        subtopology_id: str = "",
        partition: int = 0,
        offset: int = 0,
    ) -> None:
        self.subtopology_id = subtopology_id
        self.partition = partition
        self.offset = offset
        self.unknown_tags = None


class StreamsGroupHeartbeatRequestEndpoint(Struct):
    __slots__ = ("host", "port")

    def __init__(
        self,
        *,
        host: str = "",
        port: int = 0,
    ) -> None:
        self.host = host
        self.port = port
        self.unknown_tags = None


class StreamsGroupHeartbeatRequestTaskIds(Struct):
    __slots__ = ("subtopology_id", "partitions")

    def __init__(
        self,
        *,
        subtopology_id: str = "",
        partitions: list[int] = EMPTY,
    ) -> None:
        self.subtopology_id = subtopology_id
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class CopartitionGroup(Struct):
    __slots__ = ("source_topics", "source_topic_regex", "repartition_source_topics")

    def __init__(
        self,
        *,
        source_topics: list[int] = EMPTY,
        source_topic_regex: list[int] = EMPTY,
        repartition_source_topics: list[int] = EMPTY,
    ) -> None:
        self.source_topics = [] if source_topics is EMPTY else source_topics
        self.source_topic_regex = [] if source_topic_regex is EMPTY else source_topic_regex
        self.repartition_source_topics = [] if repartition_source_topics is EMPTY else repartition_source_topics
        self.unknown_tags = None


class KeyValue(Struct):
    __slots__ = ("key", "value")

    def __init__(
        self,
        *,
        key: str = "",
        value: str = "",
    ) -> None:
        self.key = key
        self.value = value
        self.unknown_tags = None


class TopicInfo(Struct):
    __slots__ = ("name", "partitions", "replication_factor", "topic_configs")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: int = 0,
        replication_factor: int = 0,
        topic_configs: list[KeyValue] = EMPTY,
    ) -> None:
        self.name = name
        self.partitions = partitions
        self.replication_factor = replication_factor
        self.topic_configs = [] if topic_configs is EMPTY else topic_configs
        self.unknown_tags = None


class Subtopology(Struct):
    __slots__ = ("subtopology_id", "source_topics", "source_topic_regex", "state_changelog_topics", "repartition_sink_topics", "repartition_source_topics", "copartition_groups")

    def __init__(
        self,
        *,
        subtopology_id: str = "",
        source_topics: list[str] = EMPTY,
        source_topic_regex: list[str] = EMPTY,
        state_changelog_topics: list[TopicInfo] = EMPTY,
        repartition_sink_topics: list[str] = EMPTY,
        repartition_source_topics: list[TopicInfo] = EMPTY,
        copartition_groups: list[CopartitionGroup] = EMPTY,
    ) -> None:
        self.subtopology_id = subtopology_id
        self.source_topics = [] if source_topics is EMPTY else source_topics
        self.source_topic_regex = [] if source_topic_regex is EMPTY else source_topic_regex
        self.state_changelog_topics = [] if state_changelog_topics is EMPTY else state_changelog_topics
        self.repartition_sink_topics = [] if repartition_sink_topics is EMPTY else repartition_sink_topics
        self.repartition_source_topics = [] if repartition_source_topics is EMPTY else repartition_source_topics
        self.copartition_groups = [] if copartition_groups is EMPTY else copartition_groups
        self.unknown_tags = None


class Topology(Struct):
    __slots__ = ("epoch", "subtopologies")

    def __init__(
        self,
        *,
        epoch: int = 0,
        subtopologies: list[Subtopology] = EMPTY,
    ) -> None:
        self.epoch = epoch
        self.subtopologies = [] if subtopologies is EMPTY else subtopologies
        self.unknown_tags = None


class StreamsGroupHeartbeatRequest(Message):
    __slots__ = ("group_id", "member_id", "member_epoch", "endpoint_information_epoch", "instance_id", "rack_id", "rebalance_timeout_ms", "topology", "active_tasks", "standby_tasks", "warmup_tasks", "process_id", "user_endpoint", "client_tags", "task_offsets", "task_end_offsets", "shutdown_application")

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        member_epoch: int = 0,
        endpoint_information_epoch: int = 0,
        instance_id: str | None = None,
        rack_id: str | None = None,
        rebalance_timeout_ms: int = -1,
        topology: Topology | None = None,
        active_tasks: list[StreamsGroupHeartbeatRequestTaskIds] | None = None,
        standby_tasks: list[StreamsGroupHeartbeatRequestTaskIds] | None = None,
        warmup_tasks: list[StreamsGroupHeartbeatRequestTaskIds] | None = None,
        process_id: str | None = None,
        user_endpoint: StreamsGroupHeartbeatRequestEndpoint | None = None,
        client_tags: list[KeyValue] | None = None,
        task_offsets: list[TaskOffset] | None = None,
        task_end_offsets: list[TaskOffset] | None = None,
        shutdown_application: bool = False,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.endpoint_information_epoch = endpoint_information_epoch
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.topology = topology
        self.active_tasks = active_tasks
        self.standby_tasks = standby_tasks
        self.warmup_tasks = warmup_tasks
        self.process_id = process_id
        self.user_endpoint = user_endpoint
        self.client_tags = client_tags
        self.task_offsets = task_offsets
        self.task_end_offsets = task_end_offsets
        self.shutdown_application = shutdown_application
        self.unknown_tags = None

    KEY = 88
    SCHEMA = """\
StreamsGroupHeartbeatRequest key=88 type=request listeners=broker versions=0 flexible=0+
  GroupId string 0+ entity=groupId
  MemberId string 0+
  MemberEpoch int32 0+
  EndpointInformationEpoch int32 0+
  InstanceId string 0+ nullable=0+ default=null
  RackId string 0+ nullable=0+ default=null
  RebalanceTimeoutMs int32 0+ default=-1
  Topology Topology 0+ nullable=0+ default=null
    Epoch int32 0+
    Subtopologies []Subtopology 0+
      SubtopologyId string 0+
      SourceTopics []string 0+ entity=topicName
      SourceTopicRegex []string 0+
      StateChangelogTopics []TopicInfo 0+
      RepartitionSinkTopics []string 0+ entity=topicName
      RepartitionSourceTopics []TopicInfo 0+
      CopartitionGroups []CopartitionGroup 0+
        SourceTopics []int16 0+
        SourceTopicRegex []int16 0+
        RepartitionSourceTopics []int16 0+
  ActiveTasks []TaskIds 0+ nullable=0+ default=null
  StandbyTasks []TaskIds 0+ nullable=0+ default=null
  WarmupTasks []TaskIds 0+ nullable=0+ default=null
  ProcessId string 0+ nullable=0+ default=null
  UserEndpoint Endpoint 0+ nullable=0+ default=null
  ClientTags []KeyValue 0+ nullable=0+ default=null
  TaskOffsets []TaskOffset 0+ nullable=0+ default=null
  TaskEndOffsets []TaskOffset 0+ nullable=0+ default=null
  ShutdownApplication bool 0+ default=false
  struct KeyValue 0+
    Key string 0+
    Value string 0+
  struct TopicInfo 0+
    Name string 0+ entity=topicName
    Partitions int32 0+
    ReplicationFactor int16 0+
    TopicConfigs []KeyValue 0+
  struct Endpoint 0+
    Host string 0+
    Port uint16 0+
  struct TaskOffset 0+
    SubtopologyId string 0+
    Partition int32 0+
    Offset int64 0+
  struct TaskIds 0+
    SubtopologyId string 0+
    Partitions []int32 0+
"""
    STRUCTS = (Topology, Subtopology, TopicInfo, KeyValue, CopartitionGroup, StreamsGroupHeartbeatRequestTaskIds, StreamsGroupHeartbeatRequestEndpoint, TaskOffset)


class TopicPartition(Struct):
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


class StreamsGroupHeartbeatResponseEndpoint(Struct):
    __slots__ = ("host", "port")

    def __init__(
        self,
        *,
        host: str = "",
        port: int = 0,
    ) -> None:
        self.host = host
        self.port = port
        self.unknown_tags = None


class EndpointToPartitions(Struct):
    __slots__ = ("user_endpoint", "active_partitions", "standby_partitions")

    def __init__(
        self,
        *,
        user_endpoint: StreamsGroupHeartbeatResponseEndpoint = NEW,
        active_partitions: list[TopicPartition] = EMPTY,
        standby_partitions: list[TopicPartition] = EMPTY,
    ) -> None:
        self.user_endpoint = StreamsGroupHeartbeatResponseEndpoint() if user_endpoint is NEW else user_endpoint
        self.active_partitions = [] if active_partitions is EMPTY else active_partitions
        self.standby_partitions = [] if standby_partitions is EMPTY else standby_partitions
        self.unknown_tags = None


class StreamsGroupHeartbeatResponseTaskIds(Struct):
    __slots__ = ("subtopology_id", "partitions")

    def __init__(
        self,
        *,
        subtopology_id: str = "",
        partitions: list[int] = EMPTY,
    ) -> None:
        self.subtopology_id = subtopology_id
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class Status(Struct):
    __slots__ = ("status_code", "status_detail")

    def __init__(
        self,
        *,
        status_code: int = 0,
        status_detail: str = "",
    ) -> None:
        self.status_code = status_code
        self.status_detail = status_detail
        self.unknown_tags = None


class StreamsGroupHeartbeatResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "member_id", "member_epoch", "heartbeat_interval_ms", "acceptable_recovery_lag", "task_offset_interval_ms", "status", "active_tasks", "standby_tasks", "warmup_tasks", "endpoint_information_epoch", "partitions_by_user_endpoint")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        member_id: str = "",
        member_epoch: int = 0,
        heartbeat_interval_ms: int = 0,
        acceptable_recovery_lag: int = 0,
        task_offset_interval_ms: int = 0,
        status: list[Status] | None = EMPTY,
        active_tasks: list[StreamsGroupHeartbeatResponseTaskIds] | None = None,
        standby_tasks: list[StreamsGroupHeartbeatResponseTaskIds] | None = None,
        warmup_tasks: list[StreamsGroupHeartbeatResponseTaskIds] | None = None,
        endpoint_information_epoch: int = 0,
        partitions_by_user_endpoint: list[EndpointToPartitions] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.heartbeat_interval_ms = heartbeat_interval_ms
        self.acceptable_recovery_lag = acceptable_recovery_lag
        self.task_offset_interval_ms = task_offset_interval_ms
        self.status = [] if status is EMPTY else status
        self.active_tasks = active_tasks
        self.standby_tasks = standby_tasks
        self.warmup_tasks = warmup_tasks
        self.endpoint_information_epoch = endpoint_information_epoch
        self.partitions_by_user_endpoint = partitions_by_user_endpoint
        self.unknown_tags = None

    KEY = 88
    SCHEMA = """\
StreamsGroupHeartbeatResponse key=88 type=response versions=0 flexible=0+
  ThrottleTimeMs int32 0+
  ErrorCode int16 0+
  ErrorMessage string 0+ nullable=0+ default=null
  MemberId string 0+
  MemberEpoch int32 0+
  HeartbeatIntervalMs int32 0+
  AcceptableRecoveryLag int32 0+
  TaskOffsetIntervalMs int32 0+
  Status []Status 0+ nullable=0+
  ActiveTasks []TaskIds 0+ nullable=0+ default=null
  StandbyTasks []TaskIds 0+ nullable=0+ default=null
  WarmupTasks []TaskIds 0+ nullable=0+ default=null
  EndpointInformationEpoch int32 0+
  PartitionsByUserEndpoint []EndpointToPartitions 0+ nullable=0+ default=null
    UserEndpoint Endpoint 0+
    ActivePartitions []TopicPartition 0+
    StandbyPartitions []TopicPartition 0+
  struct Status 0+
    StatusCode int8 0+
    StatusDetail string 0+
  struct TopicPartition 0+
    Topic string 0+ entity=topicName
    Partitions []int32 0+
  struct TaskIds 0+
    SubtopologyId string 0+
    Partitions []int32 0+
  struct Endpoint 0+
    Host string 0+
    Port uint16 0+
"""
    STRUCTS = (Status, StreamsGroupHeartbeatResponseTaskIds, EndpointToPartitions, StreamsGroupHeartbeatResponseEndpoint, TopicPartition)
