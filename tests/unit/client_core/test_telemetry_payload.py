"""What is pushed: names, filter, deltas, compression and the limit of bytes."""

from types import SimpleNamespace

import pytest
from tests.support.peers.otlp import Point, read_metrics

from ottla.client_core.metrics.connections import ConnectionMetrics
from ottla.client_core.metrics.producer import ProducerMetrics
from ottla.client_core.metrics.registry import MetricsRegistry
from ottla.client_core.telemetry_payload import (
    DEFAULT_INTERVAL_MS,
    INTERVAL_MIN_MS,
    Payload,
    Subscription,
    TelemetryPayloads,
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
