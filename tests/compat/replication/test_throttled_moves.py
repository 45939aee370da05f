"""Partitions get replicas on another broker while they are written to, at a throttled rate."""

import time
from pathlib import Path

import pytest
from tests.support.peers.leaders import await_in_sync, make_replicated
from tests.support.peers.load import QUICK, Load
from tests.support.peers.ottla_clients import Faces
from tests.support.peers.topics import await_true
from tests.support.servers.ottla_cluster import OttlaCluster

from ottla import Admin, Producer
from ottla.ids import TopicPartition

RATE = 2_000_000
PARTITIONS = 50
VALUE = bytes(10_000)
COUNT = 2_600
"""26 MB: 13 s at the rate."""


def copied_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("moved-*/*.log"))


@pytest.mark.slow
@pytest.mark.parametrize("side", ["leader", "follower"])
def test_new_replicas_are_filled_at_the_throttled_rate(side: str, tmp_path: Path) -> None:
    with OttlaCluster(tmp_path) as cluster, Admin(cluster.bootstrap, **QUICK) as admin:
        make_replicated(admin, "moved", {index: [1, 2] for index in range(PARTITIONS)}, {"min.insync.replicas": 2})
        make_replicated(admin, "other", {0: [1, 2, 3]}, {"min.insync.replicas": 2})
        with Producer(bootstrap_servers=cluster.bootstrap, acks="all", compression_type="none") as producer:
            for number in range(COUNT):
                producer.send("moved", VALUE, partition=number % PARTITIONS)
            producer.flush()
        # As kafka-reassign-partitions does: the replicas that send, and those that are added.
        listed = ",".join(f"{index}:{1 if side == 'leader' else 3}" for index in range(PARTITIONS))
        name = f"{side}.replication.throttled"
        admin.alter_configs({("broker", ""): {f"{name}.rate": RATE}, ("topic", "moved"): {f"{name}.replicas": listed}})
        with (
            Faces("sync") as face,
            Load(face, cluster.bootstrap, "other", 1, producer={"acks": "all", "retries": 2}) as load,
        ):
            load.await_more(20)
            targets = {TopicPartition("moved", index): [1, 3] for index in range(PARTITIONS)}
            admin.alter_partition_reassignments(targets).raise_first()
            folder = tmp_path / "node-3"
            total = COUNT * len(VALUE)
            await_true(lambda: copied_bytes(folder) > 0.2 * total, "a fifth to be copied")
            began_s, began_bytes = time.monotonic(), copied_bytes(folder)
            await_true(lambda: copied_bytes(folder) > 0.8 * total, "most to be copied")
            rate = (copied_bytes(folder) - began_bytes) / (time.monotonic() - began_s)
            load.await_more(20)  # followers of other partitions are not held up
        assert 0.8 * RATE < rate < 1.2 * RATE
        await_true(lambda: not admin.list_partition_reassignments(), "the reassignment to be over")
        await_in_sync(admin, "moved")
        found = admin.describe_topics(["moved"])["moved"]
        assert [list(each.replicas) for each in found.partitions] == [[1, 3]] * PARTITIONS
