"""Encodes measurements as OpenTelemetry's MetricsData, the payload of PushTelemetry (KIP-714).

Protocol buffers by hand, because the part that is needed is small: messages, strings, fixed64 and doubles. The fields that are
written, by number (opentelemetry/proto/metrics/v1/metrics.proto):

    MetricsData      1 ResourceMetrics*
    ResourceMetrics  1 Resource        2 ScopeMetrics*
    Resource         1 KeyValue*
    ScopeMetrics     2 Metric*
    Metric           1 name            5 Gauge              7 Sum
    Gauge            1 NumberDataPoint*
    Sum              1 NumberDataPoint*   2 temporality (1 delta, 2 cumulative)   3 is_monotonic
    NumberDataPoint  2 start_time_unix_nano   3 time_unix_nano   4 as_double   6 as_int   7 KeyValue*
    KeyValue         1 key             2 AnyValue (1 string_value)

ExportMetricsServiceRequest has the same bytes as MetricsData. Data points of one metric are together in one Metric.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import NamedTuple

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
