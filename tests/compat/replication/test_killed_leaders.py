"""Three nodes replicate a topic, and its leaders are killed under load: nothing is lost, doubled or out of order."""

from pathlib import Path

import pytest
from tests.support.peers.leaders import await_in_sync, leaders, make_replicated
from tests.support.peers.load import QUICK
from tests.support.recorded.replicas import await_equal_replicas
from tests.support.recorded.run import Recorded
from tests.support.servers.apache_kafka import ApacheKafka
from tests.support.servers.java_programs import JavaPrograms
from tests.support.servers.ottla_cluster import NODES, OttlaCluster

from ottla import Admin

ASSIGNMENT = {0: [1, 2, 3], 1: [2, 3, 1], 2: [3, 1, 2]}
TOPIC = "replicated"


def kill_leaders(folder: Path, rounds: int, java: JavaPrograms | None = None) -> None:
    with OttlaCluster(folder) as cluster, Admin(cluster.bootstrap, **QUICK) as admin:
        make_replicated(admin, TOPIC, ASSIGNMENT, {"min.insync.replicas": 2})
        bootstrap = cluster.bootstrap
        with Recorded(folder, java) as run:
            for library in ("ottla", "confluent", *(() if java is None else ("java",))):
                run.produce(library, bootstrap, TOPIC, len(ASSIGNMENT))
            for library in ("ottla", "confluent"):
                run.read(library, bootstrap, TOPIC, len(ASSIGNMENT))
            for number in range(rounds):
                run.await_more(50)
                leader = leaders(admin, TOPIC)[number % len(ASSIGNMENT)]
                assert leader is not None
                cluster.kill(leader)
                run.await_more(50)
                cluster.start(leader)
                await_in_sync(admin, TOPIC)
        assert run.report is not None
        print("\n".join(run.report.lines))
        for node in NODES:
            cluster.kill(node)
        cluster.start(*NODES)
        await_in_sync(admin, TOPIC)
        await_equal_replicas([folder / f"node-{node}" for node in NODES], TOPIC, len(ASSIGNMENT))


def test_killed_leaders_lose_nothing(tmp_path: Path) -> None:
    kill_leaders(tmp_path, len(ASSIGNMENT))


@pytest.mark.slow
@pytest.mark.timeout(3600)  # ten seconds a round, more on a busy machine
def test_fifty_killed_leaders_lose_nothing(tmp_path: Path, apache_kafka: ApacheKafka) -> None:
    kill_leaders(tmp_path, 50, JavaPrograms(apache_kafka, tmp_path / "classes"))
