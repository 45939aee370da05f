"""The table of metrics: complete rows, unique names, and the metrics that KIP-714 requires of every client."""

from ottla.client_core.metrics.sensor import Statistic
from ottla.client_core.metrics.table import FIXED_TABLES, connection_table, node_table
from ottla.client_core.telemetry import telemetry_name

KINDS = ("producer", "consumer", "admin-client")
TABLES = (*FIXED_TABLES, *(make(kind) for make in (connection_table, node_table) for kind in KINDS))

REQUIRED = """
producer.connection.creation.rate producer.connection.creation.total
producer.node.request.latency.avg producer.node.request.latency.max
producer.produce.throttle.time.avg producer.produce.throttle.time.max
producer.record.queue.time.avg producer.record.queue.time.max
consumer.connection.creation.rate consumer.connection.creation.total
consumer.node.request.latency.avg consumer.node.request.latency.max
consumer.poll.idle.ratio.avg
consumer.coordinator.commit.latency.avg consumer.coordinator.commit.latency.max
consumer.coordinator.assigned.partitions
consumer.coordinator.rebalance.latency.avg consumer.coordinator.rebalance.latency.max
consumer.coordinator.rebalance.latency.total
consumer.fetch.manager.fetch.latency.avg consumer.fetch.manager.fetch.latency.max
"""


def test_the_metrics_that_kip_714_requires_are_there() -> None:
    names = {telemetry_name(table.group, row.name) for table in TABLES for row in table.rows}
    assert {f"org.apache.kafka.{name}" for name in REQUIRED.split()} - names == set()


def test_names_are_unique_within_group_and_tags() -> None:
    names = [(table.group, table.tag_names, row.name) for table in TABLES for row in table.rows]
    assert len(names) == len(set(names))


def test_every_row_has_a_source_and_a_sentence() -> None:
    for table in TABLES:
        for row in table.rows:
            assert (row.statistic is Statistic.GAUGE) == (not row.sensor), row.name
            assert row.text.endswith("."), row.name


def test_totals_and_only_totals_are_counters() -> None:
    for table in TABLES:
        for row in table.rows:
            assert row.statistic.is_counter == row.name.endswith("-total"), row.name


def test_metrics_of_one_name_are_of_one_kind() -> None:
    """Prometheus has one family for a name, with and without tags."""
    kinds: dict[tuple[str, str], bool] = {}
    for table in TABLES:
        for row in table.rows:
            assert kinds.setdefault((table.group, row.name), row.statistic.is_counter) == row.statistic.is_counter
