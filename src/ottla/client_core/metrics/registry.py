"""`MetricsRegistry`: the metrics of one client, read as measurements, as a dict or as Prometheus's text.

The tables (`table.py`) say which metrics there are, and from which sensor and statistic each is read. A `SensorSet` is one
table's sensors for one set of tags: the whole client, a node, a topic or a partition. The recorders (`producer.py`,
`consumer.py`, `connections.py`) own the sets and are what other code calls.

Recording belongs to the client's event loop, except where a recorder says otherwise. Reading works from any thread.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Literal, NamedTuple, Protocol

from ottla.client_core.metrics.sensor import Sensor, Statistic
from ottla.metrics_text import MetricsText

ClientKind = Literal["producer", "consumer", "admin-client"]
"""Kafka's word for a kind of client in the names of its groups."""

Tags = tuple[tuple[str, str], ...]
"""Tag names are Kafka's: topic, partition, node-id."""


class MetricRow(NamedTuple):
    """One metric of a table."""

    name: str
    sensor: str
    """The sensor that it is read from; empty for a gauge."""
    statistic: Statistic
    text: str
    """What it is, in one sentence."""


class MetricTable(NamedTuple):
    """The metrics of one Kafka group with one set of tag names."""

    group: str
    tag_names: tuple[str, ...]
    rows: tuple[MetricRow, ...]


class Measurement(NamedTuple):
    """One metric's value when it was read."""

    group: str
    name: str
    tags: Tags
    value: float
    is_counter: bool
    text: str


class MetricsSettings(Protocol):
    """The settings that metrics depend on; every client has them."""

    @property
    def metrics_sample_window_ms(self) -> int: ...
    @property
    def metrics_num_samples(self) -> int: ...


class DefaultMetricsSettings:
    """Kafka's defaults, for machines that run without a client."""

    metrics_sample_window_ms = 30_000
    metrics_num_samples = 2


class SensorSet:
    """The sensors of one table for one set of tags."""

    __slots__ = ("_gauges", "_sensors", "table", "tags")

    def __init__(self, table: MetricTable, tags: Tags, window_ms: int, sample_count: int) -> None:
        self.table = table
        self.tags = tags
        self._sensors = {row.sensor: Sensor(window_ms, sample_count) for row in table.rows if row.sensor}
        self._gauges: dict[str, Callable[[], float]] = {}

    def __getitem__(self, sensor: str) -> Sensor:
        return self._sensors[sensor]

    def gauge(self, name: str, read: Callable[[], float]) -> None:
        """Read the gauge `name` with this function, from any thread. A gauge without a function is left out."""
        if not any(row.name == name and row.statistic is Statistic.GAUGE for row in self.table.rows):
            raise KeyError(f"{self.table.group} has no gauge {name}")
        self._gauges[name] = read

    def read(self, now_ms: int) -> Iterable[Measurement]:
        """The values of all metrics of the set."""
        for name, sensor, statistic, text in self.table.rows:
            if statistic is not Statistic.GAUGE:
                value = self._sensors[sensor].read(statistic, now_ms)
            elif name in self._gauges:
                value = self._gauges[name]()
            else:
                continue
            yield Measurement(self.table.group, name, self.tags, value, statistic.is_counter, text)


class MetricsRegistry:
    """All metrics of one client."""

    def __init__(self, kind: ClientKind, client_id: str = "", settings: MetricsSettings | None = None) -> None:
        settings = settings or DefaultMetricsSettings()
        self.kind = kind
        self.client_id = client_id
        self._window_ms = settings.metrics_sample_window_ms
        self._sample_count = settings.metrics_num_samples
        self._sets: dict[tuple[str, str, Tags], SensorSet] = {}
        """By group, first metric and tags: connections and sender share `producer-metrics`, so the group is not enough."""

    def add(self, table: MetricTable, *tag_values: object) -> SensorSet:
        """The set of `table` for these values of its tags, made at its first use."""
        tags = tuple((name, str(value)) for name, value in zip(table.tag_names, tag_values, strict=True))
        key = (table.group, table.rows[0].name, tags)
        found = self._sets.get(key)
        if found is None:
            # Atomic: the loop and the thread that polls may both be the first to see a topic.
            found = self._sets.setdefault(key, SensorSet(table, tags, self._window_ms, self._sample_count))
        return found

    def remove(self, sensors: SensorSet) -> None:
        """Forget a set: its partition is no longer assigned."""
        self._sets.pop((sensors.table.group, sensors.table.rows[0].name, sensors.tags), None)

    def read(self, now_ms: int) -> list[Measurement]:
        """All values now."""
        # The copy: the loop may add a topic while another thread reads.
        return [measurement for sensors in list(self._sets.values()) for measurement in sensors.read(now_ms)]

    def as_dict(self, now_ms: int) -> dict[str, dict[str, float]]:
        """All values by group and name: `["producer-metrics"]["record-send-total"]`.

        Nested, because names repeat between groups: a group with tags has them in its key, in Kafka's order, as in
        `["producer-topic-metrics{topic=events}"]` and `["consumer-fetch-manager-metrics{topic=events,partition=0}"]`.
        A value is NaN where Kafka's is: an average without an event in the last minute.
        """
        groups: dict[str, dict[str, float]] = {}
        for each in self.read(now_ms):
            shown = ",".join(f"{name}={value}" for name, value in each.tags)
            groups.setdefault(f"{each.group}{{{shown}}}" if shown else each.group, {})[each.name] = each.value
        return groups

    def prometheus_text(self, now_ms: int) -> str:
        """All values in Prometheus's text format."""
        text = MetricsText()
        for name, measurements in self.families(now_ms).items():
            text.family(name, "counter" if measurements[0].is_counter else "gauge", measurements[0].text)
            for each in measurements:
                text.sample(each.value, self.labels(each))
        return text.encode().decode()

    def families(self, now_ms: int) -> dict[str, list[Measurement]]:
        """The measurements by Prometheus name, without those that are NaN.

        The names are those of the Prometheus JMX exporter: `kafka_producer_producer_metrics_record_send_total`.
        """
        families: dict[str, list[Measurement]] = {}
        for each in self.read(now_ms):
            if not math.isnan(each.value):
                name = f"kafka_{self.kind}_{each.group}_{each.name}".replace("-", "_")
                families.setdefault(name, []).append(each)
        return families

    def labels(self, measurement: Measurement) -> list[tuple[str, str]]:
        """The Prometheus labels of a measurement: the client's id and the tags."""
        return [("client_id", self.client_id), *((name.replace("-", "_"), value) for name, value in measurement.tags)]
