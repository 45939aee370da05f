"""`ConsumerMetrics`: what the consumer's fetcher and its `poll` record.

One call per answer, batch or poll, never per record. The methods of fetcher and commits run on the client's loop, those of
`poll` in the thread that polls; each sensor belongs to one of the two.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Literal

from ottla.client_core.metrics.registry import MetricsRegistry, SensorSet
from ottla.client_core.metrics.sensor import Sensor
from ottla.client_core.metrics.table import CONSUMER, COORDINATOR, FETCH_MANAGER, FETCH_MANAGER_PARTITION, FETCH_MANAGER_TOPIC
from ottla.wire.apis import ApiKey


class ConsumerMetrics:
    """Records for `consumer-metrics` and `consumer-fetch-manager-metrics`."""

    def __init__(self, registry: MetricsRegistry) -> None:
        self._registry = registry
        self._consumer = registry.add(CONSUMER)
        self._all = registry.add(FETCH_MANAGER)
        self._topics: dict[str, SensorSet] = {}
        self._partitions: dict[tuple[str, int], SensorSet] = {}
        self._poll_began_ms: int | None = None
        self._poll_ended_ms: int | None = None

    # Fetcher

    def fetch_answered(self, latency_ms: int, records: int, size_bytes: int, throttle_ms: int, now_ms: int) -> None:
        """A Fetch request was answered, with this many records in all partitions together."""
        every = self._all
        every["latency"].record(latency_ms, now_ms)
        every["throttle"].record(throttle_ms, now_ms)
        every["fetch_size"].record(size_bytes, now_ms)
        every["fetch_records"].record(records, now_ms)

    def topic_answered(self, topic: str, records: int, size_bytes: int, now_ms: int) -> None:
        """The answer to a Fetch request had this much of one topic."""
        sensors = self._topic(topic)
        sensors["fetch_size"].record(size_bytes, now_ms)
        sensors["fetch_records"].record(records, now_ms)

    # Polling thread

    def lag_known(self, topic: str, partition: int, lag: int, lead: int, now_ms: int, replica: int = -1) -> None:
        """After a drained batch: records from the position to the end, and from the log start to the position.

        The end is the high watermark, or the last stable offset with isolation.level=read_committed. `replica` is the one that
        is fetched from in place of the leader.
        """
        sensors = self._partitions.get((topic, partition))
        if sensors is None:
            sensors = self._registry.add(FETCH_MANAGER_PARTITION, topic, partition)
            self._partitions[topic, partition] = sensors
        for each in (sensors, self._all):
            each["lag"].record(lag, now_ms)
            each["lead"].record(lead, now_ms)
        sensors["replica"].record(replica, now_ms)

    def keep_only(self, partitions: Collection[tuple[str, int]]) -> None:
        """Forget the lag of partitions that are no longer assigned: it is another consumer's."""
        for key in [each for each in self._partitions if each not in partitions]:
            self._registry.remove(self._partitions.pop(key))

    def consumed(self, topic: str, records: int, size_bytes: int, now_ms: int) -> None:
        """Records of one topic were handed to the application; one call per topic and poll."""
        for each in (self._topic(topic), self._all):
            each["records"].record(records, now_ms)
            each["bytes"].record(size_bytes, now_ms)

    def _topic(self, topic: str) -> SensorSet:
        sensors = self._topics.get(topic)
        if sensors is None:
            sensors = self._topics[topic] = self._registry.add(FETCH_MANAGER_TOPIC, topic)
        return sensors

    def poll_began(self, now_ms: int) -> None:
        """The application polls."""
        self._consumer["poll"].record(1, now_ms)
        if self._poll_began_ms is not None and self._poll_ended_ms is not None:
            gap_ms = now_ms - self._poll_began_ms
            self._consumer["poll_gap"].record(gap_ms, now_ms)
            if gap_ms > 0:
                self._consumer["poll_idle"].record((self._poll_ended_ms - self._poll_began_ms) / gap_ms, now_ms)
        self._poll_began_ms = now_ms

    def poll_ended(self, now_ms: int) -> None:
        """The poll returns to the application."""
        self._poll_ended_ms = now_ms

    # Commits

    def commit_sync_ended(self, time_ns: int, now_ms: int) -> None:
        """A synchronous commit has returned."""
        self._consumer["commit_sync"].record(time_ns, now_ms)

    def committed_ended(self, time_ns: int, now_ms: int) -> None:
        """A question for committed offsets has returned."""
        self._consumer["committed"].record(time_ns, now_ms)


# `CoordinatorMetrics`: what a group member and the commits of offsets record.


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
