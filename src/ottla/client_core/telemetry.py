"""`Telemetry`: pushes the client's metrics to a cluster that asks for them (KIP-714).

A machine (`machine.py`). It asks any broker what the cluster subscribes to (GetTelemetrySubscriptions), pushes those metrics
every push interval (PushTelemetry), and asks again when the broker says that the subscription has changed. The first push after
a new subscription waits for 0.5 to 1.5 intervals, so that clients that were started together do not push together. `close`
makes it push once more, marked as the last.

What it does after an error:

    UNKNOWN_SUBSCRIPTION_ID, UNSUPPORTED_COMPRESSION_TYPE   ask for the subscription at once; do not use that codec again
    TELEMETRY_TOO_LARGE, THROTTLING_QUOTA_EXCEEDED          ask for the subscription after the push interval
    a lost connection, a timeout                            the same request again after the push interval, or 30 s
    no broker with the API, other errors when asking        ask again in 5 minutes
    anything else, such as INVALID_RECORD                   push nothing more: trying again would not help

It never asks more often than that, so a broker that answers nonsense does not keep the client busy.
"""

from __future__ import annotations

import logging
import math
import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Protocol

from ottla.client_core.machine import ANY_NODE, Request
from ottla.client_core.metrics.registry import MetricsRegistry, Tags
from ottla.errors import KafkaError, UnsupportedVersionError, exception_of
from ottla.errors.codes import ErrorCode, error_meaning
from ottla.ids import ZERO_UUID, Uuid, uuid_text
from ottla.records.compression import Codec, compress
from ottla.wire.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from ottla.wire.messages.push_telemetry import PushTelemetryRequest

logger = logging.getLogger("ottla.client.telemetry")


# What a client pushes to a cluster (KIP-714): the subscription, the metrics that it selects, and their deltas.
#
# With delta temporality a counter is pushed as its growth since the last push that a broker accepted. After a push with
# unknown outcome the next one holds its growth too: events may be counted twice, but are never lost.

# Encodes measurements as OpenTelemetry's MetricsData, the payload of PushTelemetry (KIP-714).
#
# Protocol buffers by hand, because the part that is needed is small: messages, strings, fixed64 and doubles. The fields that
# are written, by number (opentelemetry/proto/metrics/v1/metrics.proto):
#
#     MetricsData      1 ResourceMetrics*
#     ResourceMetrics  1 Resource        2 ScopeMetrics*
#     Resource         1 KeyValue*
#     ScopeMetrics     2 Metric*
#     Metric           1 name            5 Gauge              7 Sum
#     Gauge            1 NumberDataPoint*
#     Sum              1 NumberDataPoint*   2 temporality (1 delta, 2 cumulative)   3 is_monotonic
#     NumberDataPoint  2 start_time_unix_nano   3 time_unix_nano   4 as_double   6 as_int   7 KeyValue*
#     KeyValue         1 key             2 AnyValue (1 string_value)
#
# ExportMetricsServiceRequest has the same bytes as MetricsData. Data points of one metric are together in one Metric.

_DELTA, _CUMULATIVE = 1, 2
_INT64_MAX = (1 << 63) - 1
_NS_PER_MS = 1_000_000
_FIXED64 = struct.Struct("<Q").pack
_SFIXED64 = struct.Struct("<q").pack
_DOUBLE = struct.Struct("<d").pack


class DataPoint(NamedTuple):
    """One number of one metric."""

    metric: str
    attributes: tuple[tuple[str, str], ...]
    value: float
    is_counter: bool
    start_unix_ms: int = 0
    """Of a counter: since when it counts. With delta temporality that is the previous push."""


def encode_metrics(points: Iterable[DataPoint], resource: Mapping[str, str], time_unix_ms: int, *, is_delta: bool) -> bytes:
    """The payload of one push; `resource` are the attributes of the client itself."""
    time = b"\x19" + _FIXED64(time_unix_ms * _NS_PER_MS)
    metrics: dict[tuple[str, bool], list[bytes]] = {}
    for point in points:
        metrics.setdefault((point.metric, point.is_counter), []).append(_message(1, _data_point(point, time)))
    # Temporality and monotonicity follow the points of a sum.
    sum_end = bytes((0x10, _DELTA if is_delta else _CUMULATIVE, 0x18, 1))
    scope = b"".join(
        _message(
            2,
            _string(1, name) + (_message(7, b"".join(encoded) + sum_end) if is_counter else _message(5, b"".join(encoded))),
        )
        for (name, is_counter), encoded in metrics.items()
    )
    return _message(1, _message(1, _attributes(1, resource.items())) + _message(2, scope))


def _data_point(point: DataPoint, time: bytes) -> bytes:
    start = b"\x11" + _FIXED64(point.start_unix_ms * _NS_PER_MS) if point.is_counter else b""
    value = point.value
    is_int = isinstance(value, int) and abs(value) <= _INT64_MAX
    number = b"\x31" + _SFIXED64(int(value)) if is_int else b"\x21" + _DOUBLE(value)
    return start + time + number + _attributes(7, point.attributes)


def _attributes(field: int, attributes: Iterable[tuple[str, str]]) -> bytes:
    return b"".join(_message(field, _string(1, key) + _message(2, _string(1, value))) for key, value in attributes)


def _string(field: int, text: str) -> bytes:
    return _message(field, text.encode("utf-8", "replace"))


def _message(field: int, content: bytes) -> bytes:
    """A field of wire type 2: tag, length, bytes. All field numbers here are below 16, so the tag is one byte."""
    return bytes((field << 3 | 2,)) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


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


RETRY_MS = 30_000
"""Until the next attempt if no broker could be asked yet."""
_PRECISION = 1_000

_ASK_AT_ONCE = (ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
_ASK_LATER = (ErrorCode.TELEMETRY_TOO_LARGE, ErrorCode.THROTTLING_QUOTA_EXCEEDED)
_GIVE_UP = (ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_RECORD, ErrorCode.UNSUPPORTED_VERSION)


class TelemetrySettings(Protocol):
    """The settings that telemetry depends on; every client has them."""

    @property
    def enable_metrics_push(self) -> bool: ...


class Telemetry:
    """Pushes metrics until it is closed, or a broker refuses them for good."""

    def __init__(
        self,
        settings: TelemetrySettings,
        metrics: MetricsRegistry,
        random_below: Callable[[int], int],
        unix_ms: Callable[[], int],
        *,
        started_ms: int | None = None,
        resource: dict[str, str] | None = None,
    ) -> None:
        """`started_ms`: since when the metrics count, by the wall clock; now by default. For `resource` see there."""
        self.client_instance_id: Uuid | None = None
        """The id that the cluster gave this client; None until it did."""
        self.subscription: Subscription | None = None
        self.refusal: str | None = None
        """Why nothing is pushed any more; None while telemetry works or may work again."""
        self.failure: KafkaError | None = None
        """Why the last question for the subscription failed; None after an answer."""
        self._random_below = random_below
        self._unix_ms = unix_ms
        """The wall clock, for the times inside the payload."""
        self._is_enabled = settings.enable_metrics_push
        self._is_push_next = False
        self._is_in_flight = False
        self._due_ms: int | None = None
        self._refused_codecs: set[Codec] = set()
        self._payloads = TelemetryPayloads(metrics, unix_ms() if started_ms is None else started_ms)
        if resource is not None:
            self._payloads.resource = resource
        self.is_closing = False
        """Whether `close` was called."""
        self._is_last_sent = False

    # For the owner

    @property
    def resource(self) -> dict[str, str]:
        """Attributes of the client that go with every push, to be changed in place.

        transactional_id, group_id, group_instance_id, group_member_id, client_rack: those that the client has.
        """
        return self._payloads.resource

    def close(self) -> None:
        """Push once more, if the cluster wants metrics. Wake the runner, then wait for `is_closed`, but not for long."""
        self.is_closing = True

    @property
    def is_closed(self) -> bool:
        """Whether nothing is left to send after `close`."""
        is_pushing = self._is_in_flight and self._is_push_next
        return self.is_closing and not is_pushing and not self._has_last_push

    @property
    def _has_last_push(self) -> bool:
        """Whether a last push can and should be sent: without a valid subscription there is no place for it."""
        return self._is_working and self._is_push_next and not self._is_last_sent

    @property
    def _is_working(self) -> bool:
        return self._is_enabled and self.refusal is None

    # Machine

    def step(self, now_ms: int) -> list[Request]:
        if self._is_in_flight or not self._is_working:
            return []
        if self.is_closing:
            return [self._push(now_ms)] if self._has_last_push else []
        if self._due_ms is not None and now_ms < self._due_ms:
            return []
        return [self._push(now_ms) if self._is_push_next else self._ask()]

    def next_deadline_ms(self) -> int | None:
        if self._is_in_flight or not self._is_working:
            return None
        if self.is_closing:
            return 0 if self._has_last_push else None
        return self._due_ms or 0

    def answered(self, request: Request, response: Any, version: int, now_ms: int) -> None:
        if isinstance(request.context, Payload):
            self._push_answered(request.context, response.error_code, now_ms)
        elif response.error_code:
            self.failure = exception_of(response.error_code)
            self._ask_refused(response.error_code, now_ms)
        else:
            self._subscribe(response, now_ms)
        self._is_in_flight = False
        if response.throttle_time_ms > 0 and self._due_ms is not None:
            self._due_ms = max(self._due_ms, now_ms + response.throttle_time_ms)

    def failed(self, request: Request, error: KafkaError, now_ms: int) -> None:
        self._is_in_flight = False
        self.failure = error
        if isinstance(error, UnsupportedVersionError):
            # No broker with a receiver of client metrics is found; another one may have it, or get it.
            self._ask_after(DEFAULT_INTERVAL_MS, now_ms)
        elif error.is_retriable:
            self._due_ms = now_ms + (self._interval_ms if self.subscription is not None else RETRY_MS)
        else:
            self._give_up(str(error))

    # Subscriptions

    @property
    def _interval_ms(self) -> int:
        return DEFAULT_INTERVAL_MS if self.subscription is None else self.subscription.interval_ms

    def _ask(self) -> Request:
        self._is_in_flight = True
        return Request(GetTelemetrySubscriptionsRequest(client_instance_id=self.client_instance_id or ZERO_UUID), ANY_NODE)

    def _ask_after(self, wait_ms: int, now_ms: int) -> None:
        self._is_push_next = False
        self._due_ms = now_ms + wait_ms

    def _subscribe(self, response: GetTelemetrySubscriptionsResponse, now_ms: int) -> None:
        if self.is_closing:
            return
        self.failure = None
        if self.client_instance_id is None:
            if response.client_instance_id == ZERO_UUID:
                self._give_up("the broker gave this client no instance id")
                return
            self.client_instance_id = response.client_instance_id
            logger.info("the cluster knows this client's metrics by the instance id %s", uuid_text(self.client_instance_id))
        old, new = self.subscription, subscription_of(response)
        self.subscription = new
        if old is not None and old.is_delta != new.is_delta:
            self._payloads.start_over()
        if new.prefixes:
            self._is_push_next = True
            chance = self._random_below(_PRECISION + 1)
            self._due_ms = now_ms + new.interval_ms // 2 + new.interval_ms * chance // _PRECISION
        else:
            self._ask_after(new.interval_ms, now_ms)

    def _ask_refused(self, code: int, now_ms: int) -> None:
        if code in _GIVE_UP:
            self._give_up(error_meaning(code))
        else:
            self._ask_after(self._interval_ms if code in _ASK_LATER else DEFAULT_INTERVAL_MS, now_ms)

    def _give_up(self, reason: str) -> None:
        self.refusal = reason
        self._due_ms = None
        logger.warning("metrics are no longer pushed to the cluster: %s", reason)

    # Pushes

    def _push(self, now_ms: int) -> Request:
        subscription = self.subscription
        assert subscription is not None, "a push follows a subscription"
        codec = next((each for each in subscription.codecs if each not in self._refused_codecs), Codec.NONE)
        payload = self._payloads.make(subscription, codec, now_ms, self._unix_ms())
        self._is_in_flight = True
        self._is_last_sent = self.is_closing
        message = PushTelemetryRequest(
            client_instance_id=self.client_instance_id or ZERO_UUID,
            subscription_id=subscription.id,
            terminating=self.is_closing,
            compression_type=codec,
            metrics=payload.content,
        )
        return Request(message, ANY_NODE, context=payload)

    def _push_answered(self, payload: Payload, code: int, now_ms: int) -> None:
        if not code:
            self._payloads.accepted(payload)
            self._due_ms = now_ms + self._interval_ms
        elif code in _ASK_AT_ONCE:
            if code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE:
                self._refused_codecs.add(payload.codec)
            self._ask_after(0, now_ms)
        elif code in _ASK_LATER:
            self._ask_after(self._interval_ms, now_ms)
        else:
            self._give_up(error_meaning(code))
