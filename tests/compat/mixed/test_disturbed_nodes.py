"""Brokers of both kinds hang, are restarted, and do nothing for a while: no send fails, and no ISR changes without a cause."""

import threading
from pathlib import Path

import pytest
from tests.support.peers.leaders import await_in_sync, await_leader, lead, leaders, make_replicated
from tests.support.peers.load import QUICK, Load
from tests.support.peers.ottla_clients import Faces
from tests.support.servers.apache_kafka import ApacheKafka
from tests.support.servers.mixed_cluster import MixedCluster, Part

from ottla import Admin, Producer
from ottla.records.batch import iterate_batches
from ottla.records.layout import CONTROL
from ottla.records.reader import read_records
from ottla.wire.messages.metadata_records import PartitionChangeRecord

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

CONTROLLER, OTTLA, APACHE = 1, 2, 3
NODES = {CONTROLLER: Part("ottla", "controller"), OTTLA: Part("ottla", "broker"), APACHE: Part("apache", "broker")}
PARTITIONS = {0: [OTTLA, APACHE], 1: [APACHE, OTTLA]}


def other_than(node: int) -> int:
    return OTTLA + APACHE - node


def test_leader_that_hung_follows_when_it_goes_on(apache_kafka: ApacheKafka, tmp_path: Path) -> None:
    with MixedCluster(apache_kafka, tmp_path, NODES) as cluster:
        cluster.start(CONTROLLER)
        cluster.start(OTTLA, APACHE)
        with Admin(cluster.bootstrap, **QUICK) as admin, Faces("sync") as face:
            make_replicated(admin, "t", PARTITIONS)
            with Load(face, cluster.bootstrap, "t", len(PARTITIONS), producer={"acks": "all"}) as load:
                for victim in (OTTLA, APACHE, OTTLA, APACHE):
                    for partition in PARTITIONS:
                        lead(admin, "t", partition, victim)
                    load.await_more(100)
                    cluster.pause(victim)
                    with Admin(f"127.0.0.1:{cluster.broker_ports[other_than(victim)]}", **QUICK) as left:
                        for partition in PARTITIONS:
                            await_leader(left, "t", partition, other_than(victim))
                        load.await_more(100)
                        cluster.resume(victim)
                        await_in_sync(left, "t")
            for partition in PARTITIONS:
                assert cluster.await_equal("t", partition, OTTLA, APACHE)


def test_rolling_restarts_without_a_failed_send(apache_kafka: ApacheKafka, tmp_path: Path) -> None:
    # With such sessions only a permitted shutdown moves leaders in the time of a test.
    with MixedCluster(apache_kafka, tmp_path, NODES, {"broker.session.timeout.ms": 600_000}) as cluster:
        cluster.start(CONTROLLER)
        cluster.start(OTTLA, APACHE)
        with Admin(cluster.bootstrap, **QUICK) as admin, Faces("sync") as face:
            make_replicated(admin, "t", PARTITIONS)
            sending = {"acks": "all", "retries": 3}
            with Load(face, cluster.bootstrap, "t", len(PARTITIONS), producer=sending) as load:
                for node in (OTTLA, APACHE, OTTLA):
                    for partition in PARTITIONS:
                        lead(admin, "t", partition, node)
                    load.await_more(100)
                    cluster.stop(node)
                    assert set(leaders(admin, "t").values()) == {other_than(node)}
                    load.await_more(100)
                    cluster.start(node)
                    await_in_sync(admin, "t")
            for partition in PARTITIONS:
                assert cluster.await_equal("t", partition, OTTLA, APACHE)


def partition_changes(cluster: MixedCluster) -> int:
    """How many records of the metadata log change a partition."""
    data = (cluster.metadata_log(CONTROLLER) / "00000000000000000000.log").read_bytes()
    batches = (batch for batch in iterate_batches(data, allow_cut_end=True) if not batch.attributes & CONTROL)
    values = (record.value or b"" for batch in batches for record in read_records(batch))
    return sum(value[1] == PartitionChangeRecord.KEY for value in values)  # behind the frame's version


def test_idle_partitions_stay_in_sync(apache_kafka: ApacheKafka, tmp_path: Path) -> None:
    count = 100
    settings = {"replica.lag.time.max.ms": 6000, "broker.session.timeout.ms": 30_000}
    with MixedCluster(apache_kafka, tmp_path, NODES, settings) as cluster:
        cluster.start(CONTROLLER)
        cluster.start(OTTLA, APACHE)
        with Admin(cluster.bootstrap, **QUICK) as admin, Producer(cluster.bootstrap, acks="all", **QUICK) as producer:
            make_replicated(admin, "idle", {index: PARTITIONS[index % 2] for index in range(count)})
            make_replicated(admin, "clock", PARTITIONS)
            for index in range(count):
                producer.send("idle", b"once", partition=index).result(60)
            before = partition_changes(cluster)
            pace = threading.Event()
            for second in range(30):
                producer.send("clock", b"%d" % second, partition=second % 2).result(60)
                pace.wait(1)
            assert partition_changes(cluster) == before, "an ISR has changed"
            assert all(len(found.isr) == 2 for found in admin.describe_topics(["idle"])["idle"].partitions)
            lead(admin, "clock", 0, APACHE)
            assert partition_changes(cluster) > before
