"""Client metrics: which subscription a client gets, what is read from its pushes, and the bounds on what is kept."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from ottla.broker import client_telemetry
from ottla.broker.client_telemetry import ClientFacts, ClientTelemetry, Point, prometheus_name, read_push, subscription_of
from ottla.client_core.telemetry import DataPoint, encode_metrics
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import Uuid
from ottla.metrics_text import MetricsText
from ottla.records.compression import Codec, compress

FACTS = ClientFacts("billing-1", "id", "apache-kafka-java", "4.3.0", "10.0.0.7", "50000")
ALL = {"all": {"metrics": "*", "interval.ms": "1000"}}


def instance(number: int) -> Uuid:
    return Uuid((1000 + number).to_bytes(16, "big"))


def page(telemetry: ClientTelemetry, now_ms: int = 0) -> dict[str, list[tuple[dict[str, str], float]]]:
    text = MetricsText()
    telemetry.write(text, now_ms)
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in text_string_to_metric_families(text.encode().decode()):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((sample.labels, sample.value))
    return found


@pytest.mark.parametrize(
    ("configs", "metrics", "interval_ms"),
    [
        ({}, (), 300_000),
        ({"a": {"metrics": "x.,y."}, "b": {"metrics": "w.", "interval.ms": "500"}}, ("w.", "x.", "y."), 500),
        ({"a": {"metrics": "x."}, "b": {"metrics": "*"}}, ("*",), 300_000),
        ({"a": {"metrics": "x.", "match": "client_id=billing-.*,client_source_port=5.*"}}, ("x.",), 300_000),
        ({"a": {"metrics": "x.", "match": "client_id=billing"}}, (), 300_000),
        ({"a": {"metrics": "x.", "match": "client_id=(?=b).*"}}, (), 300_000),
    ],
    ids=["none", "two together", "all", "match", "no whole match", "not RE2"],
)
def test_subscription(configs: dict[str, dict[str, str]], metrics: tuple[str, ...], interval_ms: int) -> None:
    found = subscription_of(FACTS, configs)
    assert (found.metrics, found.interval_ms) == (metrics, interval_ms)
    assert -(2**31) <= found.id < 2**31
    assert found.id == subscription_of(FACTS, configs).id != subscription_of(FACTS, {"z": {"metrics": "z."}}).id


@pytest.mark.parametrize("codec", list(Codec))
def test_push_is_read_as_it_was_written(codec: Codec) -> None:
    points = [
        DataPoint("org.apache.kafka.a.total", (("topic", "t"),), 7, True),
        DataPoint("org.apache.kafka.b.avg", (), 2.5, False),
    ]
    data = bytes(compress(codec, encode_metrics(points, {"group_id": "g"}, 1, is_delta=True)))
    resource, found = read_push(codec, data)
    assert resource == {"group_id": "g"}
    assert found == [
        Point("org.apache.kafka.a.total", (("topic", "t"),), 7, True, True),
        Point("org.apache.kafka.b.avg", (), 2.5, False, False),
    ]
    assert read_push(codec, b"") == ({}, [])


def test_damaged_push_is_an_invalid_record() -> None:
    data = encode_metrics([DataPoint("a", (("b", "c"),), 7, True)], {}, 1, is_delta=True)
    for end in range(1, len(data)):
        with pytest.raises(KafkaError) as refused:
            read_push(Codec.NONE, data[:end])
        assert refused.value.code == ErrorCode.INVALID_RECORD


def test_deltas_add_up_and_gauges_replace() -> None:
    telemetry = ClientTelemetry()
    telemetry.subscribe(instance(1), FACTS, ALL, 0)
    for value in (3, 4):
        points = [Point("org.apache.kafka.n.total", (), value, True, True), Point("g", (("a-b", 'x"y'),), value, False, False)]
        telemetry.push(instance(1), {"group_id": "g1", "odd": "x"}, points)
    found = page(telemetry)
    who = {"client_id": "billing-1", "client_instance_id": "id", "group_id": "g1"}
    assert found["kafka_client_n_total"] == [(who, 7)]
    assert found["kafka_client_g"] == [({**who, "a_b": 'x"y'}, 4)]
    assert prometheus_name("odd name-") == "kafka_client_odd_name_"


def test_silent_and_ended_clients_leave_the_page() -> None:
    telemetry = ClientTelemetry()
    number = telemetry.subscribe(instance(1), FACTS, ALL, 0).id
    telemetry.push(instance(1), {}, [Point("g", (), 1, False, False)])
    assert "kafka_client_g" in page(telemetry, 2_000)
    telemetry.check_push(instance(1), FACTS, ALL, number, Codec.NONE, 0, 100, True, 2_500)
    telemetry.push(instance(1), {}, [])
    assert "kafka_client_g" not in page(telemetry, 3_000)
    page(telemetry, 10_000)
    assert len(telemetry) == 0


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_telemetry, "CLIENTS_MAX", 10)
    monkeypatch.setattr(client_telemetry, "POINTS_OF_CLIENT_MAX", 5)
    monkeypatch.setattr(client_telemetry, "POINTS_MAX", 20)
    telemetry = ClientTelemetry()
    for number in range(30):
        telemetry.subscribe(instance(number), FACTS, ALL, 0)
    assert len(telemetry) == 10
    for number in range(20, 30):
        telemetry.push(instance(number), {}, [Point(f"m{each}", (), 1, False, False) for each in range(8)])
    found = page(telemetry)
    assert sum(len(each) for name, each in found.items() if name.startswith("kafka_client_m")) <= 20
    assert telemetry.dropped_points == 30
