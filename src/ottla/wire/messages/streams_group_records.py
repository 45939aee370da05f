"""StreamsGroupMetadataKey to StreamsGroupTopologyValue. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.wire.base import EMPTY, Message, Struct


class StreamsGroupMetadataKey(Message):
    __slots__ = ("group_id",)

    def __init__(
        self,
        *,
        group_id: str = "",
    ) -> None:
        self.group_id = group_id
        self.unknown_tags = None

    KEY = 17
    SCHEMA = """\
StreamsGroupMetadataKey key=17 type=coordinator-key versions=0 flexible=none
  GroupId string 0
"""
    STRUCTS = ()


class LastAssignmentConfig(Struct):
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


class StreamsGroupMetadataValue(Message):
    __slots__ = ("epoch", "metadata_hash", "validated_topology_epoch", "last_assignment_configs")

    def __init__(
        self,
        *,
        epoch: int = 0,
        metadata_hash: int = 0,
        validated_topology_epoch: int = -1,
        last_assignment_configs: list[LastAssignmentConfig] | None = EMPTY,
    ) -> None:
        self.epoch = epoch
        self.metadata_hash = metadata_hash
        self.validated_topology_epoch = validated_topology_epoch
        self.last_assignment_configs = [] if last_assignment_configs is EMPTY else last_assignment_configs
        self.unknown_tags = None

    KEY = 17
    SCHEMA = """\
StreamsGroupMetadataValue key=17 type=coordinator-value versions=0 flexible=0+
  Epoch int32 0+
  MetadataHash int64 0+
  ValidatedTopologyEpoch int32 0+ tag=0@0+ default=-1
  LastAssignmentConfigs []LastAssignmentConfig 0+ nullable=0+ tag=1@0+
  struct LastAssignmentConfig 0+
    Key string 0+
    Value string 0+
"""
    STRUCTS = (LastAssignmentConfig,)


class StreamsGroupMemberMetadataKey(Message):
    __slots__ = ("group_id", "member_id")

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.unknown_tags = None

    KEY = 19
    SCHEMA = """\
StreamsGroupMemberMetadataKey key=19 type=coordinator-key versions=0 flexible=none
  GroupId string 0
  MemberId string 0
"""
    STRUCTS = ()


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


class Endpoint(Struct):
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


class StreamsGroupMemberMetadataValue(Message):
    __slots__ = ("instance_id", "rack_id", "client_id", "client_host", "rebalance_timeout_ms", "topology_epoch", "process_id", "user_endpoint", "client_tags")

    def __init__(
        self,
        *,
        instance_id: str | None = "",
        rack_id: str | None = "",
        client_id: str = "",
        client_host: str = "",
        rebalance_timeout_ms: int = -1,
        topology_epoch: int = 0,
        process_id: str = "",
        user_endpoint: Endpoint | None = None,
        client_tags: list[KeyValue] = EMPTY,
    ) -> None:
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.topology_epoch = topology_epoch
        self.process_id = process_id
        self.user_endpoint = user_endpoint
        self.client_tags = [] if client_tags is EMPTY else client_tags
        self.unknown_tags = None

    KEY = 19
    SCHEMA = """\
StreamsGroupMemberMetadataValue key=19 type=coordinator-value versions=0 flexible=0+
  InstanceId string 0+ nullable=0+
  RackId string 0+ nullable=0+
  ClientId string 0+
  ClientHost string 0+
  RebalanceTimeoutMs int32 0+ default=-1
  TopologyEpoch int32 0+
  ProcessId string 0+
  UserEndpoint Endpoint 0+ nullable=0+ default=null
  ClientTags []KeyValue 0+
  struct Endpoint 0+
    Host string 0+
    Port uint16 0+
  struct KeyValue 0+
    Key string 0+
    Value string 0+
"""
    STRUCTS = (Endpoint, KeyValue)


class StreamsGroupTargetAssignmentMetadataKey(Message):
    __slots__ = ("group_id",)

    def __init__(
        self,
        *,
        group_id: str = "",
    ) -> None:
        self.group_id = group_id
        self.unknown_tags = None

    KEY = 20
    SCHEMA = """\
StreamsGroupTargetAssignmentMetadataKey key=20 type=coordinator-key versions=0 flexible=none
  GroupId string 0
"""
    STRUCTS = ()


class StreamsGroupTargetAssignmentMetadataValue(Message):
    __slots__ = ("assignment_epoch", "assignment_timestamp")

    def __init__(
        self,
        *,
        assignment_epoch: int = 0,
        assignment_timestamp: int = 0,
    ) -> None:
        self.assignment_epoch = assignment_epoch
        self.assignment_timestamp = assignment_timestamp
        self.unknown_tags = None

    KEY = 20
    SCHEMA = """\
StreamsGroupTargetAssignmentMetadataValue key=20 type=coordinator-value versions=0 flexible=0+
  AssignmentEpoch int32 0+
  AssignmentTimestamp int64 0+ tag=0@0+ default=0 ignorable
"""
    STRUCTS = ()


class StreamsGroupTargetAssignmentMemberKey(Message):
    __slots__ = ("group_id", "member_id")

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.unknown_tags = None

    KEY = 21
    SCHEMA = """\
StreamsGroupTargetAssignmentMemberKey key=21 type=coordinator-key versions=0 flexible=none
  GroupId string 0
  MemberId string 0
"""
    STRUCTS = ()


class StreamsGroupTargetAssignmentMemberValueTaskIds(Struct):
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


class StreamsGroupTargetAssignmentMemberValue(Message):
    __slots__ = ("active_tasks", "standby_tasks", "warmup_tasks")

    def __init__(
        self,
        *,
        active_tasks: list[StreamsGroupTargetAssignmentMemberValueTaskIds] = EMPTY,
        standby_tasks: list[StreamsGroupTargetAssignmentMemberValueTaskIds] = EMPTY,
        warmup_tasks: list[StreamsGroupTargetAssignmentMemberValueTaskIds] = EMPTY,
    ) -> None:
        self.active_tasks = [] if active_tasks is EMPTY else active_tasks
        self.standby_tasks = [] if standby_tasks is EMPTY else standby_tasks
        self.warmup_tasks = [] if warmup_tasks is EMPTY else warmup_tasks
        self.unknown_tags = None

    KEY = 21
    SCHEMA = """\
StreamsGroupTargetAssignmentMemberValue key=21 type=coordinator-value versions=0 flexible=0+
  ActiveTasks []TaskIds 0+
  StandbyTasks []TaskIds 0+
  WarmupTasks []TaskIds 0+
  struct TaskIds 0+
    SubtopologyId string 0+
    Partitions []int32 0+
"""
    STRUCTS = (StreamsGroupTargetAssignmentMemberValueTaskIds,)


class StreamsGroupCurrentMemberAssignmentKey(Message):
    __slots__ = ("group_id", "member_id")

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.unknown_tags = None

    KEY = 22
    SCHEMA = """\
StreamsGroupCurrentMemberAssignmentKey key=22 type=coordinator-key versions=0 flexible=none
  GroupId string 0
  MemberId string 0
"""
    STRUCTS = ()


class StreamsGroupCurrentMemberAssignmentValueTaskIds(Struct):
    __slots__ = ("subtopology_id", "partitions", "assignment_epochs")

    def __init__(
        self,
        *,
        subtopology_id: str = "",
        partitions: list[int] = EMPTY,
        assignment_epochs: list[int] | None = EMPTY,
    ) -> None:
        self.subtopology_id = subtopology_id
        self.partitions = [] if partitions is EMPTY else partitions
        self.assignment_epochs = [] if assignment_epochs is EMPTY else assignment_epochs
        self.unknown_tags = None


class StreamsGroupCurrentMemberAssignmentValue(Message):
    __slots__ = ("member_epoch", "previous_member_epoch", "state", "active_tasks", "standby_tasks", "warmup_tasks", "active_tasks_pending_revocation", "standby_tasks_pending_revocation", "warmup_tasks_pending_revocation")

    def __init__(
        self,
        *,
        member_epoch: int = 0,
        previous_member_epoch: int = 0,
        state: int = 0,
        active_tasks: list[StreamsGroupCurrentMemberAssignmentValueTaskIds] = EMPTY,
        standby_tasks: list[StreamsGroupCurrentMemberAssignmentValueTaskIds] = EMPTY,
        warmup_tasks: list[StreamsGroupCurrentMemberAssignmentValueTaskIds] = EMPTY,
        active_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentValueTaskIds] = EMPTY,
        standby_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentValueTaskIds] = EMPTY,
        warmup_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentValueTaskIds] = EMPTY,
    ) -> None:
        self.member_epoch = member_epoch
        self.previous_member_epoch = previous_member_epoch
        self.state = state
        self.active_tasks = [] if active_tasks is EMPTY else active_tasks
        self.standby_tasks = [] if standby_tasks is EMPTY else standby_tasks
        self.warmup_tasks = [] if warmup_tasks is EMPTY else warmup_tasks
        self.active_tasks_pending_revocation = [] if active_tasks_pending_revocation is EMPTY else active_tasks_pending_revocation
        self.standby_tasks_pending_revocation = [] if standby_tasks_pending_revocation is EMPTY else standby_tasks_pending_revocation
        self.warmup_tasks_pending_revocation = [] if warmup_tasks_pending_revocation is EMPTY else warmup_tasks_pending_revocation
        self.unknown_tags = None

    KEY = 22
    SCHEMA = """\
StreamsGroupCurrentMemberAssignmentValue key=22 type=coordinator-value versions=0 flexible=0+
  MemberEpoch int32 0+
  PreviousMemberEpoch int32 0+
  State int8 0+
  ActiveTasks []TaskIds 0+
  StandbyTasks []TaskIds 0+
  WarmupTasks []TaskIds 0+
  ActiveTasksPendingRevocation []TaskIds 0+
  StandbyTasksPendingRevocation []TaskIds 0+
  WarmupTasksPendingRevocation []TaskIds 0+
  struct TaskIds 0+
    SubtopologyId string 0+
    Partitions []int32 0+
    AssignmentEpochs []int32 0+ nullable=0+ tag=0@0+
"""
    STRUCTS = (StreamsGroupCurrentMemberAssignmentValueTaskIds,)


class StreamsGroupTopologyKey(Message):
    __slots__ = ("group_id",)

    def __init__(
        self,
        *,
        group_id: str = "",
    ) -> None:
        self.group_id = group_id
        self.unknown_tags = None

    KEY = 23
    SCHEMA = """\
StreamsGroupTopologyKey key=23 type=coordinator-key versions=0 flexible=none
  GroupId string 0
"""
    STRUCTS = ()


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


class TopicConfig(Struct):
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
        topic_configs: list[TopicConfig] = EMPTY,
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


class StreamsGroupTopologyValue(Message):
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

    KEY = 23
    SCHEMA = """\
StreamsGroupTopologyValue key=23 type=coordinator-value versions=0 flexible=0+
  Epoch int32 0+
  Subtopologies []Subtopology 0+
    SubtopologyId string 0+
    SourceTopics []string 0+
    SourceTopicRegex []string 0+
    StateChangelogTopics []TopicInfo 0+
    RepartitionSinkTopics []string 0+
    RepartitionSourceTopics []TopicInfo 0+
    CopartitionGroups []CopartitionGroup 0+
      SourceTopics []int16 0+
      SourceTopicRegex []int16 0+
      RepartitionSourceTopics []int16 0+
  struct TopicConfig 0+
    key string 0+
    value string 0+
  struct TopicInfo 0+
    Name string 0+
    Partitions int32 0+
    ReplicationFactor int16 0+
    TopicConfigs []TopicConfig 0+
"""
    STRUCTS = (Subtopology, TopicInfo, TopicConfig, CopartitionGroup)
