"""GetTelemetrySubscriptionsRequest, GetTelemetrySubscriptionsResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.ids import ZERO_UUID, Uuid
from ottla.wire.base import EMPTY, Message


class GetTelemetrySubscriptionsRequest(Message):
    __slots__ = ("client_instance_id",)

    def __init__(
        self,
        *,
        client_instance_id: Uuid = ZERO_UUID,
    ) -> None:
        self.client_instance_id = client_instance_id
        self.unknown_tags = None

    KEY = 71
    SCHEMA = """\
GetTelemetrySubscriptionsRequest key=71 type=request listeners=broker versions=0 flexible=0+
  ClientInstanceId uuid 0+
"""
    STRUCTS = ()


class GetTelemetrySubscriptionsResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "client_instance_id", "subscription_id", "accepted_compression_types", "push_interval_ms", "telemetry_max_bytes", "delta_temporality", "requested_metrics")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        client_instance_id: Uuid = ZERO_UUID,
        subscription_id: int = 0,
        accepted_compression_types: list[int] = EMPTY,
        push_interval_ms: int = 0,
        telemetry_max_bytes: int = 0,
        delta_temporality: bool = False,
        requested_metrics: list[str] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.client_instance_id = client_instance_id
        self.subscription_id = subscription_id
        self.accepted_compression_types = [] if accepted_compression_types is EMPTY else accepted_compression_types
        self.push_interval_ms = push_interval_ms
        self.telemetry_max_bytes = telemetry_max_bytes
        self.delta_temporality = delta_temporality
        self.requested_metrics = [] if requested_metrics is EMPTY else requested_metrics
        self.unknown_tags = None

    KEY = 71
    SCHEMA = """\
GetTelemetrySubscriptionsResponse key=71 type=response versions=0 flexible=0+
  ThrottleTimeMs int32 0+
  ErrorCode int16 0+
  ClientInstanceId uuid 0+
  SubscriptionId int32 0+
  AcceptedCompressionTypes []int8 0+
  PushIntervalMs int32 0+
  TelemetryMaxBytes int32 0+
  DeltaTemporality bool 0+
  RequestedMetrics []string 0+
"""
    STRUCTS = ()
