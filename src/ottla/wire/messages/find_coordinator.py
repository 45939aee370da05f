"""FindCoordinatorRequest, FindCoordinatorResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.wire.base import EMPTY, Message, Struct


class FindCoordinatorRequest(Message):
    __slots__ = ("key", "key_type", "coordinator_keys")

    def __init__(
        self,
        *,
        key: str = "",
        key_type: int = 0,
        coordinator_keys: list[str] = EMPTY,
    ) -> None:
        self.key = key
        self.key_type = key_type
        self.coordinator_keys = [] if coordinator_keys is EMPTY else coordinator_keys
        self.unknown_tags = None

    KEY = 10
    SCHEMA = """\
FindCoordinatorRequest key=10 type=request listeners=broker versions=0-6 flexible=3+
  Key string 0-3
  KeyType int8 1+ default=0
  CoordinatorKeys []string 4+
"""
    STRUCTS = ()


class Coordinator(Struct):
    __slots__ = ("key", "node_id", "host", "port", "error_code", "error_message")

    def __init__(
        self,
        *,
        key: str = "",
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.key = key
        self.node_id = node_id
        self.host = host
        self.port = port
        self.error_code = error_code
        self.error_message = error_message
        self.unknown_tags = None


class FindCoordinatorResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "node_id", "host", "port", "coordinators")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        coordinators: list[Coordinator] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.node_id = node_id
        self.host = host
        self.port = port
        self.coordinators = [] if coordinators is EMPTY else coordinators
        self.unknown_tags = None

    KEY = 10
    SCHEMA = """\
FindCoordinatorResponse key=10 type=response versions=0-6 flexible=3+
  ThrottleTimeMs int32 1+ ignorable
  ErrorCode int16 0-3
  ErrorMessage string 1-3 nullable=1-3 ignorable
  NodeId int32 0-3 entity=brokerId
  Host string 0-3
  Port int32 0-3
  Coordinators []Coordinator 4+
    Key string 4+
    NodeId int32 4+ entity=brokerId
    Host string 4+
    Port int32 4+
    ErrorCode int16 4+
    ErrorMessage string 4+ nullable=4+ ignorable
"""
    STRUCTS = (Coordinator,)
