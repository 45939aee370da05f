"""ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.ids import ZERO_UUID, Uuid
from ottla.wire.base import EMPTY, Message, Struct


class ShareGroupHeartbeatRequest(Message):
    __slots__ = ("group_id", "member_id", "member_epoch", "rack_id", "subscribed_topic_names")

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        member_epoch: int = 0,
        rack_id: str | None = None,
        subscribed_topic_names: list[str] | None = None,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.rack_id = rack_id
        self.subscribed_topic_names = subscribed_topic_names
        self.unknown_tags = None

    KEY = 76
    SCHEMA = """\
ShareGroupHeartbeatRequest key=76 type=request listeners=broker versions=1 flexible=0+
  GroupId string 0+ entity=groupId
  MemberId string 0+
  MemberEpoch int32 0+
  RackId string 0+ nullable=0+ default=null
  SubscribedTopicNames []string 0+ nullable=0+ default=null entity=topicName
"""
    STRUCTS = ()


class TopicPartitions(Struct):
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
        topic_partitions: list[TopicPartitions] = EMPTY,
    ) -> None:
        self.topic_partitions = [] if topic_partitions is EMPTY else topic_partitions
        self.unknown_tags = None


class ShareGroupHeartbeatResponse(Message):
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

    KEY = 76
    SCHEMA = """\
ShareGroupHeartbeatResponse key=76 type=response versions=1 flexible=0+
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
    STRUCTS = (Assignment, TopicPartitions)
