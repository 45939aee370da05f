"""`CoordinatorMetrics`: what a group member and the commits of offsets record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from ottla.client_core.metrics.registry import MetricsRegistry
from ottla.client_core.metrics.sensor import Sensor
from ottla.client_core.metrics.table import COORDINATOR
from ottla.wire.apis import ApiKey


class CoordinatorMetrics:
    """Records for `consumer-coordinator-metrics`, on the client's loop."""

    def __init__(self, registry: MetricsRegistry) -> None:
        self._all = registry.add(COORDINATOR)
        self.sensors: dict[int, Sensor] = {
            ApiKey.OFFSET_COMMIT: self._all["commit"],
            ApiKey.HEARTBEAT: self._all["heartbeat"],
            ApiKey.CONSUMER_GROUP_HEARTBEAT: self._all["heartbeat"],
            ApiKey.JOIN_GROUP: self._all["join"],
            ApiKey.SYNC_GROUP: self._all["sync"],
        }
        """For the milliseconds from a request to the coordinator's answer, by API."""

    def rebalanced(self, time_ms: int, now_ms: int) -> None:
        """A rebalance is complete, `time_ms` after this member began it."""
        self._all["rebalance"].record(time_ms, now_ms)

    def rebalance_failed(self, now_ms: int) -> None:
        """A rebalance ended with an error and begins again."""
        self._all["failed_rebalance"].record(1, now_ms)

    def listener_returned(self, event: Literal["assigned", "revoked", "lost"], time_ms: int, now_ms: int) -> None:
        """The application's rebalance listener has returned."""
        self._all[event].record(time_ms, now_ms)

    def watch_assignment(self, partitions: Callable[[], int]) -> None:
        """Where the number of assigned partitions comes from."""
        self._all.gauge("assigned-partitions", partitions)
