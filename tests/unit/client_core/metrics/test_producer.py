"""What a producer records, and under which names it appears."""

from types import SimpleNamespace

import pytest

from ottla.client_core.metrics.producer import ProducerMetrics
from ottla.client_core.metrics.registry import MetricsRegistry

SETTINGS = SimpleNamespace(metrics_sample_window_ms=30_000, metrics_num_samples=2)


def test_batches_requests_and_waits_appear_under_kafkas_names() -> None:
    registry = MetricsRegistry("producer", "p", SETTINGS)
    metrics = ProducerMetrics(registry)
    metrics.batch_sent("events", 10, 400, 5, 0, uncompressed_bytes=800, record_bytes_max=90)
    metrics.batch_sent("others", 2, 100, 7, 0)
    metrics.request_sent(12, 0)
    metrics.request_answered(30, 4, 0)
    metrics.batch_retried("events", 10, 0)
    metrics.batch_failed("others", 2, 0)
    metrics.batch_split(0)
    metrics.buffer_waited(2_000_000, 0)
    metrics.buffer_exhausted(0)
    metrics.metadata_updated(0)
    metrics.metadata_waited(11, 0)
    metrics.flushed(12, 0)
    for number, step in enumerate(("init", "begin", "send_offsets", "commit", "abort")):
        metrics.transaction_step(step, number, 0)  # type: ignore[arg-type]
    metrics.watch_buffer(lambda: 1000, lambda: 600, lambda: 1)
    metrics.watch_in_flight(lambda: 3)
    groups = registry.as_dict(10_000)
    assert groups["producer-metrics"] == pytest.approx(
        {
            "record-send-total": 12,
            "record-send-rate": 12 / 40,
            "record-retry-total": 10,
            "record-retry-rate": 10 / 40,
            "record-error-total": 2,
            "record-error-rate": 2 / 40,
            "record-queue-time-avg": 6,
            "record-queue-time-max": 7,
            "record-size-avg": 90,
            "record-size-max": 90,
            "request-latency-avg": 30,
            "request-latency-max": 30,
            "records-per-request-avg": 12,
            "batch-size-avg": 250,
            "batch-size-max": 400,
            "batch-split-total": 1,
            "batch-split-rate": 1 / 40,
            "compression-rate-avg": 0.5,
            "produce-throttle-time-avg": 4,
            "produce-throttle-time-max": 4,
            "buffer-total-bytes": 1000,
            "buffer-available-bytes": 600,
            "waiting-threads": 1,
            "bufferpool-wait-ratio": 0.002 / 40,
            "bufferpool-wait-time-ns-total": 2_000_000,
            "buffer-exhausted-total": 1,
            "buffer-exhausted-rate": 1 / 40,
            "requests-in-flight": 3,
            "metadata-age": 10,
            "metadata-wait-time-ns-total": 11,
            "flush-time-ns-total": 12,
            "txn-init-time-ns-total": 0,
            "txn-begin-time-ns-total": 1,
            "txn-send-offsets-time-ns-total": 2,
            "txn-commit-time-ns-total": 3,
            "txn-abort-time-ns-total": 4,
        }
    )
    topic = groups["producer-topic-metrics{topic=events}"]
    assert (topic["record-send-total"], topic["byte-total"], topic["compression-rate"]) == (10, 400, 0.5)
    assert (topic["record-retry-total"], topic["record-error-total"]) == (10, 0)
    assert groups["producer-topic-metrics{topic=others}"]["record-error-total"] == 2
