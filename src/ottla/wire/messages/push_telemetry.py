"""PushTelemetryRequest, PushTelemetryResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.ids import ZERO_UUID, Uuid
from ottla.wire.base import Bytes, Message


class PushTelemetryRequest(Message):
    __slots__ = ("client_instance_id", "subscription_id", "terminating", "compression_type", "metrics")

    def __init__(
        self,
        *,
        client_instance_id: Uuid = ZERO_UUID,
        subscription_id: int = 0,
        terminating: bool = False,
        compression_type: int = 0,
        metrics: Bytes = b"",
    ) -> None:
        self.client_instance_id = client_instance_id
        self.subscription_id = subscription_id
        self.terminating = terminating
        self.compression_type = compression_type
        self.metrics = metrics
        self.unknown_tags = None

    KEY = 72
    SCHEMA = """\
PushTelemetryRequest key=72 type=request listeners=broker versions=0 flexible=0+
  ClientInstanceId uuid 0+
  SubscriptionId int32 0+
  Terminating bool 0+
  CompressionType int8 0+
  Metrics bytes 0+ zerocopy
"""
    STRUCTS = ()


class PushTelemetryResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.unknown_tags = None

    KEY = 72
    SCHEMA = """\
PushTelemetryResponse key=72 type=response versions=0 flexible=0+
  ThrottleTimeMs int32 0+
  ErrorCode int16 0+
"""
    STRUCTS = ()
