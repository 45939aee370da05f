"""DescribeGroupsRequest, DescribeGroupsResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.wire.base import EMPTY, Message, Struct


class DescribeGroupsRequest(Message):
    __slots__ = ("groups", "include_authorized_operations")

    def __init__(
        self,
        *,
        groups: list[str] = EMPTY,
        include_authorized_operations: bool = False,
    ) -> None:
        self.groups = [] if groups is EMPTY else groups
        self.include_authorized_operations = include_authorized_operations
        self.unknown_tags = None

    KEY = 15
    SCHEMA = """\
DescribeGroupsRequest key=15 type=request listeners=broker versions=0-6 flexible=5+
  Groups []string 0+ entity=groupId
  IncludeAuthorizedOperations bool 3+
"""
    STRUCTS = ()


class DescribedGroupMember(Struct):
    __slots__ = ("member_id", "group_instance_id", "client_id", "client_host", "member_metadata", "member_assignment")

    def __init__(
        self,
        *,
        member_id: str = "",
        group_instance_id: str | None = None,
        client_id: str = "",
        client_host: str = "",
        member_metadata: bytes = b"",
        member_assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.member_metadata = member_metadata
        self.member_assignment = member_assignment
        self.unknown_tags = None


class DescribedGroup(Struct):
    __slots__ = ("error_code", "error_message", "group_id", "group_state", "protocol_type", "protocol_data", "members", "authorized_operations")

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = None,
        group_id: str = "",
        group_state: str = "",
        protocol_type: str = "",
        protocol_data: str = "",
        members: list[DescribedGroupMember] = EMPTY,
        authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.group_id = group_id
        self.group_state = group_state
        self.protocol_type = protocol_type
        self.protocol_data = protocol_data
        self.members = [] if members is EMPTY else members
        self.authorized_operations = authorized_operations
        self.unknown_tags = None


class DescribeGroupsResponse(Message):
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

    KEY = 15
    SCHEMA = """\
DescribeGroupsResponse key=15 type=response versions=0-6 flexible=5+
  ThrottleTimeMs int32 1+ ignorable
  Groups []DescribedGroup 0+
    ErrorCode int16 0+
    ErrorMessage string 6+ nullable=6+ default=null
    GroupId string 0+ entity=groupId
    GroupState string 0+
    ProtocolType string 0+
    ProtocolData string 0+
    Members []DescribedGroupMember 0+
      MemberId string 0+
      GroupInstanceId string 4+ nullable=4+ default=null ignorable
      ClientId string 0+
      ClientHost string 0+
      MemberMetadata bytes 0+
      MemberAssignment bytes 0+
    AuthorizedOperations int32 3+ default=-2147483648
"""
    STRUCTS = (DescribedGroup, DescribedGroupMember)
