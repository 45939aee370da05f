"""What the connections of a client record, for all and by node."""

from types import SimpleNamespace

import pytest

from ottla.client.metrics import ConnectionMetrics
from ottla.client_core.metrics.registry import ClientKind, MetricsRegistry

SETTINGS = SimpleNamespace(metrics_sample_window_ms=30_000, metrics_num_samples=2)


@pytest.mark.parametrize("kind", ["producer", "consumer", "admin-client"])
def test_traffic_is_counted_for_the_client_and_for_each_node(kind: ClientKind) -> None:
    registry = MetricsRegistry(kind, "me", SETTINGS)
    metrics = ConnectionMetrics(registry)
    for _ in range(3):
        metrics.opened(0)
    metrics.closed(0)
    metrics.authenticated(True, 0)
    metrics.authenticated(False, 0)
    metrics.request_sent(1, 100, 0)
    metrics.request_sent(2, 50, 0)
    metrics.answered(1, 1_000, 8, 0)
    groups = registry.as_dict(0)
    every = groups[f"{kind}-metrics"]
    assert (every["connection-count"], every["connection-creation-total"], every["connection-close-total"]) == (2, 3, 1)
    assert (every["successful-authentication-total"], every["failed-authentication-total"]) == (1, 1)
    assert (every["request-total"], every["outgoing-byte-total"], every["request-size-max"]) == (2, 150, 100)
    assert (every["response-total"], every["incoming-byte-total"]) == (1, 1_000)
    node = groups[f"{kind}-node-metrics{{node-id=node-1}}"]
    assert (node["request-total"], node["incoming-byte-total"], node["request-latency-avg"]) == (1, 1_000, 8)
    assert groups[f"{kind}-node-metrics{{node-id=node-2}}"]["outgoing-byte-total"] == 50


def test_logins_on_open_connections_are_counted_apart() -> None:
    registry = MetricsRegistry("producer")
    metrics = ConnectionMetrics(registry)
    metrics.reauthenticated(20, 0)
    metrics.reauthenticated(40, 0)
    metrics.reauthenticated(None, 0)
    found = registry.as_dict(0)["producer-metrics"]
    assert (found["successful-reauthentication-total"], found["failed-reauthentication-total"]) == (2, 1)
    assert (found["reauthentication-latency-avg"], found["reauthentication-latency-max"]) == (30, 40)
    assert found["successful-authentication-total"] == 0


def test_requests_and_answers_are_network_io() -> None:
    registry = MetricsRegistry("producer")
    metrics = ConnectionMetrics(registry)
    metrics.request_sent(1, 100, 0)
    metrics.answered(1, 50, 3, 0)
    assert registry.as_dict(0)["producer-metrics"]["network-io-total"] == 2
