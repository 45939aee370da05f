"""The collector for the prometheus_client library."""

from types import SimpleNamespace

from prometheus_client import CollectorRegistry, generate_latest

from ottla.client.prometheus import PrometheusCollector
from ottla.client_core.metrics.producer import ProducerMetrics
from ottla.client_core.metrics.registry import MetricsRegistry

SETTINGS = SimpleNamespace(metrics_sample_window_ms=30_000, metrics_num_samples=2)


def test_two_clients_share_a_registry_of_the_library() -> None:
    library = CollectorRegistry()
    for client_id, records in (("a", 3), ("b", 5)):
        metrics = MetricsRegistry("producer", client_id, SETTINGS)
        library.register(PrometheusCollector(metrics, lambda: 0))
        ProducerMetrics(metrics).batch_sent("events", records, 100, 1, 0)
    name = "kafka_producer_producer_metrics_record_send_total"
    assert library.get_sample_value(name, {"client_id": "a"}) == 3
    assert library.get_sample_value(name, {"client_id": "b"}) == 5
    text = generate_latest(library).decode()
    assert "# TYPE kafka_producer_producer_metrics_record_send_total counter" in text
    assert 'kafka_producer_producer_topic_metrics_byte_total{client_id="a",topic="events"} 100.0' in text
