"""`ConnectionMetrics`: what the connections of a client record, for all of them and for each node."""

from __future__ import annotations

from ottla.client_core.metrics.registry import MetricsRegistry, SensorSet
from ottla.client_core.metrics.table import connection_table, node_table


class ConnectionMetrics:
    """Records for `producer-metrics` and `producer-node-metrics`, or those of the client's kind, on the client's loop."""

    def __init__(self, registry: MetricsRegistry) -> None:
        self._registry = registry
        self._all = registry.add(connection_table(registry.kind))
        self._nodes: dict[int, SensorSet] = {}
        self._open = 0
        self._all.gauge("connection-count", lambda: self._open)

    def opened(self, now_ms: int) -> None:
        """A connection is ready for requests."""
        self._open += 1
        self._all["opened"].record(1, now_ms)

    def closed(self, now_ms: int) -> None:
        """A connection that was `opened` has ended, for any reason."""
        self._open -= 1
        self._all["closed"].record(1, now_ms)

    def authenticated(self, is_successful: bool, now_ms: int) -> None:
        """A SASL or TLS authentication has ended."""
        self._all["authenticated" if is_successful else "refused"].record(1, now_ms)

    def reauthenticated(self, latency_ms: int | None, now_ms: int) -> None:
        """A login on an open connection has ended; None: it failed."""
        if latency_ms is None:
            self._all["not_reauthenticated"].record(1, now_ms)
        else:
            self._all["reauthenticated"].record(latency_ms, now_ms)

    def request_sent(self, node_id: int, size_bytes: int, now_ms: int) -> None:
        """A request leaves; `size_bytes` with its header and length."""
        self._node(node_id)["outgoing"].record(size_bytes, now_ms)
        self._all["outgoing"].record(size_bytes, now_ms)
        self._all["network"].record(1, now_ms)

    def answered(self, node_id: int, size_bytes: int, latency_ms: int, now_ms: int) -> None:
        """An answer has come, `latency_ms` after its request was sent."""
        node = self._node(node_id)
        node["incoming"].record(size_bytes, now_ms)
        node["latency"].record(latency_ms, now_ms)
        self._all["incoming"].record(size_bytes, now_ms)
        self._all["network"].record(1, now_ms)

    def _node(self, node_id: int) -> SensorSet:
        sensors = self._nodes.get(node_id)
        if sensors is None:
            sensors = self._nodes[node_id] = self._registry.add(node_table(self._registry.kind), f"node-{node_id}")
        return sensors
