"""Whole topics move from Apache brokers to Ottla brokers and back under load; what was deleted or compacted stays so."""

from pathlib import Path

import pytest
from tests.support.peers.leaders import await_in_sync, lead, leaders, make_replicated
from tests.support.peers.load import QUICK, Load
from tests.support.peers.ottla_clients import Faces
from tests.support.peers.topics import await_true
from tests.support.servers.apache_kafka import ApacheKafka
from tests.support.servers.mixed_cluster import MixedCluster, Part

from ottla import Admin, Consumer, Producer
from ottla.ids import TopicPartition

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

CONTROLLER, OTTLA, APACHE = 1, 2, 3
BROKERS = {OTTLA: Part("ottla", "broker"), APACHE: Part("apache", "broker")}
PARTITIONS = 2


def move(admin: Admin, topic: str, partitions: int, *replicas: int) -> None:
    """Give all partitions these replicas, and wait until they have no others."""
    wanted = {TopicPartition(topic, index): list(replicas) for index in range(partitions)}
    admin.alter_partition_reassignments(wanted).raise_first()
    await_true(lambda: admin.list_partition_reassignments(list(wanted)) == {}, f"{topic} to move to {replicas}")


@pytest.mark.parametrize("controller", ["ottla", "apache"])
def test_topics_move_under_load(controller: str, apache_kafka: ApacheKafka, tmp_path: Path) -> None:
    nodes = {CONTROLLER: Part(controller, "controller"), **BROKERS}
    with MixedCluster(apache_kafka, tmp_path, nodes) as cluster:
        cluster.start(CONTROLLER)
        cluster.start(OTTLA, APACHE)
        with Admin(cluster.bootstrap, **QUICK) as admin, Faces("sync") as face:
            make_replicated(admin, "t", {index: [APACHE] for index in range(PARTITIONS)}, {"segment.bytes": 1024 * 1024})
            with Load(face, cluster.bootstrap, "t", PARTITIONS, producer={"acks": "all", "compression_type": "lz4"}) as load:
                for there in (OTTLA, APACHE, OTTLA, APACHE):
                    load.await_more(300)
                    before = OTTLA + APACHE - there
                    move(admin, "t", PARTITIONS, there)
                    await_true(lambda there=there: set(leaders(admin, "t").values()) == {there}, f"node {there} to lead")
                    await_true(
                        lambda before=before: not any(cluster.held(before, "t", index) for index in range(PARTITIONS)),
                        f"the logs on node {before} to go",
                    )
                load.await_more(300)
                move(admin, "t", PARTITIONS, APACHE, OTTLA)
            await_in_sync(admin, "t")
            for index in range(PARTITIONS):
                assert cluster.await_equal("t", index, OTTLA, APACHE)


def earliest(admin: Admin, topic: str) -> int:
    return admin.list_offsets({TopicPartition(topic, 0): "earliest"})[TopicPartition(topic, 0)].offset


def checkpointed_start(cluster: MixedCluster, node: int, topic: str) -> int:
    lines = (cluster.data(node) / "log-start-offset-checkpoint").read_text().split("\n")
    return next((int(line.split()[2]) for line in lines if line.startswith(f"{topic} 0 ")), 0)


@pytest.mark.parametrize("leader", [OTTLA, APACHE])
def test_deleted_records_are_deleted_on_both(leader: int, apache_kafka: ApacheKafka, tmp_path: Path) -> None:
    follower = OTTLA + APACHE - leader
    nodes = {CONTROLLER: Part("ottla", "controller"), **BROKERS}
    settings = {"log.flush.start.offset.checkpoint.interval.ms": 200}
    with MixedCluster(apache_kafka, tmp_path, nodes, settings) as cluster:
        cluster.start(CONTROLLER)
        cluster.start(OTTLA, APACHE)
        with Admin(cluster.bootstrap, **QUICK) as admin:
            make_replicated(admin, "t", {0: [leader, follower]})
            send(cluster, "t", 100)
            low = admin.delete_records({TopicPartition("t", 0): 60})
            low.raise_first()
            for node in (OTTLA, APACHE):
                await_true(
                    lambda node=node: checkpointed_start(cluster, node, "t") == 60, f"node {node} to begin the log at 60"
                )
            lead(admin, "t", 0, follower)
            assert earliest(admin, "t") == 60
            # A replica that was away while all it has was deleted begins again where the leader begins.
            cluster.kill(leader)
            await_true(lambda: leaders(admin, "t")[0] == follower, "the other one to lead")
            send(cluster, "t", 50)
            admin.delete_records({TopicPartition("t", 0): 130}).raise_first()
            cluster.start(leader)
            await_in_sync(admin, "t")
            lead(admin, "t", 0, leader)
            assert earliest(admin, "t") == 130
            assert read(cluster, "t") == [(offset, b"%d" % (offset - 100)) for offset in range(130, 150)]
            # A new replica is made from a log that does not begin at 0.
            move(admin, "t", 1, leader)
            move(admin, "t", 1, leader, follower)
            await_in_sync(admin, "t")
            lead(admin, "t", 0, follower)
            assert earliest(admin, "t") == 130
            assert read(cluster, "t") == [(offset, b"%d" % (offset - 100)) for offset in range(130, 150)]


def send(cluster: MixedCluster, topic: str, count: int) -> None:
    with Producer(cluster.bootstrap, acks="all", batch_size=200, **QUICK) as producer:
        for delivery in [producer.send(topic, b"%d" % number) for number in range(count)]:
            delivery.result(60)


def read(cluster: MixedCluster, topic: str) -> list[tuple[int, bytes | None]]:
    found: list[tuple[int, bytes | None]] = []
    with Consumer(cluster.bootstrap, auto_offset_reset="earliest", **QUICK) as consumer:
        consumer.assign([(topic, 0)])
        end = consumer.end_offsets([(topic, 0)])[TopicPartition(topic, 0)]

        def is_read() -> bool:
            found.extend((record.offset, record.value) for record in consumer.poll(0.2))
            return bool(found) and found[-1][0] >= end - 1

        await_true(is_read, f"the records up to {end}")
    return found
