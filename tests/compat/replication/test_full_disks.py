"""The disk of a node fills up while it leads one partition and follows in others: it stops, says why, and loses nothing."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.peers.leaders import await_in_sync, make_replicated
from tests.support.peers.load import QUICK
from tests.support.peers.topics import await_true
from tests.support.recorded.replicas import await_equal_replicas
from tests.support.recorded.run import Recorded
from tests.support.servers.ottla_cluster import NODES, OttlaCluster

from ottla import Admin, Producer
from ottla.errors import KafkaError

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0 or shutil.which("mount") is None, reason="mounting a small disk needs root"),
]

ASSIGNMENT = {0: [1, 2, 3], 1: [2, 3, 1], 2: [3, 1, 2]}
TOPIC = "replicated"
FULL = 2
SMALL, LARGE = "size=24m", "size=200m"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """The folder of one node, on a disk of its own."""
    folder = tmp_path / f"node-{FULL}"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", SMALL, "tmpfs", folder], check=True)
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def fill(cluster: OttlaCluster, bootstrap: str) -> None:
    """Write to a topic of that node alone until the node has stopped."""
    with Producer(bootstrap, acks=1, delivery_timeout_ms=3000, request_timeout_ms=2000, enable_idempotence=False) as producer:

        def is_full() -> bool:
            if cluster.nodes[FULL].ended_with is None:
                try:
                    producer.send("filler", os.urandom(500_000), partition=0).result(5)
                except (KafkaError, TimeoutError):
                    pass
            return cluster.nodes[FULL].ended_with is not None

        await_true(is_full, "the node with the full disk to stop")


def test_node_with_a_full_disk_stops_and_returns(tmp_path: Path, small_disk: Path) -> None:
    with OttlaCluster(tmp_path) as cluster, Admin(cluster.bootstrap, **QUICK) as admin:
        make_replicated(admin, TOPIC, ASSIGNMENT, {"min.insync.replicas": 2})
        make_replicated(admin, "filler", {0: [FULL]})
        bootstrap = cluster.bootstrap
        with Recorded(tmp_path) as run:
            for library in ("ottla", "confluent"):
                run.produce(library, bootstrap, TOPIC, len(ASSIGNMENT))
            run.read("ottla", bootstrap, TOPIC, len(ASSIGNMENT))
            run.await_more(50)
            fill(cluster, bootstrap)
            said = cluster.log_text(FULL)
            assert "No space left on device" in said
            assert "Free space on its disk" in said
            run.await_more(50)
            cluster.kill(FULL)
            subprocess.run(["mount", "-o", f"remount,{LARGE}", small_disk], check=True)
            cluster.start(FULL)
            await_in_sync(admin, TOPIC)
            run.await_more(50)
        await_equal_replicas([tmp_path / f"node-{node}" for node in NODES], TOPIC, len(ASSIGNMENT))
