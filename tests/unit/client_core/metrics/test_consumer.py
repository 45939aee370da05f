"""What a consumer records: fetches, lag by partition, and how it polls."""

import math
from types import SimpleNamespace
from typing import get_args, get_type_hints

from ottla.client_core.metrics.consumer import ConsumerMetrics, CoordinatorMetrics
from ottla.client_core.metrics.registry import MetricsRegistry
from ottla.wire.apis import ApiKey

SETTINGS = SimpleNamespace(metrics_sample_window_ms=30_000, metrics_num_samples=2)


def consumer() -> tuple[MetricsRegistry, ConsumerMetrics]:
    registry = MetricsRegistry("consumer", "c", SETTINGS)
    return registry, ConsumerMetrics(registry)


def test_fetches_and_records_appear_under_kafkas_names() -> None:
    registry, metrics = consumer()
    metrics.fetch_answered(20, 100, 5_000, 3, 0)
    metrics.fetch_answered(40, 0, 0, 0, 0)
    metrics.consumed("events", 60, 3_000, 0)
    metrics.consumed("others", 40, 2_000, 0)
    groups = registry.as_dict(0)
    fetches = groups["consumer-fetch-manager-metrics"]
    assert (fetches["records-consumed-total"], fetches["bytes-consumed-total"], fetches["fetch-total"]) == (100, 5_000, 2)
    assert (fetches["fetch-latency-avg"], fetches["fetch-latency-max"]) == (30, 40)
    assert (fetches["fetch-size-avg"], fetches["records-per-request-avg"], fetches["fetch-throttle-time-max"]) == (2_500, 50, 3)
    assert groups["consumer-fetch-manager-metrics{topic=events}"]["records-consumed-total"] == 60


def test_lag_is_known_by_partition_until_it_is_unassigned() -> None:
    registry, metrics = consumer()
    metrics.lag_known("events", 0, 10, 5, 0)
    metrics.lag_known("events", 1, 900, 2, 0)
    metrics.lag_known("events", 0, 4, 11, 0)
    groups = registry.as_dict(0)
    partition = groups["consumer-fetch-manager-metrics{topic=events,partition=0}"]
    assert (partition["records-lag"], partition["records-lag-max"], partition["records-lag-avg"]) == (4, 10, 7)
    assert (partition["records-lead"], partition["records-lead-min"]) == (11, 5)
    assert groups["consumer-fetch-manager-metrics"]["records-lag-max"] == 900
    assert groups["consumer-fetch-manager-metrics"]["records-lead-min"] == 2
    metrics.keep_only({("events", 1), ("events", 7)})
    assert "consumer-fetch-manager-metrics{topic=events,partition=0}" not in registry.as_dict(0)
    assert "consumer-fetch-manager-metrics{topic=events,partition=1}" in registry.as_dict(0)


def test_polls_tell_how_busy_the_application_is() -> None:
    registry, metrics = consumer()
    assert registry.as_dict(0)["consumer-metrics"]["last-poll-seconds-ago"] == -1
    for began_ms, ended_ms in ((0, 100), (400, 500), (800, 1_000)):
        metrics.poll_began(began_ms)
        metrics.poll_ended(ended_ms)
    metrics.commit_sync_ended(5, 0)
    metrics.committed_ended(6, 0)
    found = registry.as_dict(3_800)["consumer-metrics"]
    assert (found["time-between-poll-avg"], found["time-between-poll-max"], found["poll-idle-ratio-avg"]) == (400, 400, 0.25)
    assert (found["last-poll-seconds-ago"], found["commit-sync-time-ns-total"], found["committed-time-ns-total"]) == (3, 5, 6)


def test_two_polls_in_one_millisecond_have_no_idle_ratio() -> None:
    registry, metrics = consumer()
    metrics.poll_began(5)
    metrics.poll_ended(5)
    metrics.poll_began(5)
    assert math.isnan(registry.as_dict(5)["consumer-metrics"]["poll-idle-ratio-avg"])


def test_answers_are_measured_for_each_topic_too() -> None:
    registry = MetricsRegistry("consumer")
    metrics = ConsumerMetrics(registry)
    metrics.topic_answered("t", 3, 100, 0)
    metrics.topic_answered("t", 1, 300, 0)
    found = registry.as_dict(0)["consumer-fetch-manager-metrics{topic=t}"]
    assert (found["fetch-size-avg"], found["fetch-size-max"], found["records-per-request-avg"]) == (200, 300, 2)


def test_the_replica_that_is_fetched_from_is_shown() -> None:
    registry = MetricsRegistry("consumer")
    metrics = ConsumerMetrics(registry)
    metrics.lag_known("t", 0, 5, 10, 0)
    place = "consumer-fetch-manager-metrics{topic=t,partition=0}"
    assert registry.as_dict(0)[place]["preferred-read-replica"] == -1
    metrics.lag_known("t", 0, 5, 20, 0, replica=2)
    assert registry.as_dict(0)[place]["preferred-read-replica"] == 2
    assert registry.as_dict(0)[place]["records-lead-avg"] == 15


# What a group member records.


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
