"""UnregisterBrokerRequest, UnregisterBrokerResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.wire.base import Message


class UnregisterBrokerRequest(Message):
    __slots__ = ("broker_id",)

    def __init__(
        self,
        *,
        broker_id: int = 0,
    ) -> None:
        self.broker_id = broker_id
        self.unknown_tags = None

    KEY = 64
    SCHEMA = """\
UnregisterBrokerRequest key=64 type=request listeners=broker,controller versions=0 flexible=0+
  BrokerId int32 0+ entity=brokerId
"""
    STRUCTS = ()


class UnregisterBrokerResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.unknown_tags = None

    KEY = 64
    SCHEMA = """\
UnregisterBrokerResponse key=64 type=response versions=0 flexible=0+
  ThrottleTimeMs int32 0+
  ErrorCode int16 0+
  ErrorMessage string 0+ nullable=0+
"""
    STRUCTS = ()
