"""LeaveGroupRequest, LeaveGroupResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.wire.base import EMPTY, Message, Struct


class MemberIdentity(Struct):
    __slots__ = ("member_id", "group_instance_id", "reason")

    def __init__(
        self,
        *,
        member_id: str = "",
        group_instance_id: str | None = None,
        reason: str | None = None,
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.reason = reason
        self.unknown_tags = None


class LeaveGroupRequest(Message):
    __slots__ = ("group_id", "member_id", "members")

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        members: list[MemberIdentity] = EMPTY,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.members = [] if members is EMPTY else members
        self.unknown_tags = None

    KEY = 13
    SCHEMA = """\
LeaveGroupRequest key=13 type=request listeners=broker versions=0-5 flexible=4+
  GroupId string 0+ entity=groupId
  MemberId string 0-2
  Members []MemberIdentity 3+
    MemberId string 3+
    GroupInstanceId string 3+ nullable=3+ default=null
    Reason string 5+ nullable=5+ default=null ignorable
"""
    STRUCTS = (MemberIdentity,)


class MemberResponse(Struct):
    __slots__ = ("member_id", "group_instance_id", "error_code")

    def __init__(
        self,
        *,
        member_id: str = "",
        group_instance_id: str | None = "",
        error_code: int = 0,
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.error_code = error_code
        self.unknown_tags = None


class LeaveGroupResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "members")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        members: list[MemberResponse] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.members = [] if members is EMPTY else members
        self.unknown_tags = None

    KEY = 13
    SCHEMA = """\
LeaveGroupResponse key=13 type=response versions=0-5 flexible=4+
  ThrottleTimeMs int32 1+ ignorable
  ErrorCode int16 0+
  Members []MemberResponse 3+
    MemberId string 3+
    GroupInstanceId string 3+ nullable=3+
    ErrorCode int16 3+
"""
    STRUCTS = (MemberResponse,)
