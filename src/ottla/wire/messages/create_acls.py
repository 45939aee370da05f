"""CreateAclsRequest, CreateAclsResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.wire.base import EMPTY, Message, Struct


class AclCreation(Struct):
    __slots__ = ("resource_type", "resource_name", "resource_pattern_type", "principal", "host", "operation", "permission_type")

    def __init__(
        self,
        *,
        resource_type: int = 0,
        resource_name: str = "",
        resource_pattern_type: int = 3,
        principal: str = "",
        host: str = "",
        operation: int = 0,
        permission_type: int = 0,
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.resource_pattern_type = resource_pattern_type
        self.principal = principal
        self.host = host
        self.operation = operation
        self.permission_type = permission_type
        self.unknown_tags = None


class CreateAclsRequest(Message):
    __slots__ = ("creations",)

    def __init__(
        self,
        *,
        creations: list[AclCreation] = EMPTY,
    ) -> None:
        self.creations = [] if creations is EMPTY else creations
        self.unknown_tags = None

    KEY = 30
    SCHEMA = """\
CreateAclsRequest key=30 type=request listeners=broker,controller versions=1-3 flexible=2+
  Creations []AclCreation 0+
    ResourceType int8 0+
    ResourceName string 0+
    ResourcePatternType int8 1+ default=3
    Principal string 0+
    Host string 0+
    Operation int8 0+
    PermissionType int8 0+
"""
    STRUCTS = (AclCreation,)


class AclCreationResult(Struct):
    __slots__ = ("error_code", "error_message")

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.unknown_tags = None


class CreateAclsResponse(Message):
    __slots__ = ("throttle_time_ms", "results")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[AclCreationResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is EMPTY else results
        self.unknown_tags = None

    KEY = 30
    SCHEMA = """\
CreateAclsResponse key=30 type=response versions=1-3 flexible=2+
  ThrottleTimeMs int32 0+
  Results []AclCreationResult 0+
    ErrorCode int16 0+
    ErrorMessage string 0+ nullable=0+
"""
    STRUCTS = (AclCreationResult,)
