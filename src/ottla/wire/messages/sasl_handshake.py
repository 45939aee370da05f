"""SaslHandshakeRequest, SaslHandshakeResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.wire.base import EMPTY, Message


class SaslHandshakeRequest(Message):
    __slots__ = ("mechanism",)

    def __init__(
        self,
        *,
        mechanism: str = "",
    ) -> None:
        self.mechanism = mechanism
        self.unknown_tags = None

    KEY = 17
    SCHEMA = """\
SaslHandshakeRequest key=17 type=request listeners=broker,controller versions=0-1 flexible=none
  Mechanism string 0+
"""
    STRUCTS = ()


class SaslHandshakeResponse(Message):
    __slots__ = ("error_code", "mechanisms")

    def __init__(
        self,
        *,
        error_code: int = 0,
        mechanisms: list[str] = EMPTY,
    ) -> None:
        self.error_code = error_code
        self.mechanisms = [] if mechanisms is EMPTY else mechanisms
        self.unknown_tags = None

    KEY = 17
    SCHEMA = """\
SaslHandshakeResponse key=17 type=response versions=0-1 flexible=none
  ErrorCode int16 0+
  Mechanisms []string 0+
"""
    STRUCTS = ()
