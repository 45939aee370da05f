"""ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.ids import ZERO_UUID, Uuid
from ottla.wire.base import EMPTY, Message, Struct


class ConsumerGroupHeartbeatRequestTopicPartitions(Struct):
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


class ConsumerGroupHeartbeatRequest(Message):
    __slots__ = ("group_id", "member_id", "member_epoch", "instance_id", "rack_id", "rebalance_timeout_ms", "subscribed_topic_names", "subscribed_topic_regex", "server_assignor", "topic_partitions")

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        member_epoch: int = 0,
        instance_id: str | None = None,
        rack_id: str | None = None,
        rebalance_timeout_ms: int = -1,
        subscribed_topic_names: list[str] | None = None,
        subscribed_topic_regex: str | None = None,
        server_assignor: str | None = None,
        topic_partitions: list[ConsumerGroupHeartbeatRequestTopicPartitions] | None = None,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.subscribed_topic_names = subscribed_topic_names
        self.subscribed_topic_regex = subscribed_topic_regex
        self.server_assignor = server_assignor
        self.topic_partitions = topic_partitions
        self.unknown_tags = None

    KEY = 68
    SCHEMA = """\
ConsumerGroupHeartbeatRequest key=68 type=request listeners=broker versions=0-1 flexible=0+
  GroupId string 0+ entity=groupId
  MemberId string 0+
  MemberEpoch int32 0+
  InstanceId string 0+ nullable=0+ default=null
  RackId string 0+ nullable=0+ default=null
  RebalanceTimeoutMs int32 0+ default=-1
  SubscribedTopicNames []string 0+ nullable=0+ default=null entity=topicName
  SubscribedTopicRegex string 1+ nullable=1+ default=null
  ServerAssignor string 0+ nullable=0+ default=null
  TopicPartitions []TopicPartitions 0+ nullable=0+ default=null
    TopicId uuid 0+
    Partitions []int32 0+
"""
    STRUCTS = (ConsumerGroupHeartbeatRequestTopicPartitions,)


class ConsumerGroupHeartbeatResponseTopicPartitions(Struct):
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


class Assignment(Struct):
    __slots__ = ("topic_partitions",)

    def __init__(
        self,
        *,
        topic_partitions: list[ConsumerGroupHeartbeatResponseTopicPartitions] = EMPTY,
    ) -> None:
        self.topic_partitions = [] if topic_partitions is EMPTY else topic_partitions
        self.unknown_tags = None


class ConsumerGroupHeartbeatResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "member_id", "member_epoch", "heartbeat_interval_ms", "assignment")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        member_id: str | None = None,
        member_epoch: int = 0,
        heartbeat_interval_ms: int = 0,
        assignment: Assignment | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.heartbeat_interval_ms = heartbeat_interval_ms
        self.assignment = assignment
        self.unknown_tags = None

    KEY = 68
    SCHEMA = """\
ConsumerGroupHeartbeatResponse key=68 type=response versions=0-1 flexible=0+
  ThrottleTimeMs int32 0+
  ErrorCode int16 0+
  ErrorMessage string 0+ nullable=0+ default=null
  MemberId string 0+ nullable=0+ default=null
  MemberEpoch int32 0+
  HeartbeatIntervalMs int32 0+
  Assignment Assignment 0+ nullable=0+ default=null
    TopicPartitions []TopicPartitions 0+
  struct TopicPartitions 0+
    TopicId uuid 0+
    Partitions []int32 0+
"""
    STRUCTS = (Assignment, ConsumerGroupHeartbeatResponseTopicPartitions)
