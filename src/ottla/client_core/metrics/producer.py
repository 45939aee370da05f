"""`ProducerMetrics`: what the producer's accumulator and sender record.

One call per batch, request or call of the user, never per record. Methods without "Called by" belong to the sender, on the
client's loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from ottla.client_core.metrics.registry import MetricsRegistry, SensorSet
from ottla.client_core.metrics.table import PRODUCER, PRODUCER_TOPIC

Step = Literal["init", "begin", "send_offsets", "commit", "abort"]


class ProducerMetrics:
    """Records for `producer-metrics` and `producer-topic-metrics`."""

    def __init__(self, registry: MetricsRegistry) -> None:
        self._registry = registry
        self._all = registry.add(PRODUCER)
        self._topics: dict[str, SensorSet] = {}

    # Sender

    def batch_sent(
        self,
        topic: str,
        records: int,
        size_bytes: int,
        queue_ms: int,
        now_ms: int,
        *,
        uncompressed_bytes: int = 0,
        record_bytes_max: int = 0,
    ) -> None:
        """A batch is put in a request, `queue_ms` after it was created. One that is sent again counts again, as in Kafka."""
        every, topics = self._all, self._topic(topic)
        every["records"].record(records, now_ms)
        every["batch_size"].record(size_bytes, now_ms)
        every["queue_time"].record(queue_ms, now_ms)
        topics["records"].record(records, now_ms)
        topics["bytes"].record(size_bytes, now_ms)
        if uncompressed_bytes:
            ratio = size_bytes / uncompressed_bytes
            every["compression"].record(ratio, now_ms)
            topics["compression"].record(ratio, now_ms)
        if record_bytes_max:
            every["record_size"].record(record_bytes_max, now_ms)

    def batch_retried(self, topic: str, records: int, now_ms: int) -> None:
        """A batch will be sent again."""
        self._all["retries"].record(records, now_ms)
        self._topic(topic)["retries"].record(records, now_ms)

    def batch_failed(self, topic: str, records: int, now_ms: int) -> None:
        """A batch has failed for good; its records were told so."""
        self._all["errors"].record(records, now_ms)
        self._topic(topic)["errors"].record(records, now_ms)

    def batch_split(self, now_ms: int) -> None:
        """A batch was too large for the broker and is sent as several."""
        self._all["splits"].record(1, now_ms)

    def request_sent(self, records: int, now_ms: int) -> None:
        """A Produce request with this many records leaves."""
        self._all["request_records"].record(records, now_ms)

    def request_answered(self, latency_ms: int, throttle_ms: int, now_ms: int) -> None:
        """A Produce request was answered."""
        self._all["latency"].record(latency_ms, now_ms)
        self._all["throttle"].record(throttle_ms, now_ms)

    def metadata_updated(self, now_ms: int) -> None:
        """New metadata has come."""
        self._all["metadata"].record(1, now_ms)

    # Callers of send() and of transactions

    def buffer_waited(self, wait_ns: int, now_ms: int) -> None:
        """Called by a caller of send() that waited for buffer.memory; hold the accumulator's lock."""
        self._all["buffer_wait"].record(wait_ns, now_ms)

    def buffer_exhausted(self, now_ms: int) -> None:
        """Called by a caller of send() that waited for max.block.ms in vain; hold the accumulator's lock."""
        self._all["exhausted"].record(1, now_ms)

    def metadata_waited(self, wait_ns: int, now_ms: int) -> None:
        """A caller waited for a topic's metadata."""
        self._all["metadata_wait"].record(wait_ns, now_ms)

    def flushed(self, time_ns: int, now_ms: int) -> None:
        """A flush() has ended."""
        self._all["flush"].record(time_ns, now_ms)

    def transaction_step(self, step: Step, time_ns: int, now_ms: int) -> None:
        """A call that prepares, begins or ends a transaction has returned."""
        self._all[f"txn_{step}"].record(time_ns, now_ms)

    # Gauges

    def watch_buffer(
        self, total_bytes: Callable[[], int], available_bytes: Callable[[], int], waiting: Callable[[], int]
    ) -> None:
        """Where the accumulator's current numbers come from."""
        self._all.gauge("buffer-total-bytes", total_bytes)
        self._all.gauge("buffer-available-bytes", available_bytes)
        self._all.gauge("waiting-threads", waiting)

    def watch_in_flight(self, requests: Callable[[], int]) -> None:
        """Where the number of requests without an answer comes from."""
        self._all.gauge("requests-in-flight", requests)

    def _topic(self, topic: str) -> SensorSet:
        sensors = self._topics.get(topic)
        if sensors is None:
            sensors = self._topics[topic] = self._registry.add(PRODUCER_TOPIC, topic)
        return sensors
