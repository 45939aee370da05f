"""DescribeConfigsRequest, DescribeConfigsResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.wire.base import EMPTY, Message, Struct


class DescribeConfigsResource(Struct):
    __slots__ = ("resource_type", "resource_name", "configuration_keys")

    def __init__(
        self,
        *,
        resource_type: int = 0,
        resource_name: str = "",
        configuration_keys: list[str] | None = EMPTY,
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.configuration_keys = [] if configuration_keys is EMPTY else configuration_keys
        self.unknown_tags = None


class DescribeConfigsRequest(Message):
    __slots__ = ("resources", "include_synonyms", "include_documentation")

    def __init__(
        self,
        *,
        resources: list[DescribeConfigsResource] = EMPTY,
        include_synonyms: bool = False,
        include_documentation: bool = False,
    ) -> None:
        self.resources = [] if resources is EMPTY else resources
        self.include_synonyms = include_synonyms
        self.include_documentation = include_documentation
        self.unknown_tags = None

    KEY = 32
    SCHEMA = """\
DescribeConfigsRequest key=32 type=request listeners=broker,controller versions=1-4 flexible=4+
  Resources []DescribeConfigsResource 0+
    ResourceType int8 0+
    ResourceName string 0+
    ConfigurationKeys []string 0+ nullable=0+
  IncludeSynonyms bool 1+ default=false
  IncludeDocumentation bool 3+ default=false
"""
    STRUCTS = (DescribeConfigsResource,)


class DescribeConfigsSynonym(Struct):
    __slots__ = ("name", "value", "source")

    def __init__(
        self,
        *,
        name: str = "",
        value: str | None = "",
        source: int = 0,
    ) -> None:
        self.name = name
        self.value = value
        self.source = source
        self.unknown_tags = None


class DescribeConfigsResourceResult(Struct):
    __slots__ = ("name", "value", "read_only", "config_source", "is_sensitive", "synonyms", "config_type", "documentation")

    def __init__(
        self,
        *,
        name: str = "",
        value: str | None = "",
        read_only: bool = False,
        config_source: int = -1,
        is_sensitive: bool = False,
        synonyms: list[DescribeConfigsSynonym] = EMPTY,
        config_type: int = 0,
        documentation: str | None = "",
    ) -> None:
        self.name = name
        self.value = value
        self.read_only = read_only
        self.config_source = config_source
        self.is_sensitive = is_sensitive
        self.synonyms = [] if synonyms is EMPTY else synonyms
        self.config_type = config_type
        self.documentation = documentation
        self.unknown_tags = None


class DescribeConfigsResult(Struct):
    __slots__ = ("error_code", "error_message", "resource_type", "resource_name", "configs")

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        resource_type: int = 0,
        resource_name: str = "",
        configs: list[DescribeConfigsResourceResult] = EMPTY,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.configs = [] if configs is EMPTY else configs
        self.unknown_tags = None


class DescribeConfigsResponse(Message):
    __slots__ = ("throttle_time_ms", "results")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[DescribeConfigsResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is EMPTY else results
        self.unknown_tags = None

    KEY = 32
    SCHEMA = """\
DescribeConfigsResponse key=32 type=response versions=1-4 flexible=4+
  ThrottleTimeMs int32 0+
  Results []DescribeConfigsResult 0+
    ErrorCode int16 0+
    ErrorMessage string 0+ nullable=0+
    ResourceType int8 0+
    ResourceName string 0+
    Configs []DescribeConfigsResourceResult 0+
      Name string 0+
      Value string 0+ nullable=0+
      ReadOnly bool 0+
      ConfigSource int8 1+ default=-1 ignorable
      IsSensitive bool 0+
      Synonyms []DescribeConfigsSynonym 1+ ignorable
        Name string 1+
        Value string 1+ nullable=0+
        Source int8 1+
      ConfigType int8 3+ default=0 ignorable
      Documentation string 3+ nullable=0+ ignorable
"""
    STRUCTS = (DescribeConfigsResult, DescribeConfigsResourceResult, DescribeConfigsSynonym)
