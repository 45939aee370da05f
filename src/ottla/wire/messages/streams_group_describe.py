"""StreamsGroupDescribeRequest, StreamsGroupDescribeResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.wire.base import EMPTY, NEW, Message, Struct


class StreamsGroupDescribeRequest(Message):
    __slots__ = ("group_ids", "include_authorized_operations")

    def __init__(
        self,
        *,
        group_ids: list[str] = EMPTY,
        include_authorized_operations: bool = False,
    ) -> None:
        self.group_ids = [] if group_ids is EMPTY else group_ids
        self.include_authorized_operations = include_authorized_operations
        self.unknown_tags = None

    KEY = 89
    SCHEMA = """\
StreamsGroupDescribeRequest key=89 type=request listeners=broker versions=0 flexible=0+
  GroupIds []string 0+ entity=groupId
  IncludeAuthorizedOperations bool 0+
"""
    STRUCTS = ()


class TaskIds(Struct):
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


class Assignment(Struct):
    __slots__ = ("active_tasks", "standby_tasks", "warmup_tasks")

    def __init__(
        self,
        *,
        active_tasks: list[TaskIds] = EMPTY,
        standby_tasks: list[TaskIds] = EMPTY,
        warmup_tasks: list[TaskIds] = EMPTY,
    ) -> None:
        self.active_tasks = [] if active_tasks is EMPTY else active_tasks
        self.standby_tasks = [] if standby_tasks is EMPTY else standby_tasks
        self.warmup_tasks = [] if warmup_tasks is EMPTY else warmup_tasks
        self.unknown_tags = None


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


class Member(Struct):
    __slots__ = ("member_id", "member_epoch", "instance_id", "rack_id", "client_id", "client_host", "topology_epoch", "process_id", "user_endpoint", "client_tags", "task_offsets", "task_end_offsets", "assignment", "target_assignment", "is_classic")

    def __init__(
        self,
        *,
        member_id: str = "",
        member_epoch: int = 0,
        instance_id: str | None = None,
        rack_id: str | None = None,
        client_id: str = "",
        client_host: str = "",
        topology_epoch: int = 0,
        process_id: str = "",
        user_endpoint: Endpoint | None = None,
        client_tags: list[KeyValue] = EMPTY,
        task_offsets: list[TaskOffset] = EMPTY,
        task_end_offsets: list[TaskOffset] = EMPTY,
        assignment: Assignment = NEW,
        target_assignment: Assignment = NEW,
        is_classic: bool = False,
    ) -> None:
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.client_id = client_id
        self.client_host = client_host
        self.topology_epoch = topology_epoch
        self.process_id = process_id
        self.user_endpoint = user_endpoint
        self.client_tags = [] if client_tags is EMPTY else client_tags
        self.task_offsets = [] if task_offsets is EMPTY else task_offsets
        self.task_end_offsets = [] if task_end_offsets is EMPTY else task_end_offsets
        self.assignment = Assignment() if assignment is NEW else assignment
        self.target_assignment = Assignment() if target_assignment is NEW else target_assignment
        self.is_classic = is_classic
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
    __slots__ = ("subtopology_id", "source_topics", "repartition_sink_topics", "state_changelog_topics", "repartition_source_topics")

    def __init__(
        self,
        *,
        subtopology_id: str = "",
        source_topics: list[str] = EMPTY,
        repartition_sink_topics: list[str] = EMPTY,
        state_changelog_topics: list[TopicInfo] = EMPTY,
        repartition_source_topics: list[TopicInfo] = EMPTY,
    ) -> None:
        self.subtopology_id = subtopology_id
        self.source_topics = [] if source_topics is EMPTY else source_topics
        self.repartition_sink_topics = [] if repartition_sink_topics is EMPTY else repartition_sink_topics
        self.state_changelog_topics = [] if state_changelog_topics is EMPTY else state_changelog_topics
        self.repartition_source_topics = [] if repartition_source_topics is EMPTY else repartition_source_topics
        self.unknown_tags = None


class Topology(Struct):
    __slots__ = ("epoch", "subtopologies")

    def __init__(
        self,
        *,
        epoch: int = 0,
        subtopologies: list[Subtopology] | None = None,
    ) -> None:
        self.epoch = epoch
        self.subtopologies = subtopologies
        self.unknown_tags = None


class DescribedGroup(Struct):
    __slots__ = ("error_code", "error_message", "group_id", "group_state", "group_epoch", "assignment_epoch", "topology", "members", "authorized_operations")

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = None,
        group_id: str = "",
        group_state: str = "",
        group_epoch: int = 0,
        assignment_epoch: int = 0,
        topology: Topology | None = None,
        members: list[Member] = EMPTY,
        authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.group_id = group_id
        self.group_state = group_state
        self.group_epoch = group_epoch
        self.assignment_epoch = assignment_epoch
        self.topology = topology
        self.members = [] if members is EMPTY else members
        self.authorized_operations = authorized_operations
        self.unknown_tags = None


class StreamsGroupDescribeResponse(Message):
    __slots__ = ("throttle_time_ms", "groups")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        groups: list[DescribedGroup] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.groups = [] if groups is EMPTY else groups
        self.unknown_tags = None

    KEY = 89
    SCHEMA = """\
StreamsGroupDescribeResponse key=89 type=response versions=0 flexible=0+
  ThrottleTimeMs int32 0+
  Groups []DescribedGroup 0+
    ErrorCode int16 0+
    ErrorMessage string 0+ nullable=0+ default=null
    GroupId string 0+ entity=groupId
    GroupState string 0+
    GroupEpoch int32 0+
    AssignmentEpoch int32 0+
    Topology Topology 0+ nullable=0+ default=null
      Epoch int32 0+
      Subtopologies []Subtopology 0+ nullable=0+ default=null
        SubtopologyId string 0+
        SourceTopics []string 0+ entity=topicName
        RepartitionSinkTopics []string 0+ entity=topicName
        StateChangelogTopics []TopicInfo 0+
        RepartitionSourceTopics []TopicInfo 0+
    Members []Member 0+
      MemberId string 0+
      MemberEpoch int32 0+
      InstanceId string 0+ nullable=0+ default=null
      RackId string 0+ nullable=0+ default=null
      ClientId string 0+
      ClientHost string 0+
      TopologyEpoch int32 0+
      ProcessId string 0+
      UserEndpoint Endpoint 0+ nullable=0+ default=null
      ClientTags []KeyValue 0+
      TaskOffsets []TaskOffset 0+
      TaskEndOffsets []TaskOffset 0+
      Assignment Assignment 0+
      TargetAssignment Assignment 0+
      IsClassic bool 0+
    AuthorizedOperations int32 0+ default=-2147483648
  struct Endpoint 0+
    Host string 0+
    Port uint16 0+
  struct TaskOffset 0+
    SubtopologyId string 0+
    Partition int32 0+
    Offset int64 0+
  struct Assignment 0+
    ActiveTasks []TaskIds 0+
    StandbyTasks []TaskIds 0+
    WarmupTasks []TaskIds 0+
  struct TaskIds 0+
    SubtopologyId string 0+
    Partitions []int32 0+
  struct KeyValue 0+
    Key string 0+
    Value string 0+
  struct TopicInfo 0+
    Name string 0+ entity=topicName
    Partitions int32 0+
    ReplicationFactor int16 0+
    TopicConfigs []KeyValue 0+
"""
    STRUCTS = (DescribedGroup, Topology, Subtopology, TopicInfo, KeyValue, Member, Endpoint, TaskOffset, Assignment, TaskIds)
