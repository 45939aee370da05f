"""DescribeAclsRequest, DescribeAclsResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.wire.base import EMPTY, Message, Struct


class DescribeAclsRequest(Message):
    __slots__ = ("resource_type_filter", "resource_name_filter", "pattern_type_filter", "principal_filter", "host_filter", "operation", "permission_type")

    def __init__(
        self,
        *,
        resource_type_filter: int = 0,
        resource_name_filter: str | None = "",
        pattern_type_filter: int = 3,
        principal_filter: str | None = "",
        host_filter: str | None = "",
        operation: int = 0,
        permission_type: int = 0,
    ) -> None:
        self.resource_type_filter = resource_type_filter
        self.resource_name_filter = resource_name_filter
        self.pattern_type_filter = pattern_type_filter
        self.principal_filter = principal_filter
        self.host_filter = host_filter
        self.operation = operation
        self.permission_type = permission_type
        self.unknown_tags = None

    KEY = 29
    SCHEMA = """\
DescribeAclsRequest key=29 type=request listeners=broker,controller versions=1-3 flexible=2+
  ResourceTypeFilter int8 0+
  ResourceNameFilter string 0+ nullable=0+
  PatternTypeFilter int8 1+ default=3
  PrincipalFilter string 0+ nullable=0+
  HostFilter string 0+ nullable=0+
  Operation int8 0+
  PermissionType int8 0+
"""
    STRUCTS = ()


class AclDescription(Struct):
    __slots__ = ("principal", "host", "operation", "permission_type")

    def __init__(
        self,
        *,
        principal: str = "",
        host: str = "",
        operation: int = 0,
        permission_type: int = 0,
    ) -> None:
        self.principal = principal
        self.host = host
        self.operation = operation
        self.permission_type = permission_type
        self.unknown_tags = None


class DescribeAclsResource(Struct):
    __slots__ = ("resource_type", "resource_name", "pattern_type", "acls")

    def __init__(
        self,
        *,
        resource_type: int = 0,
        resource_name: str = "",
        pattern_type: int = 3,
        acls: list[AclDescription] = EMPTY,
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.pattern_type = pattern_type
        self.acls = [] if acls is EMPTY else acls
        self.unknown_tags = None


class DescribeAclsResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "resources")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        resources: list[DescribeAclsResource] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.resources = [] if resources is EMPTY else resources
        self.unknown_tags = None

    KEY = 29
    SCHEMA = """\
DescribeAclsResponse key=29 type=response versions=1-3 flexible=2+
  ThrottleTimeMs int32 0+
  ErrorCode int16 0+
  ErrorMessage string 0+ nullable=0+
  Resources []DescribeAclsResource 0+
    ResourceType int8 0+
    ResourceName string 0+
    PatternType int8 1+ default=3
    Acls []AclDescription 0+
      Principal string 0+
      Host string 0+
      Operation int8 0+
      PermissionType int8 0+
"""
    STRUCTS = (DescribeAclsResource, AclDescription)
