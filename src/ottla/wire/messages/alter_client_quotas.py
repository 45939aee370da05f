"""AlterClientQuotasRequest, AlterClientQuotasResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.wire.base import EMPTY, Message, Struct


class OpData(Struct):
    __slots__ = ("key", "value", "remove")

    def __init__(
        self,
        *,
        key: str = "",
        value: float = 0.0,
        remove: bool = False,
    ) -> None:
        self.key = key
        self.value = value
        self.remove = remove
        self.unknown_tags = None


class AlterClientQuotasRequestEntityData(Struct):
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


class AlterClientQuotasRequestEntryData(Struct):
    __slots__ = ("entity", "ops")

    def __init__(
        self,
        *,
        entity: list[AlterClientQuotasRequestEntityData] = EMPTY,
        ops: list[OpData] = EMPTY,
    ) -> None:
        self.entity = [] if entity is EMPTY else entity
        self.ops = [] if ops is EMPTY else ops
        self.unknown_tags = None


class AlterClientQuotasRequest(Message):
    __slots__ = ("entries", "validate_only")

    def __init__(
        self,
        *,
        entries: list[AlterClientQuotasRequestEntryData] = EMPTY,
        validate_only: bool = False,
    ) -> None:
        self.entries = [] if entries is EMPTY else entries
        self.validate_only = validate_only
        self.unknown_tags = None

    KEY = 49
    SCHEMA = """\
AlterClientQuotasRequest key=49 type=request listeners=broker,controller versions=0-1 flexible=1+
  Entries []EntryData 0+
    Entity []EntityData 0+
      EntityType string 0+
      EntityName string 0+ nullable=0+
    Ops []OpData 0+
      Key string 0+
      Value float64 0+
      Remove bool 0+
  ValidateOnly bool 0+
"""
    STRUCTS = (AlterClientQuotasRequestEntryData, AlterClientQuotasRequestEntityData, OpData)


class AlterClientQuotasResponseEntityData(Struct):
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


class AlterClientQuotasResponseEntryData(Struct):
    __slots__ = ("error_code", "error_message", "entity")

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        entity: list[AlterClientQuotasResponseEntityData] = EMPTY,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.entity = [] if entity is EMPTY else entity
        self.unknown_tags = None


class AlterClientQuotasResponse(Message):
    __slots__ = ("throttle_time_ms", "entries")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        entries: list[AlterClientQuotasResponseEntryData] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.entries = [] if entries is EMPTY else entries
        self.unknown_tags = None

    KEY = 49
    SCHEMA = """\
AlterClientQuotasResponse key=49 type=response versions=0-1 flexible=1+
  ThrottleTimeMs int32 0+
  Entries []EntryData 0+
    ErrorCode int16 0+
    ErrorMessage string 0+ nullable=0+
    Entity []EntityData 0+
      EntityType string 0+
      EntityName string 0+ nullable=0+
"""
    STRUCTS = (AlterClientQuotasResponseEntryData, AlterClientQuotasResponseEntityData)
