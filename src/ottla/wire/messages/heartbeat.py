"""HeartbeatRequest, HeartbeatResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.wire.base import Message


class HeartbeatRequest(Message):
    __slots__ = ("group_id", "generation_id", "member_id", "group_instance_id")

    def __init__(
        self,
        *,
        group_id: str = "",
        generation_id: int = 0,
        member_id: str = "",
        group_instance_id: str | None = None,
    ) -> None:
        self.group_id = group_id
        self.generation_id = generation_id
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.unknown_tags = None

    KEY = 12
    SCHEMA = """\
HeartbeatRequest key=12 type=request listeners=broker versions=0-4 flexible=4+
  GroupId string 0+ entity=groupId
  GenerationId int32 0+
  MemberId string 0+
  GroupInstanceId string 3+ nullable=3+ default=null
"""
    STRUCTS = ()


class HeartbeatResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.unknown_tags = None

    KEY = 12
    SCHEMA = """\
HeartbeatResponse key=12 type=response versions=0-4 flexible=4+
  ThrottleTimeMs int32 1+ ignorable
  ErrorCode int16 0+
"""
    STRUCTS = ()
