"""SaslAuthenticateRequest, SaslAuthenticateResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.wire.base import Message


class SaslAuthenticateRequest(Message):
    __slots__ = ("auth_bytes",)

    def __init__(
        self,
        *,
        auth_bytes: bytes = b"",
    ) -> None:
        self.auth_bytes = auth_bytes
        self.unknown_tags = None

    KEY = 36
    SCHEMA = """\
SaslAuthenticateRequest key=36 type=request listeners=broker,controller versions=0-2 flexible=2+
  AuthBytes bytes 0+
"""
    STRUCTS = ()


class SaslAuthenticateResponse(Message):
    __slots__ = ("error_code", "error_message", "auth_bytes", "session_lifetime_ms")

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        auth_bytes: bytes = b"",
        session_lifetime_ms: int = 0,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.auth_bytes = auth_bytes
        self.session_lifetime_ms = session_lifetime_ms
        self.unknown_tags = None

    KEY = 36
    SCHEMA = """\
SaslAuthenticateResponse key=36 type=response versions=0-2 flexible=2+
  ErrorCode int16 0+
  ErrorMessage string 0+ nullable=0+
  AuthBytes bytes 0+
  SessionLifetimeMs int64 1+ default=0 ignorable
"""
    STRUCTS = ()
