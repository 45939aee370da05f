"""DescribeClientQuotasRequest, DescribeClientQuotasResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.wire.base import EMPTY, Message, Struct


class ComponentData(Struct):
    __slots__ = ("entity_type", "match_type", "match")

    def __init__(
        self,
        *,
        entity_type: str = "",
        match_type: int = 0,
        match: str | None = "",
    ) -> None:
        self.entity_type = entity_type
        self.match_type = match_type
        self.match = match
        self.unknown_tags = None


class DescribeClientQuotasRequest(Message):
    __slots__ = ("components", "strict")

    def __init__(
        self,
        *,
        components: list[ComponentData] = EMPTY,
        strict: bool = False,
    ) -> None:
        self.components = [] if components is EMPTY else components
        self.strict = strict
        self.unknown_tags = None

    KEY = 48
    SCHEMA = """\
DescribeClientQuotasRequest key=48 type=request listeners=broker versions=0-1 flexible=1+
  Components []ComponentData 0+
    EntityType string 0+
    MatchType int8 0+
    Match string 0+ nullable=0+
  Strict bool 0+
"""
    STRUCTS = (ComponentData,)


class ValueData(Struct):
    __slots__ = ("key", "value")

    def __init__(
        self,
        *,
        key: str = "",
        value: float = 0.0,
    ) -> None:
        self.key = key
        self.value = value
        self.unknown_tags = None


class EntityData(Struct):
    __slots__ = ("entity_type", "entity_name")

    def __init__(
        self,
        *,
        entity_type: str = "",
        entity_name: str | None = "",
    ) -> None:
        self.entity_type = entity_type
        self.entity_name = entity_name
        self.unknown_tags = None


class EntryData(Struct):
    __slots__ = ("entity", "values")

    def __init__(
        self,
        *,
        entity: list[EntityData] = EMPTY,
        values: list[ValueData] = EMPTY,
    ) -> None:
        self.entity = [] if entity is EMPTY else entity
        self.values = [] if values is EMPTY else values
        self.unknown_tags = None


class DescribeClientQuotasResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "entries")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        entries: list[EntryData] | None = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.entries = [] if entries is EMPTY else entries
        self.unknown_tags = None

    KEY = 48
    SCHEMA = """\
DescribeClientQuotasResponse key=48 type=response versions=0-1 flexible=1+
  ThrottleTimeMs int32 0+
  ErrorCode int16 0+
  ErrorMessage string 0+ nullable=0+
  Entries []EntryData 0+ nullable=0+
    Entity []EntityData 0+
      EntityType string 0+
      EntityName string 0+ nullable=0+
    Values []ValueData 0+
      Key string 0+
      Value float64 0+
"""
    STRUCTS = (EntryData, EntityData, ValueData)
