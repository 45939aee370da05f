"""What is pushed: names, filter, deltas, compression and the limit of bytes."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.peers.otlp import Point, read_metrics

from ottla.client.metrics import ConnectionMetrics
from ottla.client_core.metrics.producer import ProducerMetrics
from ottla.client_core.metrics.registry import MetricsRegistry
from ottla.client_core.telemetry import (
    DEFAULT_INTERVAL_MS,
    INTERVAL_MIN_MS,
    DataPoint,
    Payload,
    Subscription,
    TelemetryPayloads,
    encode_metrics,
    subscription_of,
    telemetry_name,
)
from ottla.records.compression import Codec, decompress
from ottla.wire.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsResponse

SETTINGS = SimpleNamespace(metrics_sample_window_ms=30_000, metrics_num_samples=2)
SENT = "org.apache.kafka.producer.record.send.total"
ALL = Subscription(1, ("*",), 1_000, (), 1_000_000, True)
STARTED_MS = 500


class Client:
    """A producer's metrics and what it pushes."""

    def __init__(self) -> None:
        self.metrics = MetricsRegistry("producer", "p", SETTINGS)
        self.producer = ProducerMetrics(self.metrics)
        self.connections = ConnectionMetrics(self.metrics)
        self.payloads = TelemetryPayloads(self.metrics, STARTED_MS)

    def push(self, subscription: Subscription, unix_ms: int = 1_000, codec: Codec = Codec.NONE) -> Payload:
        return self.payloads.make(subscription, codec, 0, unix_ms)


def points(payload: Payload) -> list[Point]:
    return read_metrics(decompress(payload.codec, payload.content, 1_000_000))[1]


def named(payload: Payload, name: str) -> list[tuple[str, float, int]]:
    return [(each.kind, each.value, each.start_ns // 1_000_000) for each in points(payload) if each.metric == name]


@pytest.mark.parametrize(
    ("group", "name", "expected"),
    [
        ("producer-metrics", "record-send-total", SENT),
        ("consumer-fetch-manager-metrics", "fetch-latency-avg", "org.apache.kafka.consumer.fetch.manager.fetch.latency.avg"),
        ("consumer-coordinator-metrics", "commit-latency-max", "org.apache.kafka.consumer.coordinator.commit.latency.max"),
        ("producer-node-metrics", "request-latency-avg", "org.apache.kafka.producer.node.request.latency.avg"),
    ],
)
def test_names_are_those_of_kip_714(group: str, name: str, expected: str) -> None:
    assert telemetry_name(group, name) == expected


def test_tags_become_attributes_and_the_client_a_resource() -> None:
    client = Client()
    client.producer.batch_sent("my-topic", 3, 100, 0, 0)
    client.connections.request_sent(7, 10, 0)
    client.payloads.resource["transactional_id"] = "t"
    resource, found = read_metrics(client.push(ALL).content)
    assert resource == {"transactional_id": "t"}
    by_name = {each.metric: each.attributes for each in found}
    assert by_name["org.apache.kafka.producer.topic.byte.total"] == {"topic": "my-topic"}
    assert by_name["org.apache.kafka.producer.node.request.total"] == {"node_id": "node-7"}


def test_only_subscribed_metrics_are_pushed() -> None:
    client = Client()
    client.producer.batch_sent("events", 3, 100, 0, 0)
    only = ALL._replace(prefixes=("org.apache.kafka.producer.record.send.", "org.apache.kafka.producer.topic.byte.rate"))
    assert {each.metric.removeprefix("org.apache.kafka.producer.") for each in points(client.push(only))} == {
        "record.send.total",
        "record.send.rate",
        "topic.byte.rate",
    }
    assert client.push(ALL._replace(prefixes=("none.of.them",))).content == b""


def test_deltas_count_from_the_last_accepted_push() -> None:
    client = Client()
    client.producer.batch_sent("events", 10, 100, 0, 0)
    first = client.push(ALL, 1_000)
    assert named(first, SENT) == [("delta", 10, STARTED_MS)]
    client.producer.batch_sent("events", 5, 100, 0, 0)
    lost = client.push(ALL, 2_000)
    assert named(lost, SENT) == [("delta", 15, STARTED_MS)], "the first was not accepted"
    client.payloads.accepted(lost)
    client.producer.batch_sent("events", 1, 100, 0, 0)
    assert named(client.push(ALL, 3_000), SENT) == [("delta", 1, 2_000)]


def test_cumulative_sums_count_from_the_start_of_the_client() -> None:
    client = Client()
    cumulative = ALL._replace(is_delta=False)
    client.producer.batch_sent("events", 10, 100, 0, 0)
    client.payloads.accepted(client.push(cumulative))
    client.producer.batch_sent("events", 10, 100, 0, 0)
    assert named(client.push(cumulative), SENT) == [("cumulative", 20, STARTED_MS)]
    client.payloads.start_over()
    assert named(client.push(ALL), SENT) == [("delta", 20, STARTED_MS)]


def test_values_without_an_event_are_left_out() -> None:
    names = {each.metric for each in points(Client().push(ALL))}
    assert SENT in names
    assert "org.apache.kafka.producer.request.latency.avg" not in names


@pytest.mark.parametrize("codec", list(Codec))
def test_content_is_compressed_as_the_broker_accepts_it(codec: Codec) -> None:
    client = Client()
    client.producer.batch_sent("events", 10, 100, 0, 0)
    payload = client.push(ALL, codec=codec)
    assert payload.codec == codec
    assert named(payload, SENT) == [("delta", 10, STARTED_MS)]


def test_what_does_not_fit_is_left_for_later(caplog: pytest.LogCaptureFixture) -> None:
    client = Client()
    for number in range(200):
        client.producer.batch_sent(f"topic-{number}", 1, 100, 0, 0)
    client.producer.batch_sent("topic-0", 1, 100, 0, 0)
    payload = client.push(ALL._replace(bytes_max=8_000))
    assert 0 < len(payload.content) <= 8_000
    assert named(payload, SENT) == [("delta", 201, STARTED_MS)], "metrics of the whole client come first"
    assert "telemetry.max.bytes" in caplog.text
    client.payloads.accepted(payload)
    later = named(client.push(ALL), "org.apache.kafka.producer.topic.record.send.total")
    assert ("delta", 1, STARTED_MS) in later, "a topic that did not fit was not counted as pushed"


def test_a_limit_below_any_metric_pushes_nothing() -> None:
    assert Client().push(ALL._replace(bytes_max=3)).content == b""


def test_intervals_are_sane_and_unknown_codecs_ignored() -> None:
    response = GetTelemetrySubscriptionsResponse(push_interval_ms=-4, accepted_compression_types=[9, 4, -1, 1])
    assert subscription_of(response).interval_ms == DEFAULT_INTERVAL_MS
    assert subscription_of(response).codecs == (Codec.ZSTD, Codec.GZIP)
    assert subscription_of(GetTelemetrySubscriptionsResponse(push_interval_ms=1)).interval_ms == INTERVAL_MIN_MS


# The OTLP encoder, read back by a reader of its own.

TEXT = st.text(st.characters(codec="utf-8"), max_size=300)
POINT = st.builds(
    DataPoint,
    metric=st.sampled_from(["a", "b", "ü" * 100]),
    attributes=st.dictionaries(TEXT, TEXT, max_size=3).map(lambda found: tuple(found.items())),
    value=st.integers(-(2**63) + 1, 2**63 - 1) | st.floats(allow_nan=False),
    is_counter=st.booleans(),
    start_unix_ms=st.integers(0, 2**41),
)


@given(st.lists(POINT, max_size=20), st.dictionaries(TEXT, TEXT, max_size=3), st.integers(0, 2**41), st.booleans())
def test_every_point_is_read_back(points: list[DataPoint], resource: dict[str, str], unix_ms: int, is_delta: bool) -> None:
    found_resource, found = read_metrics(encode_metrics(points, resource, unix_ms, is_delta=is_delta))
    assert found_resource == resource
    kind = "delta" if is_delta else "cumulative"
    expected = [
        Point(
            each.metric,
            kind if each.is_counter else "gauge",
            dict(each.attributes),
            each.value,
            unix_ms * 1_000_000,
            each.start_unix_ms * 1_000_000 if each.is_counter else 0,
        )
        for each in points
    ]
    assert sorted(map(repr, found)) == sorted(map(repr, expected))


def test_known_bytes() -> None:
    """Written by hand from the protocol buffer encoding, so that reader and writer cannot share a mistake."""
    point = DataPoint("m", (("k", "v"),), 7, True, 1)
    number_point = (
        b"\x11" + (1_000_000).to_bytes(8, "little")
        + b"\x19" + (2_000_000).to_bytes(8, "little")
        + b"\x31" + (7).to_bytes(8, "little")
        + b"\x3a\x08" + b"\x0a\x01k" + b"\x12\x03" + b"\x0a\x01v"
    )  # fmt: skip
    sum_ = b"\x0a" + bytes([len(number_point)]) + number_point + b"\x10\x01" + b"\x18\x01"
    metric = b"\x0a\x01m" + b"\x3a" + bytes([len(sum_)]) + sum_
    scope = b"\x12" + bytes([len(metric)]) + metric
    resource_metrics = b"\x0a\x00" + b"\x12" + bytes([len(scope)]) + scope
    assert encode_metrics([point], {}, 2, is_delta=True) == b"\x0a" + bytes([len(resource_metrics)]) + resource_metrics


def test_an_int_beyond_64_bits_becomes_a_double() -> None:
    _, (point,) = read_metrics(encode_metrics([DataPoint("m", (), 2**70, True)], {}, 0, is_delta=False))
    assert point.value == 2.0**70
