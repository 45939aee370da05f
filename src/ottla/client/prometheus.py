"""`PrometheusCollector`: the metrics of a client for the `prometheus_client` library, if the application uses it.

    from prometheus_client import REGISTRY
    REGISTRY.register(producer.prometheus_collector())

The library is imported when Prometheus asks for the metrics, so Ottla does not depend on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ottla.client_core.metrics.registry import MetricsRegistry

if TYPE_CHECKING:
    from prometheus_client import Metric


class PrometheusCollector:
    """A collector over one client's metrics."""

    def __init__(self, metrics: MetricsRegistry, now_ms: Callable[[], int]) -> None:
        self._metrics = metrics
        self._now_ms = now_ms

    def describe(self) -> Iterable[Metric]:
        """Nothing: names appear with the first topic or partition, and several clients share them."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """The families of metrics with their current values. Works from any thread."""
        from prometheus_client import Metric

        for name, measurements in self._metrics.families(self._now_ms()).items():
            is_counter = measurements[0].is_counter
            # The library's counters are named without `_total`; their samples carry it.
            family = Metric(
                name.removesuffix("_total") if is_counter else name, measurements[0].text, "counter" if is_counter else "gauge"
            )
            for each in measurements:
                family.add_sample(name, dict(self._metrics.labels(each)), each.value)
            yield family
