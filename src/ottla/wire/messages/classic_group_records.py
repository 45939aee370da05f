"""GroupMetadataKey, GroupMetadataValue. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.wire.base import EMPTY, Message, Struct


class GroupMetadataKey(Message):
    __slots__ = ("group",)

    def __init__(
        self,
        *,
        group: str = "",
    ) -> None:
        self.group = group
        self.unknown_tags = None

    KEY = 2
    SCHEMA = """\
GroupMetadataKey key=2 type=coordinator-key versions=0 flexible=none
  group string 0
"""
    STRUCTS = ()


class MemberMetadata(Struct):
    __slots__ = ("member_id", "group_instance_id", "client_id", "client_host", "rebalance_timeout", "session_timeout", "subscription", "assignment")

    def __init__(
        self,
        *,
        member_id: str = "",
        group_instance_id: str | None = None,
        client_id: str = "",
        client_host: str = "",
        rebalance_timeout: int = -1,
        session_timeout: int = 0,
        subscription: bytes = b"",
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout = rebalance_timeout
        self.session_timeout = session_timeout
        self.subscription = subscription
        self.assignment = assignment
        self.unknown_tags = None


class GroupMetadataValue(Message):
    __slots__ = ("protocol_type", "generation", "protocol", "leader", "current_state_timestamp", "members")

    def __init__(
        self,
        *,
        protocol_type: str = "",
        generation: int = 0,
        protocol: str | None = "",
        leader: str | None = "",
        current_state_timestamp: int = -1,
        members: list[MemberMetadata] = EMPTY,
    ) -> None:
        self.protocol_type = protocol_type
        self.generation = generation
        self.protocol = protocol
        self.leader = leader
        self.current_state_timestamp = current_state_timestamp
        self.members = [] if members is EMPTY else members
        self.unknown_tags = None

    KEY = 2
    SCHEMA = """\
GroupMetadataValue key=2 type=coordinator-value versions=0-4 flexible=4+
  protocolType string 0+
  generation int32 0+
  protocol string 0+ nullable=0+
  leader string 0+ nullable=0+
  currentStateTimestamp int64 2+ default=-1 ignorable
  members []MemberMetadata 0+
  struct MemberMetadata 0+
    memberId string 0+
    groupInstanceId string 3+ nullable=3+ default=null ignorable
    clientId string 0+
    clientHost string 0+
    rebalanceTimeout int32 1+ default=-1 ignorable
    sessionTimeout int32 0+
    subscription bytes 0+
    assignment bytes 0+
"""
    STRUCTS = (MemberMetadata,)
