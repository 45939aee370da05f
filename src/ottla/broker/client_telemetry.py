"""Client metrics (KIP-714): which subscription a client has, and what clients have pushed, for the page /metrics/clients.

The subscriptions are config resources of type client-metrics. A client asks any broker for its subscription
(GetTelemetrySubscriptions) and pushes to the same one (PushTelemetry): OpenTelemetry's MetricsData, compressed. Nothing of it
is durable: a client that comes to another broker gets the same subscription there, its id is computed from the settings.

Deltas are added up, so that counters on the page only grow. What is kept is bounded: `CLIENTS_MAX` clients, those that were
silent the longest go first; `POINTS_MAX` numbers in all, and `POINTS_OF_CLIENT_MAX` of one client. A client that says that it
ends is on the page no more; one that is silent for three intervals is forgotten. Patterns are matched by RE2, because clients
choose what they are matched with.

Pure but for the clock, which is passed in; one event loop.
"""

from __future__ import annotations

import logging
import re
import struct
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import re2

from ottla.config.client_metrics_keys import CLIENT_METRICS_KEYS
from ottla.errors import CorruptRecords, DecodeError, KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import Uuid, uuid_text
from ottla.records.checksum import crc32c
from ottla.records.compression import Codec, decompress

if TYPE_CHECKING:
    from ottla.metrics_text import MetricsText

logger = logging.getLogger("ottla.telemetry")

CODECS = (Codec.ZSTD, Codec.LZ4, Codec.GZIP, Codec.SNAPPY)
"""Accepted, in the order in which Kafka prefers them."""
DEFAULT_INTERVAL_MS = 300_000
CLIENTS_MAX = 16_384
POINTS_MAX = 200_000
POINTS_OF_CLIENT_MAX = 5_000
EXPANDED_BYTES_MAX = 16 * 1024 * 1024
RESERVED_IDS = 100
SILENT_INTERVALS = 3
_ALL = "*"
_PREFIX = "org.apache.kafka."


class ClientFacts(NamedTuple):
    """What subscriptions can match: the client, and the connection that it came by."""

    client_id: str
    client_instance_id: str
    client_software_name: str
    client_software_version: str
    client_source_address: str
    client_source_port: str


class Subscription(NamedTuple):
    """What a client is asked to push."""

    id: int
    metrics: tuple[str, ...]
    """Prefixes; `("*",)` for all, none for nothing."""
    interval_ms: int


class Point(NamedTuple):
    """One number that a client has pushed."""

    name: str
    attributes: tuple[tuple[str, str], ...]
    value: float
    is_counter: bool
    is_delta: bool


class _Client:
    """A client that asked or pushed."""

    __slots__ = ("asked_ms", "facts", "is_ending", "may_ask", "points", "pushed_ms", "resource", "seen_ms", "subscription")

    def __init__(self, facts: ClientFacts, subscription: Subscription) -> None:
        self.facts = facts
        self.subscription = subscription
        self.asked_ms: int | None = None
        self.pushed_ms: int | None = None
        self.seen_ms = 0
        self.is_ending = False
        self.may_ask = False
        """Its last push was refused because the subscription has changed: it may ask at once."""
        self.resource: dict[str, str] = {}
        self.points: dict[tuple[str, tuple[tuple[str, str], ...]], tuple[float, bool]] = {}


class ClientTelemetry:
    """The clients of one broker that push metrics."""

    def __init__(self) -> None:
        self._clients: dict[Uuid, _Client] = {}
        """By instance id; those that were seen last are last."""
        self.pushes = 0
        self.dropped_points = 0

    def __len__(self) -> int:
        return len(self._clients)

    # Requests

    def subscribe(
        self, instance_id: Uuid, facts: ClientFacts, configs: Mapping[str, Mapping[str, str]], now_ms: int
    ) -> Subscription:
        """The subscription of a client. Raises THROTTLING_QUOTA_EXCEEDED if it asks more often than it is to push."""
        client = self._client(instance_id, facts, configs, now_ms)
        too_early = client.asked_ms is not None and now_ms - client.asked_ms < client.subscription.interval_ms
        if too_early and not client.may_ask:
            raise KafkaError(
                ErrorCode.THROTTLING_QUOTA_EXCEEDED,
                f"client {facts.client_instance_id} asks again within its interval of {client.subscription.interval_ms} ms",
            )
        client.asked_ms, client.may_ask = now_ms, False
        client.facts = facts
        client.subscription = subscription_of(facts, configs)
        return client.subscription

    def check_push(
        self,
        instance_id: Uuid,
        facts: ClientFacts,
        configs: Mapping[str, Mapping[str, str]],
        subscription_id: int,
        codec: int,
        size_bytes: int,
        size_bytes_max: int,
        is_ending: bool,
        now_ms: int,
    ) -> None:
        """Raise the refusal of a push that does not fit, before its content is looked at."""
        if int.from_bytes(instance_id, "big") < RESERVED_IDS:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"{uuid_text(instance_id)} is no id of a client: ask for a subscription first"
            )
        client = self._client(instance_id, facts, configs, now_ms)
        if client.is_ending:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"client {facts.client_instance_id} has sent its last push already")
        too_early = client.pushed_ms is not None and now_ms - client.pushed_ms < client.subscription.interval_ms
        client.is_ending = is_ending
        if too_early and not is_ending:
            raise KafkaError(
                ErrorCode.THROTTLING_QUOTA_EXCEEDED,
                f"client {facts.client_instance_id} pushes again within its interval of {client.subscription.interval_ms} ms",
            )
        client.pushed_ms = now_ms
        current = subscription_of(facts, configs)
        if subscription_id != current.id:
            client.may_ask, client.pushed_ms = True, None
            raise KafkaError(ErrorCode.UNKNOWN_SUBSCRIPTION_ID, "the subscription has changed: ask for it again")
        if codec not in (Codec.NONE, *CODECS):
            raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"metrics compressed with codec {codec} are not accepted")
        if size_bytes > size_bytes_max:
            text = f"{size_bytes} bytes of metrics are more than telemetry.max.bytes={size_bytes_max} allows"
            raise KafkaError(ErrorCode.TELEMETRY_TOO_LARGE, text)

    def push(self, instance_id: Uuid, resource: Mapping[str, str], points: list[Point]) -> None:
        """Note what a client has pushed. Deltas are added to what it pushed before."""
        self.pushes += 1
        client = self._clients.get(instance_id)
        if client is None:
            return  # it was forgotten while its content was read
        client.resource = dict(resource)
        for point in points:
            key = point.name, point.attributes
            before = client.points.get(key)
            if before is None and len(client.points) >= POINTS_OF_CLIENT_MAX:
                self.dropped_points += 1
                continue
            value = point.value + (before[0] if before is not None and point.is_delta else 0)
            client.points[key] = value, point.is_counter
        if client.is_ending:
            client.points.clear()
        self._bound()

    def _client(self, instance_id: Uuid, facts: ClientFacts, configs: Mapping[str, Mapping[str, str]], now_ms: int) -> _Client:
        client = self._clients.pop(instance_id, None) or _Client(facts, subscription_of(facts, configs))
        client.seen_ms = now_ms
        self._clients[instance_id] = client
        self._bound()
        return client

    def _bound(self) -> None:
        held = (
            sum(len(each.points) for each in self._clients.values())
            if len(self._clients) * POINTS_OF_CLIENT_MAX > POINTS_MAX
            else 0
        )
        while len(self._clients) > CLIENTS_MAX or held > POINTS_MAX:
            oldest = next(iter(self._clients))
            held -= len(self._clients.pop(oldest).points)

    # The page

    def write(self, text: MetricsText, now_ms: int) -> None:
        """Write what clients have pushed lately: families `kafka_client_…`, one series for each client and its attributes."""
        for instance_id, client in list(self._clients.items()):
            if now_ms - client.seen_ms > SILENT_INTERVALS * client.subscription.interval_ms:
                del self._clients[instance_id]
        text.gauge("ottla_client_telemetry_clients", "Clients that push metrics to this broker.", len(self._clients))
        text.counter("ottla_client_telemetry_pushes_total", "Pushes accepted.", self.pushes)
        text.counter(
            "ottla_client_telemetry_dropped_points_total", "Numbers that were more than are kept.", self.dropped_points
        )
        text.family("kafka_client_info", "gauge", "1 for every client, with its software and where it is.")
        for client in self._clients.values():
            if client.is_ending:
                continue
            facts = client.facts
            software = (("software", facts.client_software_name), ("version", facts.client_software_version))
            text.sample(1, [*_identity(client), *software, ("address", facts.client_source_address)])
        families: dict[str, list[tuple[_Client, tuple[tuple[str, str], ...], float, bool]]] = {}
        for client in self._clients.values():
            for (name, attributes), (value, is_counter) in client.points.items():
                families.setdefault(prometheus_name(name), []).append((client, attributes, value, is_counter))
        for family, samples in sorted(families.items()):
            text.family(family, "counter" if all(each[3] for each in samples) else "gauge", "Pushed by clients (KIP-714).")
            for client, attributes, value, _ in samples:
                text.sample(value, [*_identity(client), *((_label(name), each) for name, each in attributes)])


def _identity(client: _Client) -> list[tuple[str, object]]:
    found: list[tuple[str, object]] = [
        ("client_id", client.facts.client_id),
        ("client_instance_id", client.facts.client_instance_id),
    ]
    return found + [(_label(name), each) for name, each in sorted(client.resource.items()) if name in _RESOURCE]


_RESOURCE = frozenset({"transactional_id", "group_id", "group_instance_id", "group_member_id", "client_rack"})
"""Attributes of clients that become labels. Others would make series that nobody can foresee."""


def _label(name: str) -> str:
    return re.sub(r"[^a-zA-Z0-9_]", "_", name)[:100] or "_"


def prometheus_name(name: str) -> str:
    """`org.apache.kafka.producer.record.send.total` → `kafka_client_producer_record_send_total`."""
    return f"kafka_client_{re.sub(r'[^a-zA-Z0-9_]', '_', name.removeprefix(_PREFIX))[:200]}"


def subscription_of(facts: ClientFacts, configs: Mapping[str, Mapping[str, str]]) -> Subscription:
    """What the subscriptions that match a client ask for together: all their metrics, at the shortest interval."""
    metrics: set[str] = set()
    interval_ms = None
    for _, settings in sorted(configs.items()):
        parsed = CLIENT_METRICS_KEYS.parse_known(settings)
        if not _matches(facts, parsed.get("match")):
            continue
        wanted = parsed.get("metrics")
        metrics.update(each for each in wanted if each) if isinstance(wanted, tuple) else None
        given_ms = parsed.get("interval.ms")
        given_ms = given_ms if isinstance(given_ms, int) else DEFAULT_INTERVAL_MS
        interval_ms = given_ms if interval_ms is None else min(interval_ms, given_ms)
    chosen = (_ALL,) if _ALL in metrics else tuple(sorted(metrics))
    interval_ms = DEFAULT_INTERVAL_MS if interval_ms is None else interval_ms
    number = crc32c(f"{chosen} {interval_ms} {facts.client_instance_id}".encode())
    return Subscription(number - (1 << 32) if number >= 1 << 31 else number, chosen, interval_ms)


def _matches(facts: ClientFacts, patterns: object) -> bool:
    """Whether all of `WHAT=REGULAR EXPRESSION` match. The controller has checked their syntax and bounded their size."""
    if not isinstance(patterns, tuple):
        return True
    for pattern in patterns:
        what, _, expression = pattern.partition("=")
        compiled = _compiled(expression.strip())
        if compiled is None or compiled.fullmatch(getattr(facts, what.strip(), "")) is None:
            return False
    return True


@lru_cache(maxsize=1024)
def _compiled(expression: str) -> Any:
    """The pattern; None if RE2 does not know its syntax: then it matches no client."""
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(expression, options=options)
    except re2.error:
        logger.warning("the client metrics pattern %r is not of RE2's syntax: it matches no client", expression)
        return None


# OpenTelemetry's MetricsData, as far as clients send it: `client_core/telemetry.py` lists the fields.

_GAUGE, _SUM, _DELTA = 5, 7, 1


def read_push(codec: int, data: bytes) -> tuple[dict[str, str], list[Point]]:
    """The attributes of a client and its numbers. Raises INVALID_RECORD if the content is damaged."""
    if not data:
        return {}, []
    try:
        plain = decompress(Codec(codec), data, EXPANDED_BYTES_MAX)
        resource: dict[str, str] = {}
        points: list[Point] = []
        for each in _messages(plain, 1):
            for one in _messages(each, 1):
                resource |= _attributes(one, 1)
            for scope in _messages(each, 2):
                for metric in _messages(scope, 2):
                    points += _points(metric)
        return resource, points
    except (CorruptRecords, DecodeError, UnicodeDecodeError, struct.error, ValueError) as error:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"the metrics cannot be read: {error}") from None


def _points(metric: bytes) -> Iterator[Point]:
    name = b"".join(_messages(metric, 1)).decode()
    for kind, value in _fields(metric):
        if kind not in (_GAUGE, _SUM) or not isinstance(value, bytes):
            continue
        said = dict(_fields(value))
        is_counter = kind == _SUM and said.get(3) == 1
        for point in _messages(value, 1):
            single = dict(_fields(point))
            raw_int, raw_double = single.get(6), single.get(4)
            number: float
            if isinstance(raw_int, bytes):
                (number,) = struct.unpack("<q", raw_int)
            elif isinstance(raw_double, bytes):
                (number,) = struct.unpack("<d", raw_double)
            else:
                number = 0
            attributes = tuple(sorted(_attributes(point, 7).items()))
            yield Point(name, attributes, number, is_counter, kind == _SUM and said.get(2) == _DELTA)


def _attributes(message: bytes, field: int) -> dict[str, str]:
    found = {}
    for pair in _messages(message, field):
        value = next(iter(_messages(pair, 2)), b"")
        shown = next(
            (str(each) if isinstance(each, int) else each.decode() for number, each in _fields(value) if number <= 3), ""
        )
        found[b"".join(_messages(pair, 1)).decode()] = shown
    return found


def _messages(message: bytes, field: int) -> list[bytes]:
    return [value for number, value in _fields(message) if number == field and isinstance(value, bytes)]


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message: number and value, where a fixed number is its bytes."""
    at, end = 0, len(data)
    while at < end:
        tag, at = _varint(data, at)
        kind = tag & 7
        if kind == 0:
            value, at = _varint(data, at)
            yield tag >> 3, value
            continue
        if kind == 2:
            size, at = _varint(data, at)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            raise DecodeError(f"a field has wire type {kind}")
        if at + size > end:
            raise DecodeError("a field is cut off")
        yield tag >> 3, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while at < len(data) and shift < 70:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
        shift += 7
    raise DecodeError("a number is cut off")
