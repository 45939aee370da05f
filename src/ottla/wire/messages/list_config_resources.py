"""ListConfigResourcesRequest, ListConfigResourcesResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.wire.base import EMPTY, Message, Struct


class ListConfigResourcesRequest(Message):
    __slots__ = ("resource_types",)

    def __init__(
        self,
        *,
        resource_types: list[int] = EMPTY,
    ) -> None:
        self.resource_types = [] if resource_types is EMPTY else resource_types
        self.unknown_tags = None

    KEY = 74
    SCHEMA = """\
ListConfigResourcesRequest key=74 type=request listeners=broker versions=0-1 flexible=0+
  ResourceTypes []int8 1+
"""
    STRUCTS = ()


class ConfigResource(Struct):
    __slots__ = ("resource_name", "resource_type")

    def __init__(
        self,
        *,
        resource_name: str = "",
        resource_type: int = 16,
    ) -> None:
        self.resource_name = resource_name
        self.resource_type = resource_type
        self.unknown_tags = None


class ListConfigResourcesResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "config_resources")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        config_resources: list[ConfigResource] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.config_resources = [] if config_resources is EMPTY else config_resources
        self.unknown_tags = None

    KEY = 74
    SCHEMA = """\
ListConfigResourcesResponse key=74 type=response versions=0-1 flexible=0+
  ThrottleTimeMs int32 0+
  ErrorCode int16 0+
  ConfigResources []ConfigResource 0+
    ResourceName string 0+
    ResourceType int8 1+ default=16 ignorable
"""
    STRUCTS = (ConfigResource,)
