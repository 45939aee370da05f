"""What a group member records."""

from types import SimpleNamespace
from typing import get_args, get_type_hints

from ottla.client_core.metrics.coordinator import CoordinatorMetrics
from ottla.client_core.metrics.registry import MetricsRegistry
from ottla.wire.apis import ApiKey

SETTINGS = SimpleNamespace(metrics_sample_window_ms=30_000, metrics_num_samples=2)


def test_requests_rebalances_and_listeners_appear_under_kafkas_names() -> None:
    registry = MetricsRegistry("consumer", "c", SETTINGS)
    metrics = CoordinatorMetrics(registry)
    for api in (ApiKey.OFFSET_COMMIT, ApiKey.HEARTBEAT, ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP):
        metrics.sensors[api].record(10, 0)
        metrics.sensors[api].record(30, 0)
    assert metrics.sensors[ApiKey.CONSUMER_GROUP_HEARTBEAT] is metrics.sensors[ApiKey.HEARTBEAT]
    metrics.rebalanced(500, 0)
    metrics.rebalance_failed(0)
    for event in get_args(get_type_hints(metrics.listener_returned)["event"]):
        metrics.listener_returned(event, 7, 0)
    metrics.watch_assignment(lambda: 6)
    found = registry.as_dict(6_000)["consumer-coordinator-metrics"]
    assert found["assigned-partitions"] == 6
    assert (found["commit-total"], found["commit-latency-avg"], found["commit-latency-max"]) == (2, 20, 30)
    assert (found["heartbeat-total"], found["heartbeat-response-time-max"], found["last-heartbeat-seconds-ago"]) == (2, 30, 6)
    assert (found["join-total"], found["join-time-avg"], found["sync-total"], found["sync-time-max"]) == (2, 20, 2, 30)
    assert (found["rebalance-total"], found["rebalance-latency-total"], found["failed-rebalance-total"]) == (1, 500, 1)
    assert found["rebalance-rate-per-hour"] == 100
    assert [found[f"partition-{each}-latency-max"] for each in ("assigned", "revoked", "lost")] == [7, 7, 7]
