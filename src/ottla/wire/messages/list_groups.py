"""ListGroupsRequest, ListGroupsResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.wire.base import EMPTY, Message, Struct


class ListGroupsRequest(Message):
    __slots__ = ("states_filter", "types_filter")

    def __init__(
        self,
        *,
        states_filter: list[str] = EMPTY,
        types_filter: list[str] = EMPTY,
    ) -> None:
        self.states_filter = [] if states_filter is EMPTY else states_filter
        self.types_filter = [] if types_filter is EMPTY else types_filter
        self.unknown_tags = None

    KEY = 16
    SCHEMA = """\
ListGroupsRequest key=16 type=request listeners=broker versions=0-5 flexible=3+
  StatesFilter []string 4+
  TypesFilter []string 5+
"""
    STRUCTS = ()


class ListedGroup(Struct):
    __slots__ = ("group_id", "protocol_type", "group_state", "group_type")

    def __init__(
        self,
        *,
        group_id: str = "",
        protocol_type: str = "",
        group_state: str = "",
        group_type: str = "",
    ) -> None:
        self.group_id = group_id
        self.protocol_type = protocol_type
        self.group_state = group_state
        self.group_type = group_type
        self.unknown_tags = None


class ListGroupsResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "groups")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        groups: list[ListedGroup] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.groups = [] if groups is EMPTY else groups
        self.unknown_tags = None

    KEY = 16
    SCHEMA = """\
ListGroupsResponse key=16 type=response versions=0-5 flexible=3+
  ThrottleTimeMs int32 1+ ignorable
  ErrorCode int16 0+
  Groups []ListedGroup 0+
    GroupId string 0+ entity=groupId
    ProtocolType string 0+
    GroupState string 4+ ignorable
    GroupType string 5+ ignorable
"""
    STRUCTS = (ListedGroup,)
