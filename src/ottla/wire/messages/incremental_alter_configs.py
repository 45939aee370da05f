"""IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.wire.base import EMPTY, Message, Struct


class AlterableConfig(Struct):
    __slots__ = ("name", "config_operation", "value")

    def __init__(
        self,
        *,
        name: str = "",
        config_operation: int = 0,
        value: str | None = "",
    ) -> None:
        self.name = name
        self.config_operation = config_operation
        self.value = value
        self.unknown_tags = None


class AlterConfigsResource(Struct):
    __slots__ = ("resource_type", "resource_name", "configs")

    def __init__(
        self,
        *,
        resource_type: int = 0,
        resource_name: str = "",
        configs: list[AlterableConfig] = EMPTY,
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.configs = [] if configs is EMPTY else configs
        self.unknown_tags = None


class IncrementalAlterConfigsRequest(Message):
    __slots__ = ("resources", "validate_only")

    def __init__(
        self,
        *,
        resources: list[AlterConfigsResource] = EMPTY,
        validate_only: bool = False,
    ) -> None:
        self.resources = [] if resources is EMPTY else resources
        self.validate_only = validate_only
        self.unknown_tags = None

    KEY = 44
    SCHEMA = """\
IncrementalAlterConfigsRequest key=44 type=request listeners=broker,controller versions=0-1 flexible=1+
  Resources []AlterConfigsResource 0+
    ResourceType int8 0+ key
    ResourceName string 0+ key
    Configs []AlterableConfig 0+
      Name string 0+ key
      ConfigOperation int8 0+ key
      Value string 0+ nullable=0+
  ValidateOnly bool 0+
"""
    STRUCTS = (AlterConfigsResource, AlterableConfig)


class AlterConfigsResourceResponse(Struct):
    __slots__ = ("error_code", "error_message", "resource_type", "resource_name")

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        resource_type: int = 0,
        resource_name: str = "",
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.unknown_tags = None


class IncrementalAlterConfigsResponse(Message):
    __slots__ = ("throttle_time_ms", "responses")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        responses: list[AlterConfigsResourceResponse] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.responses = [] if responses is EMPTY else responses
        self.unknown_tags = None

    KEY = 44
    SCHEMA = """\
IncrementalAlterConfigsResponse key=44 type=response versions=0-1 flexible=1+
  ThrottleTimeMs int32 0+
  Responses []AlterConfigsResourceResponse 0+
    ErrorCode int16 0+
    ErrorMessage string 0+ nullable=0+
    ResourceType int8 0+
    ResourceName string 0+
"""
    STRUCTS = (AlterConfigsResourceResponse,)
