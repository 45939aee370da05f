"""The metrics page of a node, read by Prometheus's own parser."""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.support.nodes.data_node import DataNode, append
from tests.support.nodes.images import context_of

from ottla.broker import group_metrics
from ottla.broker.metrics import NodeMetrics
from ottla.broker.partitions.partition import Partition
from ottla.broker.replication.quota import ReplicationQuota
from ottla.broker.replication.replication import IsrCounters
from ottla.broker.requests.counters import Counters
from ottla.broker.requests.loop_health import LoopHealth, WorkHolds
from ottla.broker.runtime.cluster_metrics import ElectionCounter
from ottla.env import ProcessUsage
from ottla.log.directories.log_directories import LogDirectories
from ottla.metrics_text import MetricsText
from ottla.raft.roles.unattached import Unattached
from ottla.wire.api_table import ApiKey

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


class PartitionsView:
    """The part of the broker's `Partitions` that metrics use."""

    def __init__(self, node: DataNode) -> None:
        self._all = node.partitions.all
        self.offline = {"gone": "why"}
        self.by_name: dict[str, dict[int, Partition]] = {}
        for name, each in self._all.items():
            self.by_name.setdefault(name.topic, {})[name.partition] = each

    def __iter__(self) -> Iterator[Partition]:
        return iter(self._all.values())


def text_of(
    node: DataNode,
    counters: Counters,
    usage: Any = None,
    health: LoopHealth | None = None,
    is_broker: bool = True,
    silent_ms: int = 0,
    leader_id: int = 1,
) -> str:
    services = context_of(node.image, 0, 0, **node.services).services
    known: Any = SimpleNamespace(
        partitions=PartitionsView(node),
        directories=node.storage.directories,
        metadata=services.metadata,
        membership=SimpleNamespace(silent_ms=lambda: silent_ms),
        settings=SimpleNamespace(current=SimpleNamespace(broker_session_timeout_ms=9000)),
        controller=SimpleNamespace(is_active=True),
        scheduler=SimpleNamespace(now_s=lambda: 5.0),
        elections=ElectionCounter(),
        replication=SimpleNamespace(
            isr_counters=IsrCounters(),
            lags=lambda: {2: 7},
            leader_quota=ReplicationQuota(11, 1),
            follower_quota=ReplicationQuota(11, 1),
        ),
        fetch_sessions=[1, 2],
        moves=[],
        world=SimpleNamespace(clock=node.storage.clock, usage=usage, disk=node.storage.disk),
        quorum=SimpleNamespace(
            leader_id=leader_id,
            epoch=4,
            end_offset=30,
            voters=[1, 2, 3],
            replica=SimpleNamespace(high_watermark=None, role=Unattached(4)),
        ),
    )
    metrics = NodeMetrics(known, counters, health or LoopHealth(lambda: 0.0), known if is_broker else None)
    text = MetricsText()
    asyncio.run(metrics.page(text, {}))
    return text.encode().decode()


def page(node: DataNode, counters: Counters, usage: Any = None, health: LoopHealth | None = None) -> Samples:
    """(name, labels) → value, of all samples; families must not be torn apart."""
    text = text_of(node, counters, usage, health)
    names = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]
    assert len(names) == len(set(names))
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@pytest.fixture
def node() -> DataNode:
    node = DataNode()
    append(node.topic("t", 2), b"a", b"b")
    append(node.topic("u"), b"a")
    return node


def labels(**pairs: str) -> frozenset[tuple[str, str]]:
    return frozenset(pairs.items())


def test_requests_and_connections(node: DataNode) -> None:
    counters = Counters()
    produce = counters.of(ApiKey.PRODUCE)
    produce.requests, produce.errors, produce.bytes_in, produce.bytes_out = 7, 1, 7000, 700
    produce.time_s_total, produce.time_s_max = 0.5, 0.25
    counters.of(ApiKey.FETCH).bytes_out = 12345
    counters.connections.open, counters.connections.accepted = 3, 9
    found = page(node, counters)
    prefix = "kafka_network_requestmetrics"
    of_produce = labels(request="Produce")
    assert found[f"{prefix}_requests_total", of_produce] == 7
    assert found[f"{prefix}_errors_total", of_produce] == 1
    assert found[f"{prefix}_totaltimems_sum", of_produce] == 500
    assert found[f"{prefix}_totaltimems_count", of_produce] == 7
    assert found[f"{prefix}_totaltimems_max", of_produce] == 250
    assert found["kafka_server_brokertopicmetrics_bytesin_total", labels()] == 7000
    assert found["kafka_server_brokertopicmetrics_bytesout_total", labels()] == 12345
    assert found["kafka_server_socket_server_metrics_connection_count", labels()] == 3
    assert found["kafka_server_socket_server_metrics_connection_creation_total", labels()] == 9


def test_loop_health(node: DataNode) -> None:
    counters, health = Counters(), LoopHealth(lambda: 0.0)
    counters.of(ApiKey.PRODUCE).hold_s_max = 0.25
    counters.of(ApiKey.CREATE_TOPICS).hold_s_max = 0.01
    health.holds_of_requests["Produce"] = 3
    for cause, hold_s in (("publishing", 0.15), ("CreateTopics", 0.5)):
        health.work[cause] = work = WorkHolds()
        work.hold_s_max, work.holds = hold_s, int(hold_s > 0.2)
    found = page(node, counters, health=health)
    holds = {cause: found["ottla_loop_hold_ms_max", labels(cause=cause)] for cause in ("Produce", "publishing", "CreateTopics")}
    assert holds == {"Produce": 250, "publishing": 150, "CreateTopics": 500}
    counts = {
        cause: found["ottla_loop_holds_total", labels(cause=cause)] for cause in ("Produce", "publishing", "CreateTopics")
    }
    assert counts == {"Produce": 3, "publishing": 0, "CreateTopics": 1}


def test_partitions_and_logs(node: DataNode) -> None:
    found = page(node, Counters())
    log = node.partitions.leader("t", 0).log
    of_t_0 = labels(topic="t", partition="0")
    assert found["kafka_log_log_size", of_t_0] == log.size_bytes > 0
    assert found["kafka_log_log_logendoffset", of_t_0] == 2
    assert found["kafka_log_log_logstartoffset", of_t_0] == 0
    assert found["kafka_log_log_numlogsegments", of_t_0] == 1
    assert found["kafka_server_brokertopicmetrics_messagesin_total", labels(topic="t")] == 2
    assert found["kafka_server_brokertopicmetrics_messagesin_total", labels()] == 3
    for name, value in {
        "kafka_server_replicamanager_partitioncount": 3,
        "kafka_server_replicamanager_leadercount": 3,
        "kafka_server_replicamanager_offlinereplicacount": 1,
        "kafka_server_replicamanager_underreplicatedpartitions": 0,
        "kafka_controller_kafkacontroller_globaltopiccount": 2,
        "kafka_controller_kafkacontroller_globalpartitioncount": 3,
        "kafka_controller_kafkacontroller_activebrokercount": 1,
        "kafka_controller_kafkacontroller_offlinepartitionscount": 0,
        "kafka_server_fetchsessioncache_numincrementalfetchsessions": 2,
        "kafka_log_logmanager_offlinelogdirectorycount": 0,
    }.items():
        assert found[name, labels()] == value, name


def test_what_upkeep_has_done(node: DataNode) -> None:
    directories: LogDirectories = node.storage.directories
    log = node.partitions.leader("t", 0).log
    for _ in range(60):
        append(node.partitions.leader("t", 0), b"x" * 100)
    log.delete_records(log.log_end_offset)
    segments = len(log.segments)
    assert segments > 2
    asyncio.run(node.storage.upkeep.run_retention())
    found = page(node, Counters())
    assert found["ottla_log_retention_segments_total", labels()] == segments - 1 == directories.counters.segments_expired
    assert found["ottla_log_retention_bytes_total", labels()] == directories.counters.bytes_expired > 2000


def test_process_metrics_where_the_platform_has_them(node: DataNode) -> None:
    names = {name for name, _ in page(node, Counters())}
    assert "process_cpu_seconds_total" not in names
    found = page(node, Counters(), lambda: ProcessUsage(1.5, 10**8, -1))
    assert found["process_cpu_seconds_total", labels()] == 1.5
    assert found["process_resident_memory_bytes", labels()] == 10**8
    assert ("process_open_fds", labels()) not in found


def test_docs_list_exactly_the_families_of_the_page() -> None:
    node = DataNode(compaction=True)
    counters = Counters()
    counters.of(ApiKey.PRODUCE)
    health = LoopHealth(lambda: 0.0)
    watch: Any = SimpleNamespace(start=lambda on_turn: True, busy_s=lambda: 0.0)
    health.watch(watch)
    text = text_of(node, counters, lambda: ProcessUsage(1.5, 10**8, 3, 4096, 8192), health)
    families = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    document = (Path(__file__).parents[3] / "docs" / "metrics.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(\w+)`", document, flags=re.MULTILINE)) == families


def test_quantiles_are_of_recent_requests(node: DataNode) -> None:
    counters = Counters()
    counters.of(ApiKey.PRODUCE).recent_s.extend(number / 1000 for number in range(1000))
    found = page(node, counters)
    name = "kafka_network_requestmetrics_totaltimems"
    assert [round(found[name, labels(request="Produce", quantile=each)]) for each in ("0.50", "0.99", "0.999")] == [
        500,
        990,
        999,
    ]


def test_bytes_in_of_a_topic_grow_with_its_log(node: DataNode) -> None:
    services = context_of(node.image, 0, 0, **node.services).services
    metrics = NodeMetrics(services, Counters(), LoopHealth(lambda: 0.0))
    partition = next(each for each in node.partitions.all.values() if each.topic == "t" and each.log.log_end_offset)
    first = metrics._grown_bytes(partition)
    assert first == partition.log.size_bytes > 0
    append(partition, b"c" * 1000)
    partition.log.roll()
    append(partition, b"d" * 1000)
    assert metrics._grown_bytes(partition) == partition.log.size_bytes
    assert metrics._grown_bytes(partition) == partition.log.size_bytes


def test_large_families_are_written_in_portions() -> None:
    async def play() -> tuple[int, int]:
        turns = 0

        async def other() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        task = asyncio.create_task(other())
        text = MetricsText()
        await group_metrics.write(text, "a", "Words.", ((number, [("n", number)]) for number in range(10_000)))
        task.cancel()
        return turns, text.encode().count(b"\na{")

    assert asyncio.run(play()) == (10_000 // group_metrics.AT_ONCE, 10_000)


def test_loop_is_idle_for_the_share_that_it_waits() -> None:
    now_s, busy_s = 10.0, 0.0
    health = LoopHealth(lambda: now_s)
    assert health.idle_share() is None
    watch: Any = SimpleNamespace(start=lambda on_turn: True, busy_s=lambda: busy_s)
    health.watch(watch)
    now_s, busy_s = 20.0, 2.5
    assert health.idle_share() == 0.75
    now_s, busy_s = 20.5, 3.0
    assert health.idle_share() == 0.75, "two scrapers at once see the same"
    now_s, busy_s = 30.0, 12.5
    assert health.idle_share() == 0.0


def test_node_that_is_only_a_controller_has_no_metrics_of_logs(node: DataNode) -> None:
    whole, mine = text_of(node, Counters()), text_of(node, Counters(), is_broker=False)
    for text in (whole, mine):
        assert "kafka_controller_kafkacontroller_activecontrollercount 1" in text
        assert "kafka_server_raft_metrics_current_epoch 4" in text
        assert "kafka_server_raft_metrics_high_watermark -1" in text
        assert "kafka_server_raft_metrics_number_of_voters 3" in text
    assert "kafka_log_log_size" in whole
    assert "kafka_log_log_size" not in mine
    assert "brokerstate" not in mine


@pytest.mark.parametrize(
    ("is_broker", "silent_ms", "leader_id", "is_healthy"),
    [(True, 9000, -1, 1), (True, 9001, 1, 0), (False, 0, 1, 1), (False, 0, -1, 0)],
    ids=["heard in time", "silent for longer than a session", "leader known", "no leader known"],
)
def test_cluster_is_healthy_only_with_a_controller(
    node: DataNode, is_broker: bool, silent_ms: int, leader_id: int, is_healthy: int
) -> None:
    text = text_of(node, Counters(), is_broker=is_broker, silent_ms=silent_ms, leader_id=leader_id)
    assert f"ottla_cluster_healthy {is_healthy}\n" in text
