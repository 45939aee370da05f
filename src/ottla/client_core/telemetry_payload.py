"""What a client pushes to a cluster (KIP-714): the subscription, the metrics that it selects, and their deltas.

With delta temporality a counter is pushed as its growth since the last push that a broker accepted. After a push with unknown
outcome the next one holds its growth too: events may be counted twice, but are never lost.
"""

from __future__ import annotations

import logging
import math
from typing import NamedTuple

from ottla.client_core.metrics.registry import MetricsRegistry, Tags
from ottla.client_core.otlp import DataPoint, encode_metrics
from ottla.records.compression import Codec, compress
from ottla.wire.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsResponse

logger = logging.getLogger("ottla.client.telemetry")

DEFAULT_INTERVAL_MS = 300_000
"""Until a broker names another, and after errors that may pass."""
INTERVAL_MIN_MS = 100
"""The shortest push interval that Apache Kafka lets an operator set."""
_PREFIX = "org.apache.kafka"
_ALL = "*"

_MetricKey = tuple[str, Tags]


class Subscription(NamedTuple):
    """What the cluster wants to get."""

    id: int
    prefixes: tuple[str, ...]
    """Metrics whose names begin with one of them; none: nothing is pushed. A single "*" means all."""
    interval_ms: int
    codecs: tuple[Codec, ...]
    """Accepted codecs, the preferred one first; none: uncompressed."""
    bytes_max: int
    is_delta: bool

    def wants(self, name: str) -> bool:
        """Whether it asks for the metric."""
        return self.prefixes == (_ALL,) or name.startswith(self.prefixes)


def subscription_of(response: GetTelemetrySubscriptionsResponse) -> Subscription:
    """The subscription in a response without error. Codecs that are not known here are ignored."""
    interval_ms = response.push_interval_ms if response.push_interval_ms > 0 else DEFAULT_INTERVAL_MS
    known = frozenset(Codec)
    return Subscription(
        id=response.subscription_id,
        prefixes=tuple(response.requested_metrics),
        interval_ms=max(interval_ms, INTERVAL_MIN_MS),
        codecs=tuple(Codec(each) for each in response.accepted_compression_types if each in known),
        bytes_max=response.telemetry_max_bytes,
        is_delta=response.delta_temporality,
    )


class _Selected(NamedTuple):
    """A metric that the cluster wants, and its value to push."""

    key: _MetricKey
    value: float
    point: DataPoint


class Payload(NamedTuple):
    """The content of one push."""

    content: bytes
    """Encoded and compressed; empty if no metric was selected."""
    codec: Codec
    counters: dict[_MetricKey, float]
    unix_ms: int


class TelemetryPayloads:
    """Makes payloads, and remembers what was accepted."""

    def __init__(self, metrics: MetricsRegistry, unix_ms: int) -> None:
        self.resource: dict[str, str] = {}
        self._metrics = metrics
        self._started_unix_ms = unix_ms
        self._accepted: dict[_MetricKey, tuple[float, int]] = {}

    def accepted(self, payload: Payload) -> None:
        """A broker has taken it: deltas count from there."""
        self._accepted.update((key, (value, payload.unix_ms)) for key, value in payload.counters.items())

    def start_over(self) -> None:
        """The cluster wants the other temporality: deltas count from the start of the client."""
        self._accepted.clear()

    def make(self, subscription: Subscription, codec: Codec, now_ms: int, unix_ms: int) -> Payload:
        """The payload to push now: as many metrics as telemetry.max.bytes allows."""
        selected = self._selected(subscription, now_ms)
        content = b""
        while selected:
            points = [each.point for each in selected]
            encoded = encode_metrics(points, self.resource, unix_ms, is_delta=subscription.is_delta)
            content = bytes(compress(codec, encoded))
            if not 0 < subscription.bytes_max < len(content):
                break
            logger.warning(
                "%d metrics are %d bytes, and the cluster accepts %d (telemetry.max.bytes): the last half is not pushed",
                len(selected),
                len(content),
                subscription.bytes_max,
            )
            selected, content = selected[: len(selected) // 2], b""
        counters = {each.key: each.value for each in selected if each.point.is_counter}
        return Payload(content, codec, counters, unix_ms)

    def _selected(self, subscription: Subscription, now_ms: int) -> list[_Selected]:
        """The metrics to push. Metrics of the whole client come before those of a node, topic or partition."""
        selected: list[_Selected] = []
        for each in sorted(self._metrics.read(now_ms), key=lambda measurement: len(measurement.tags)):
            name = telemetry_name(each.group, each.name)
            if math.isnan(each.value) or not subscription.wants(name):
                continue
            before, since_unix_ms = 0.0, self._started_unix_ms
            if subscription.is_delta and each.is_counter:
                before, since_unix_ms = self._accepted.get((name, each.tags), (0, since_unix_ms))
            attributes = tuple((tag.replace("-", "_"), value) for tag, value in each.tags)
            value = each.value - before if before else each.value
            point = DataPoint(name, attributes, value, each.is_counter, since_unix_ms)
            selected.append(_Selected((name, each.tags), each.value, point))
        return selected


def telemetry_name(group: str, name: str) -> str:
    """The name in KIP-714, such as org.apache.kafka.producer.node.request.latency.avg in group producer-node-metrics."""
    return f"{_PREFIX}.{group.lower().replace('-', '.').replace('.metrics', '')}.{name.lower().replace('-', '.')}"
