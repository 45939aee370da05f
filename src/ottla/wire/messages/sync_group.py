"""SyncGroupRequest, SyncGroupResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.wire.base import EMPTY, Message, Struct


class SyncGroupRequestAssignment(Struct):
    __slots__ = ("member_id", "assignment")

    def __init__(
        self,
        *,
        member_id: str = "",
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.assignment = assignment
        self.unknown_tags = None


class SyncGroupRequest(Message):
    __slots__ = ("group_id", "generation_id", "member_id", "group_instance_id", "protocol_type", "protocol_name", "assignments")

    def __init__(
        self,
        *,
        group_id: str = "",
        generation_id: int = 0,
        member_id: str = "",
        group_instance_id: str | None = None,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        assignments: list[SyncGroupRequestAssignment] = EMPTY,
    ) -> None:
        self.group_id = group_id
        self.generation_id = generation_id
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.protocol_type = protocol_type
        self.protocol_name = protocol_name
        self.assignments = [] if assignments is EMPTY else assignments
        self.unknown_tags = None

    KEY = 14
    SCHEMA = """\
SyncGroupRequest key=14 type=request listeners=broker versions=0-5 flexible=4+
  GroupId string 0+ entity=groupId
  GenerationId int32 0+
  MemberId string 0+
  GroupInstanceId string 3+ nullable=3+ default=null
  ProtocolType string 5+ nullable=5+ default=null ignorable
  ProtocolName string 5+ nullable=5+ default=null ignorable
  Assignments []SyncGroupRequestAssignment 0+
    MemberId string 0+
    Assignment bytes 0+
"""
    STRUCTS = (SyncGroupRequestAssignment,)


class SyncGroupResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "protocol_type", "protocol_name", "assignment")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        assignment: bytes = b"",
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.protocol_type = protocol_type
        self.protocol_name = protocol_name
        self.assignment = assignment
        self.unknown_tags = None

    KEY = 14
    SCHEMA = """\
SyncGroupResponse key=14 type=response versions=0-5 flexible=4+
  ThrottleTimeMs int32 1+ ignorable
  ErrorCode int16 0+
  ProtocolType string 5+ nullable=5+ default=null ignorable
  ProtocolName string 5+ nullable=5+ default=null ignorable
  Assignment bytes 0+
"""
    STRUCTS = ()
