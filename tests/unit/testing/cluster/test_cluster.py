"""A cluster for tests, as a test uses it."""

import asyncio
import time
from pathlib import Path

import pytest

from ottla import Consumer, Producer
from ottla.errors import KafkaError
from ottla.testing import Cluster, NotRunning


def test_helpers_work_over_all_nodes(cluster: Cluster) -> None:
    cluster.create_topic("orders", partitions=3)
    made = [cluster.produce("orders", f"{number}", partition=number % 3) for number in range(9)]
    assert cluster.records("orders") == sorted(made, key=lambda each: (each.partition, each.offset))
    assert len(cluster.await_records("orders", 9)) == 9
    assert cluster.end_offsets("orders") == {0: 3, 1: 3, 2: 3}
    assert cluster.topics()["orders"] == 3
    assert len({cluster.leader("orders", partition).node_id for partition in range(3)}) == 3
    cluster.delete_topic("orders")
    assert "orders" not in cluster.topics()


def test_records_are_awaited_from_several_leaders(cluster: Cluster) -> None:
    cluster.create_topic("awaited", partitions=3)
    with Producer(cluster.bootstrap_servers) as producer:
        for number in range(30):
            producer.send("awaited", str(number).encode(), partition=number % 3)
        assert len(cluster.await_records("awaited", 30, timeout=30)) == 30


def test_addresses_and_data(cluster: Cluster) -> None:
    servers = cluster.bootstrap_servers.split(",")
    assert servers == [node.bootstrap_servers for node in cluster.nodes]
    assert len(set(servers)) == 3
    assert len(cluster.cluster_id) == 22
    assert [node.data for node in cluster.nodes] == [cluster.data / f"node-{node}" for node in (1, 2, 3)]
    assert repr(cluster) == "<Cluster of 3 nodes, running: 1, 2, 3>"
    assert any(line.startswith("node 2 | ") and "is up at" in line for line in cluster.log_lines)


def test_a_killed_node_loses_nothing_that_was_acknowledged(cluster: Cluster) -> None:
    cluster.create_topic("kept", partitions=3)
    with Producer(cluster.bootstrap_servers, acks="all") as producer:
        sent = [producer.send("kept", str(number).encode(), partition=number % 3) for number in range(300)]
        places = {(each.result(60).partition, each.result(60).offset) for each in sent}
    for partition in range(3):
        cluster.leader("kept", partition).kill()
        cluster.start()
    cluster.wait_until_healthy()
    assert {(each.partition, each.offset) for each in cluster.records("kept")} == places


def test_a_client_follows_while_the_controller_is_killed(cluster: Cluster) -> None:
    old = cluster.controller()
    old.kill()
    new = cluster.controller()
    assert new is not old
    cluster.create_topic("after-failover")
    old.start()
    cluster.wait_until_healthy()


def test_clients_of_a_node_that_is_cut_off_wait_and_go_on(cluster: Cluster) -> None:
    cluster.create_topic("cut")
    node = cluster.leader("cut")
    with Producer(cluster.bootstrap_servers, request_timeout_ms=60_000, delivery_timeout_ms=120_000) as producer:
        producer.send("cut", b"before").result(60)
        with node.cut_off(from_clients=True) as cut:
            assert repr(cut) == f"<Cut of node {node.node_id} from clients, direction both>"
            held = producer.send("cut", b"held back")
            producer.send("cut", b"and another")
            time.sleep(0.5)  # nothing to await: it must not arrive
            assert not held.done()
        assert held.result(60).offset == 1
    assert [each.value for each in cluster.await_records("cut", 3)] == [b"before", b"held back", b"and another"]


def test_one_way_a_request_is_handled_and_its_answer_is_held_back(cluster: Cluster) -> None:
    cluster.create_topic("one-way")
    node = cluster.leader("one-way")
    with Producer(node.bootstrap_servers, request_timeout_ms=60_000, delivery_timeout_ms=120_000) as producer:
        producer.send("one-way", b"before").result(60)
        size = (node.data / "one-way-0" / f"{0:020}.log").stat().st_size
        with node.cut_off(from_clients=True, direction="out"):
            sent = producer.send("one-way", b"stored, not acknowledged")
            deadline_s = time.monotonic() + 60
            while (node.data / "one-way-0" / f"{0:020}.log").stat().st_size == size:
                assert time.monotonic() < deadline_s, "the record was not stored"
                time.sleep(0.01)
            assert not sent.done()
        assert sent.result(60).offset == 1


def test_a_leader_of_the_quorum_that_is_cut_off_is_replaced(cluster: Cluster) -> None:
    old = cluster.controller()
    with cluster.cut_off(old):
        cluster.wait_until_fenced(old)
        assert cluster.controller() is not old
    cluster.wait_until_healthy()


def test_a_paused_node_is_fenced_and_comes_back(cluster: Cluster) -> None:
    node = next(each for each in cluster.nodes if each is not cluster.controller())
    with node.pause():
        cluster.wait_until_fenced(node)
    cluster.wait_until_healthy()


def test_a_group_reads_on_after_its_coordinators_restart(cluster: Cluster) -> None:
    cluster.create_topic("grouped")
    cluster.produce("grouped", "one")
    with Consumer(cluster.bootstrap_servers, group_id="readers", auto_offset_reset="earliest") as consumer:
        consumer.subscribe(["grouped"])
        values: list[bytes | None] = []
        deadline_s = time.monotonic() + 120
        while not values:
            assert time.monotonic() < deadline_s
            values += [each.value for each in consumer.poll(1)]
        consumer.commit()
        cluster.coordinator("readers").restart()
        cluster.produce("grouped", "two")
        while len(values) < 2:
            assert time.monotonic() < deadline_s
            values += [each.value for each in consumer.poll(1)]
    assert values == [b"one", b"two"]


def test_a_refused_request_is_a_kafka_error(cluster: Cluster) -> None:
    cluster.create_topic("twice")
    with pytest.raises(KafkaError, match="exists"):
        cluster.create_topic("twice")


@pytest.mark.slow
def test_data_that_is_kept_is_found_again(tmp_path: Path) -> None:
    with Cluster(nodes=3, data=tmp_path) as cluster:
        cluster_id = cluster.cluster_id
        cluster.create_topic("kept", partitions=3)
        cluster.produce("kept", "value", partition=2)
    assert all((tmp_path / f"node-{node}" / ".kafka_cleanshutdown").exists() for node in (1, 2, 3))
    with Cluster(nodes=3, data=tmp_path) as cluster:
        assert cluster.cluster_id == cluster_id
        assert [each.value for each in cluster.records("kept")] == [b"value"]


def test_async_with_and_temporary_data_is_removed() -> None:
    async def work() -> Path:
        async with Cluster(nodes=1) as cluster:
            await asyncio.to_thread(cluster.create_topic, "orders")
            assert cluster.topics() == {"orders": 1}
            return cluster.data

    data = asyncio.run(work())
    assert not data.exists()


def test_before_the_start() -> None:
    cluster = Cluster()
    assert not cluster.is_running
    assert repr(cluster) == "<Cluster of 3 nodes, running: none>"
    for use in (lambda: cluster.cluster_id, lambda: cluster.data, lambda: cluster.bootstrap_servers, cluster.topics):
        with pytest.raises(NotRunning):
            use()
    with pytest.raises(ValueError, match="the cluster has no node 4; it has 1, 2, 3"):
        cluster.node(4)
    with pytest.raises(TypeError, match="nodes='3': give a number of nodes"):
        Cluster(nodes="3")  # type: ignore[arg-type]
    cluster.stop()  # harmless
