"""ExpireDelegationTokenRequest, ExpireDelegationTokenResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.wire.base import Message


class ExpireDelegationTokenRequest(Message):
    __slots__ = ("hmac", "expiry_time_period_ms")

    def __init__(
        self,
        *,
        hmac: bytes = b"",
        expiry_time_period_ms: int = 0,
    ) -> None:
        self.hmac = hmac
        self.expiry_time_period_ms = expiry_time_period_ms
        self.unknown_tags = None

    KEY = 40
    SCHEMA = """\
ExpireDelegationTokenRequest key=40 type=request listeners=broker,controller versions=1-2 flexible=2+
  Hmac bytes 0+
  ExpiryTimePeriodMs int64 0+
"""
    STRUCTS = ()


class ExpireDelegationTokenResponse(Message):
    __slots__ = ("error_code", "expiry_timestamp_ms", "throttle_time_ms")

    def __init__(
        self,
        *,
        error_code: int = 0,
        expiry_timestamp_ms: int = 0,
        throttle_time_ms: int = 0,
    ) -> None:
        self.error_code = error_code
        self.expiry_timestamp_ms = expiry_timestamp_ms
        self.throttle_time_ms = throttle_time_ms
        self.unknown_tags = None

    KEY = 40
    SCHEMA = """\
ExpireDelegationTokenResponse key=40 type=response versions=1-2 flexible=2+
  ErrorCode int16 0+
  ExpiryTimestampMs int64 0+
  ThrottleTimeMs int32 0+
"""
    STRUCTS = ()
