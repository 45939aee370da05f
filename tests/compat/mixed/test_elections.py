"""Leaders of both kinds are killed under load, and come back with records that nobody else has: nothing is lost or doubled."""

from pathlib import Path

import pytest
from tests.support.peers.leaders import await_in_sync, await_leader, lead, leaders, make_replicated
from tests.support.peers.load import QUICK, Load
from tests.support.peers.ottla_clients import Faces
from tests.support.servers.apache_kafka import ApacheKafka
from tests.support.servers.mixed_cluster import MixedCluster, Part

from ottla import Admin, Producer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

CONTROLLER, OTTLA, APACHE = 1, 2, 3
BROKERS = {OTTLA: Part("ottla", "broker"), APACHE: Part("apache", "broker")}
KILLS = 4
OLD = b"only the old leader"
PARTITIONS = {0: [OTTLA, APACHE], 1: [APACHE, OTTLA]}


@pytest.mark.parametrize("controller", ["ottla", "apache"])
def test_killed_leaders_lose_nothing(controller: str, apache_kafka: ApacheKafka, tmp_path: Path) -> None:
    nodes = {CONTROLLER: Part(controller, "controller"), **BROKERS}
    with MixedCluster(apache_kafka, tmp_path, nodes) as cluster:
        cluster.start(CONTROLLER)
        cluster.start(OTTLA, APACHE)
        with Admin(cluster.bootstrap, **QUICK) as admin, Faces("sync") as face:
            make_replicated(admin, "plain", PARTITIONS)
            make_replicated(admin, "packed", PARTITIONS)
            with (
                Load(face, cluster.bootstrap, "plain", 2, producer={"acks": "all"}) as plain,
                Load(face, cluster.bootstrap, "packed", 2, producer={"acks": "all", "compression_type": "zstd"}) as packed,
            ):
                for turn in range(KILLS):
                    victim = (OTTLA, APACHE)[turn % 2]
                    other = OTTLA + APACHE - victim
                    for load in (plain, packed):
                        lead(admin, load.topic, 0, victim)
                        load.await_more(100)
                    cluster.kill(victim)
                    for load in (plain, packed):
                        for partition in PARTITIONS:
                            await_leader(admin, load.topic, partition, other)
                        load.await_more(100)
                    cluster.start(victim)
                    for load in (plain, packed):
                        await_in_sync(admin, load.topic)
                    print(turn, victim, leaders(admin, "plain"), len(plain.found))
            for topic in ("plain", "packed"):
                for partition in PARTITIONS:
                    assert cluster.await_equal(topic, partition, OTTLA, APACHE)
            assert "unexpected" not in cluster.running[OTTLA].log_text()


@pytest.mark.parametrize("old", [OTTLA, APACHE])
def test_old_leader_gives_up_what_only_it_has(old: int, apache_kafka: ApacheKafka, tmp_path: Path) -> None:
    new = OTTLA + APACHE - old
    # The paused follower must not lose its session before the killed leader does.
    settings = {"broker.session.timeout.ms": 8000, "replica.lag.time.max.ms": 60_000}
    nodes = {CONTROLLER: Part("ottla", "controller"), **BROKERS}
    with MixedCluster(apache_kafka, tmp_path, nodes, settings) as cluster:
        cluster.start(CONTROLLER)
        cluster.start(OTTLA, APACHE)
        with Admin(cluster.bootstrap, **QUICK) as admin:
            make_replicated(admin, "t", {0: [old, new]})
            send(cluster, "1", b"both", 30)
            cluster.await_equal("t", 0, OTTLA, APACHE)
            cluster.pause(new)
            send(cluster, "1", OLD, 20)
            cluster.kill(old)
            cluster.resume(new)
            await_leader(admin, "t", 0, new)
            # The first record was the answer to a fetch that waited when the follower was paused.
            assert cluster.held(new, "t", 0).count(OLD) <= 1
            assert cluster.held(old, "t", 0).count(OLD) == 20
            send(cluster, "all", b"the new leader", 7)
            cluster.start(old)
            await_in_sync(admin, "t")
            after = cluster.await_equal("t", 0, OTTLA, APACHE)
            assert after.count(OLD) <= 1
            assert after.count(b"the new leader") == 7
            send(cluster, "all", b"both again", 5)
            assert cluster.await_equal("t", 0, OTTLA, APACHE).count(b"both again") == 5


def send(cluster: MixedCluster, acks: str, value: bytes, count: int) -> None:
    with Producer(cluster.bootstrap, acks=acks, enable_idempotence=acks == "all", **QUICK) as producer:
        for _ in range(count):
            producer.send("t", value).result(60)
