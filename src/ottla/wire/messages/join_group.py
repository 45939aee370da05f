"""JoinGroupRequest, JoinGroupResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.wire.base import EMPTY, Message, Struct


class JoinGroupRequestProtocol(Struct):
    __slots__ = ("name", "metadata")

    def __init__(
        self,
        *,
        name: str = "",
        metadata: bytes = b"",
    ) -> None:
        self.name = name
        self.metadata = metadata
        self.unknown_tags = None


class JoinGroupRequest(Message):
    __slots__ = ("group_id", "session_timeout_ms", "rebalance_timeout_ms", "member_id", "group_instance_id", "protocol_type", "protocols", "reason")

    def __init__(
        self,
        *,
        group_id: str = "",
        session_timeout_ms: int = 0,
        rebalance_timeout_ms: int = -1,
        member_id: str = "",
        group_instance_id: str | None = None,
        protocol_type: str = "",
        protocols: list[JoinGroupRequestProtocol] = EMPTY,
        reason: str | None = None,
    ) -> None:
        self.group_id = group_id
        self.session_timeout_ms = session_timeout_ms
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.protocol_type = protocol_type
        self.protocols = [] if protocols is EMPTY else protocols
        self.reason = reason
        self.unknown_tags = None

    KEY = 11
    SCHEMA = """\
JoinGroupRequest key=11 type=request listeners=broker versions=0-9 flexible=6+
  GroupId string 0+ entity=groupId
  SessionTimeoutMs int32 0+
  RebalanceTimeoutMs int32 1+ default=-1 ignorable
  MemberId string 0+
  GroupInstanceId string 5+ nullable=5+ default=null
  ProtocolType string 0+
  Protocols []JoinGroupRequestProtocol 0+
    Name string 0+ key
    Metadata bytes 0+
  Reason string 8+ nullable=8+ default=null ignorable
"""
    STRUCTS = (JoinGroupRequestProtocol,)


class JoinGroupResponseMember(Struct):
    __slots__ = ("member_id", "group_instance_id", "metadata")

    def __init__(
        self,
        *,
        member_id: str = "",
        group_instance_id: str | None = None,
        metadata: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.metadata = metadata
        self.unknown_tags = None


class JoinGroupResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "generation_id", "protocol_type", "protocol_name", "leader", "skip_assignment", "member_id", "members")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        generation_id: int = -1,
        protocol_type: str | None = None,
        protocol_name: str | None = "",
        leader: str = "",
        skip_assignment: bool = False,
        member_id: str = "",
        members: list[JoinGroupResponseMember] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.generation_id = generation_id
        self.protocol_type = protocol_type
        self.protocol_name = protocol_name
        self.leader = leader
        self.skip_assignment = skip_assignment
        self.member_id = member_id
        self.members = [] if members is EMPTY else members
        self.unknown_tags = None

    KEY = 11
    SCHEMA = """\
JoinGroupResponse key=11 type=response versions=0-9 flexible=6+
  ThrottleTimeMs int32 2+ ignorable
  ErrorCode int16 0+
  GenerationId int32 0+ default=-1
  ProtocolType string 7+ nullable=7+ default=null ignorable
  ProtocolName string 0+ nullable=7+
  Leader string 0+
  SkipAssignment bool 9+ default=false
  MemberId string 0+
  Members []JoinGroupResponseMember 0+
    MemberId string 0+
    GroupInstanceId string 5+ nullable=5+ default=null ignorable
    Metadata bytes 0+
"""
    STRUCTS = (JoinGroupResponseMember,)
