"""The registry: measurements as a dict, as Prometheus's text, and from other threads."""

import math
import threading
from types import SimpleNamespace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from ottla.client_core.metrics.registry import MetricRow, MetricsRegistry, MetricTable
from ottla.client_core.metrics.sensor import Statistic

SETTINGS = SimpleNamespace(metrics_sample_window_ms=30_000, metrics_num_samples=2)
ALL = MetricTable(
    "producer-metrics",
    (),
    (
        MetricRow("thing-total", "things", Statistic.TOTAL, "Things."),
        MetricRow("thing-avg", "things", Statistic.AVG, "Things, on average."),
        MetricRow("room", "", Statistic.GAUGE, "Room."),
    ),
)
TOPIC = MetricTable("producer-topic-metrics", ("topic",), (MetricRow("thing-total", "things", Statistic.TOTAL, "Things."),))
OTHER = MetricTable("producer-metrics", (), (MetricRow("other-total", "others", Statistic.COUNT, "Others."),))


def registry() -> MetricsRegistry:
    return MetricsRegistry("producer", "me", SETTINGS)


def test_dict_is_nested_by_group_and_tags() -> None:
    metrics = registry()
    metrics.add(ALL)["things"].record(4, 0)
    metrics.add(TOPIC, "events")["things"].record(3, 0)
    metrics.add(OTHER)["others"].record(9, 0)
    assert metrics.as_dict(0) == {
        "producer-metrics": {"thing-total": 4, "thing-avg": 4.0, "other-total": 1},
        "producer-topic-metrics{topic=events}": {"thing-total": 3},
    }


def test_the_same_tags_give_the_same_sensors_until_they_are_removed() -> None:
    metrics = registry()
    sensors = metrics.add(TOPIC, "events")
    assert metrics.add(TOPIC, "events") is sensors
    assert metrics.add(TOPIC, "others") is not sensors
    metrics.remove(sensors)
    assert "producer-topic-metrics{topic=events}" not in metrics.as_dict(0)


def test_a_gauge_is_left_out_until_it_has_a_function() -> None:
    metrics = registry()
    sensors = metrics.add(ALL)
    assert "room" not in metrics.as_dict(0)["producer-metrics"]
    sensors.gauge("room", lambda: 12)
    assert metrics.as_dict(0)["producer-metrics"]["room"] == 12
    with pytest.raises(KeyError, match="thing-total"):
        sensors.gauge("thing-total", lambda: 1)


def test_prometheus_reads_the_text() -> None:
    metrics = registry()
    metrics.add(ALL)["things"].record(4, 0)
    metrics.add(TOPIC, 'odd "topic"')["things"].record(3, 0)
    metrics.add(TOPIC, "events")["things"].record(2, 0)
    families = {family.name: family for family in text_string_to_metric_families(metrics.prometheus_text(0))}
    topics = families["kafka_producer_producer_topic_metrics_thing"]
    assert topics.type == "counter"
    assert [(sample.labels, sample.value) for sample in topics.samples] == [
        ({"client_id": "me", "topic": 'odd "topic"'}, 3),
        ({"client_id": "me", "topic": "events"}, 2),
    ]
    assert families["kafka_producer_producer_metrics_thing_avg"].type == "gauge"


def test_prometheus_gets_no_nan() -> None:
    metrics = registry()
    metrics.add(ALL)
    assert math.isnan(metrics.as_dict(0)["producer-metrics"]["thing-avg"])
    assert "nan" not in metrics.prometheus_text(0)


def test_another_thread_reads_while_topics_are_added() -> None:
    metrics = registry()
    faults: list[Exception] = []
    is_done = threading.Event()

    def read() -> None:
        try:
            while not is_done.is_set():
                metrics.as_dict(0)
        except Exception as fault:
            faults.append(fault)

    thread = threading.Thread(target=read)
    thread.start()
    for number in range(3_000):
        metrics.add(TOPIC, number)["things"].record(1, number * 50)
    is_done.set()
    thread.join()
    assert faults == []
    assert sum(group["thing-total"] for group in metrics.as_dict(0).values()) == 3_000
