"""DeleteGroupsRequest, DeleteGroupsResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.wire.base import EMPTY, Message, Struct


class DeleteGroupsRequest(Message):
    __slots__ = ("groups_names",)

    def __init__(
        self,
        *,
        groups_names: list[str] = EMPTY,
    ) -> None:
        self.groups_names = [] if groups_names is EMPTY else groups_names
        self.unknown_tags = None

    KEY = 42
    SCHEMA = """\
DeleteGroupsRequest key=42 type=request listeners=broker versions=0-2 flexible=2+
  GroupsNames []string 0+ entity=groupId
"""
    STRUCTS = ()


class DeletableGroupResult(Struct):
    __slots__ = ("group_id", "error_code")

    def __init__(
        self,
        *,
        group_id: str = "",
        error_code: int = 0,
    ) -> None:
        self.group_id = group_id
        self.error_code = error_code
        self.unknown_tags = None


class DeleteGroupsResponse(Message):
    __slots__ = ("throttle_time_ms", "results")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[DeletableGroupResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is EMPTY else results
        self.unknown_tags = None

    KEY = 42
    SCHEMA = """\
DeleteGroupsResponse key=42 type=response versions=0-2 flexible=2+
  ThrottleTimeMs int32 0+
  Results []DeletableGroupResult 0+
    GroupId string 0+ key entity=groupId
    ErrorCode int16 0+
"""
    STRUCTS = (DeletableGroupResult,)
