"""ShareGroupDescribeRequest, ShareGroupDescribeResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.ids import ZERO_UUID, Uuid
from ottla.wire.base import EMPTY, NEW, Message, Struct


class ShareGroupDescribeRequest(Message):
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

    KEY = 77
    SCHEMA = """\
ShareGroupDescribeRequest key=77 type=request listeners=broker versions=1 flexible=0+
  GroupIds []string 0+ entity=groupId
  IncludeAuthorizedOperations bool 0+
"""
    STRUCTS = ()


class TopicPartitions(Struct):
    __slots__ = ("topic_id", "topic_name", "partitions")

    def __init__(
        self,
        *,
        topic_id: Uuid = ZERO_UUID,
        topic_name: str = "",
        partitions: list[int] = EMPTY,
    ) -> None:
        self.topic_id = topic_id
        self.topic_name = topic_name
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


class Member(Struct):
    __slots__ = ("member_id", "rack_id", "member_epoch", "client_id", "client_host", "subscribed_topic_names", "assignment")

    def __init__(
        self,
        *,
        member_id: str = "",
        rack_id: str | None = None,
        member_epoch: int = 0,
        client_id: str = "",
        client_host: str = "",
        subscribed_topic_names: list[str] = EMPTY,
        assignment: Assignment = NEW,
    ) -> None:
        self.member_id = member_id
        self.rack_id = rack_id
        self.member_epoch = member_epoch
        self.client_id = client_id
        self.client_host = client_host
        self.subscribed_topic_names = [] if subscribed_topic_names is EMPTY else subscribed_topic_names
        self.assignment = Assignment() if assignment is NEW else assignment
        self.unknown_tags = None


class DescribedGroup(Struct):
    __slots__ = ("error_code", "error_message", "group_id", "group_state", "group_epoch", "assignment_epoch", "assignor_name", "members", "authorized_operations")

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = None,
        group_id: str = "",
        group_state: str = "",
        group_epoch: int = 0,
        assignment_epoch: int = 0,
        assignor_name: str = "",
        members: list[Member] = EMPTY,
        authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.group_id = group_id
        self.group_state = group_state
        self.group_epoch = group_epoch
        self.assignment_epoch = assignment_epoch
        self.assignor_name = assignor_name
        self.members = [] if members is EMPTY else members
        self.authorized_operations = authorized_operations
        self.unknown_tags = None


class ShareGroupDescribeResponse(Message):
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

    KEY = 77
    SCHEMA = """\
ShareGroupDescribeResponse key=77 type=response versions=1 flexible=0+
  ThrottleTimeMs int32 0+
  Groups []DescribedGroup 0+
    ErrorCode int16 0+
    ErrorMessage string 0+ nullable=0+ default=null
    GroupId string 0+ entity=groupId
    GroupState string 0+
    GroupEpoch int32 0+
    AssignmentEpoch int32 0+
    AssignorName string 0+
    Members []Member 0+
      MemberId string 0+
      RackId string 0+ nullable=0+ default=null
      MemberEpoch int32 0+
      ClientId string 0+
      ClientHost string 0+
      SubscribedTopicNames []string 0+ entity=topicName
      Assignment Assignment 0+
    AuthorizedOperations int32 0+ default=-2147483648
  struct TopicPartitions 0+
    TopicId uuid 0+
    TopicName string 0+ entity=topicName
    Partitions []int32 0+
  struct Assignment 0+
    TopicPartitions []TopicPartitions 0+
"""
    STRUCTS = (DescribedGroup, Member, Assignment, TopicPartitions)
