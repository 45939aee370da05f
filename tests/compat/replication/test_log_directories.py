"""Three nodes with two log directories each: one directory fails, and replicas move between directories, under load."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.support.peers.leaders import await_in_sync, in_sync, leaders, make_replicated
from tests.support.peers.load import QUICK, Load
from tests.support.peers.ottla_clients import Faces
from tests.support.peers.topics import await_true
from tests.support.servers.kafka_server import HANG_S
from tests.support.servers.ottla_cluster import NODES, OttlaCluster

from ottla import Admin, Producer
from ottla.client.admin.log_dirs import Replica
from ottla.ids import TopicPartition

PARTITIONS = 6
ASSIGNMENT = {index: [1 + index % 3, 1 + (index + 1) % 3, 1 + (index + 2) % 3] for index in range(PARTITIONS)}
# A directory that is gone is noticed when a file is created in it: the checkpoint of high watermarks is one.
SETTINGS = {"replica.high.watermark.checkpoint.interval.ms": 500, "auto.leader.rebalance.enable": "false"}
TOPIC = "t"


def partitions_in(directory: Path) -> set[int]:
    return {int(path.name.rpartition("-")[2]) for path in directory.glob(f"{TOPIC}-*") if path.name.count("-") == 1}


def log_bytes(cluster: OttlaCluster, node: int, partition: int) -> bytes:
    """The records of a replica, wherever it is."""
    (folder,) = [each for path in cluster.directories[node] if (each := path / f"{TOPIC}-{partition}").is_dir()]
    return b"".join(path.read_bytes() for path in sorted(folder.glob("*.log")))


def check_equal(cluster: OttlaCluster) -> None:
    """Stop all nodes: their replicas hold the same bytes."""
    for node in list(cluster.nodes):
        cluster.nodes.pop(node).kill()
    size_bytes = 0
    for partition in range(PARTITIONS):
        first, *others = [log_bytes(cluster, node, partition) for node in NODES]
        assert all(other == first for other in others), f"the replicas of partition {partition} differ"
        size_bytes += len(first)
    assert size_bytes > 0


@pytest.mark.slow
def test_failed_directory_moves_leadership_and_the_other_directory_serves_on(tmp_path: Path) -> None:
    with OttlaCluster(tmp_path, SETTINGS, directories=2) as cluster, Admin(cluster.bootstrap, **QUICK) as admin:
        make_replicated(admin, TOPIC, ASSIGNMENT, {"min.insync.replicas": 2})
        node, (kept, broken) = 2, cluster.directories[2]
        await_true(lambda: len(partitions_in(broken) | partitions_in(kept)) == PARTITIONS, "the node to have made its logs")
        lost, left = partitions_in(broken), partitions_in(kept)
        assert lost
        assert left
        led_before = {index for index, leader in leaders(admin, TOPIC).items() if leader == node}
        with Faces("sync") as face, Load(face, cluster.bootstrap, TOPIC, PARTITIONS, producer={"acks": "all"}) as load:
            load.await_more(100)
            aside = broken.with_name("aside")
            broken.rename(aside)
            broken.write_text("not a directory")
            await_true(
                lambda: {index for index, isr in in_sync(admin, TOPIC).items() if node not in isr} == lost,
                "the replicas in the failed directory to leave the ISRs, and no others",
            )
            await_true(lambda: None not in leaders(admin, TOPIC).values(), "all partitions to have a leader")
            led = {index for index, leader in leaders(admin, TOPIC).items() if leader == node}
            assert led == led_before - lost
            load.await_more(200)
            described = admin.describe_log_dirs([node])[node]
            assert {Path(path): each.error is None for path, each in described.items()} == {kept: True, broken: False}

            # Repaired, the node comes back with all replicas.
            cluster.nodes.pop(node).stop()
            broken.unlink()
            aside.rename(broken)
            cluster.start(node)
            await_in_sync(admin, TOPIC)
            load.await_more(100)
        await_in_sync(admin, TOPIC)
        check_equal(cluster)


@pytest.mark.slow
def test_node_starts_without_its_failed_directory(tmp_path: Path) -> None:
    with OttlaCluster(tmp_path, SETTINGS, directories=2) as cluster, Admin(cluster.bootstrap, **QUICK) as admin:
        make_replicated(admin, TOPIC, ASSIGNMENT, {"min.insync.replicas": 2})
        node, (kept, broken) = 2, cluster.directories[2]
        await_true(lambda: len(partitions_in(broken) | partitions_in(kept)) == PARTITIONS, "the node to have made its logs")
        lost, left = partitions_in(broken), partitions_in(kept)
        with Faces("sync") as face, Load(face, cluster.bootstrap, TOPIC, PARTITIONS, producer={"acks": "all"}) as load:
            load.await_more(50)
            cluster.kill(node)
            aside = broken.with_name("aside")
            broken.rename(aside)
            broken.write_text("not a directory")
            cluster.start(node)
            await_true(
                lambda: {index for index, isr in in_sync(admin, TOPIC).items() if node in isr} == left,
                "the replicas in the good directory to be in sync again, and no others",
            )
            assert partitions_in(kept) == left, "nothing is created anew in the other directory"
            load.await_more(100)
            cluster.nodes.pop(node).stop()
            broken.unlink()
            aside.rename(broken)
            cluster.start(node)
            await_in_sync(admin, TOPIC)
        assert partitions_in(broken) == lost
        check_equal(cluster)


@pytest.mark.slow
def test_leaders_and_followers_move_between_directories_under_load(tmp_path: Path) -> None:
    with OttlaCluster(tmp_path, SETTINGS, directories=2) as cluster, Admin(cluster.bootstrap, **QUICK) as admin:
        make_replicated(admin, TOPIC, ASSIGNMENT, {"min.insync.replicas": 2})
        with Faces("sync") as face, Load(face, cluster.bootstrap, TOPIC, PARTITIONS, producer={"acks": "all"}) as load:
            load.await_more(100)
            for target in (1, 0, 1):
                wanted = {
                    Replica(TOPIC, index, node): str(cluster.directories[node][target])
                    for node in NODES
                    for index in range(PARTITIONS)
                }
                admin.alter_replica_log_dirs(wanted).raise_first()
                load.await_more(50)
                for node in NODES:
                    there = cluster.directories[node][target]
                    await_true(
                        lambda there=there: partitions_in(there) == set(range(PARTITIONS)), f"all replicas to be in {there}"
                    )
            load.await_more(100)
        await_in_sync(admin, TOPIC)
        check_equal(cluster)


@contextmanager
def small_disk(path: Path, size: str) -> Iterator[None]:
    """A file system of this size at `path`, which keeps what is there."""
    found = {each.name: each.read_bytes() for each in path.iterdir()}
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", path], capture_output=True, text=True)
    if made.returncode != 0:
        pytest.skip(f"no file system can be mounted here: {made.stderr.strip()}")
    try:
        for name, content in found.items():
            (path / name).write_bytes(content)
        yield
    finally:
        subprocess.run(["umount", "-l", path], check=True)


def test_full_disk_fails_one_directory_and_nothing_is_lost(tmp_path: Path) -> None:
    cluster = OttlaCluster(tmp_path, SETTINGS, directories=2)
    node, (kept, full) = 2, cluster.directories[2]
    with small_disk(full, "8m"), cluster, Admin(cluster.bootstrap, **QUICK) as admin:
        make_replicated(admin, TOPIC, ASSIGNMENT, {"min.insync.replicas": 2})
        await_true(lambda: len(partitions_in(full) | partitions_in(kept)) == PARTITIONS, "the node to have made its logs")
        lost = partitions_in(full)
        with Producer(bootstrap_servers=cluster.bootstrap, acks="all", **QUICK) as producer:
            sent = [producer.send(TOPIC, bytes(10_000), partition=number % PARTITIONS) for number in range(3000)]
            places = [each.result(HANG_S) for each in sent]
        assert len({(each.partition, each.offset) for each in places}) == len(sent)
        await_true(
            lambda: {index for index, isr in in_sync(admin, TOPIC).items() if node not in isr} == lost,
            "the replicas on the full disk to leave the ISRs, and no others",
        )
        assert partitions_in(kept) | lost == set(range(PARTITIONS))
        cluster.nodes.pop(node).stop()
        subprocess.run(["mount", "-o", "remount,size=100m", full], check=True)
        cluster.start(node)
        await_in_sync(admin, TOPIC)
        ends = admin.list_offsets({TopicPartition(TOPIC, index): "latest" for index in range(PARTITIONS)})
        assert sum(each.offset for each in ends.values()) == len(sent)
        check_equal(cluster)


def test_nodes_are_killed_while_their_replicas_move(tmp_path: Path) -> None:
    """Leaders change and followers truncate in the middle of moves; those of a killed node go on when it is back."""
    with OttlaCluster(tmp_path, SETTINGS, directories=2) as cluster, Admin(cluster.bootstrap, **QUICK) as admin:
        make_replicated(admin, TOPIC, ASSIGNMENT, {"min.insync.replicas": 2})
        with Producer(bootstrap_servers=cluster.bootstrap, acks="all") as producer:
            for number in range(100 * PARTITIONS):
                producer.send(TOPIC, bytes(5000), partition=number % PARTITIONS)
            producer.flush()
        throttle = "replica.alter.log.dirs.io.max.bytes.per.second"
        admin.alter_configs({("broker", ""): {throttle: 300_000}}).raise_first()
        sent: list[Any] = []
        with Producer(bootstrap_servers=cluster.bootstrap, acks="all", **QUICK) as producer:
            for node in NODES:
                wanted = {
                    Replica(TOPIC, index, each): str(cluster.directories[each][1])
                    for each in NODES
                    for index in range(PARTITIONS)
                }
                admin.alter_replica_log_dirs(wanted).raise_first()
                sent += [producer.send(TOPIC, b"%d" % number, partition=number % PARTITIONS) for number in range(300)]
                cluster.kill(node)
                sent += [producer.send(TOPIC, b"%d" % number, partition=number % PARTITIONS) for number in range(300)]
                await_true(lambda node=node: node not in leaders(admin, TOPIC).values(), f"the leaders of node {node} to move")
                for each in sent:
                    each.result(HANG_S)
                cluster.start(node)
                await_in_sync(admin, TOPIC)
        admin.alter_configs({("broker", ""): {throttle: None}}).raise_first()
        for node in NODES:
            there = cluster.directories[node][1]
            await_true(lambda there=there: partitions_in(there) == set(range(PARTITIONS)), f"all replicas to be in {there}")
        await_in_sync(admin, TOPIC)
        ends = admin.list_offsets({TopicPartition(TOPIC, index): "latest" for index in range(PARTITIONS)})
        assert sum(each.offset for each in ends.values()) == 100 * PARTITIONS + len(sent)
        check_equal(cluster)
