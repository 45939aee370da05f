"""A pipeline on three nodes, which are killed and started again in turn, loses and doubles nothing, and leaves nothing open."""

from __future__ import annotations

import time
from pathlib import Path
from random import Random

import pytest
from tests.spark.sink.killing import Pipeline
from tests.support.peers.leaders import await_in_sync
from tests.support.peers.load import QUICK
from tests.support.servers.ottla_cli import hanging_transactions
from tests.support.servers.ottla_cluster import NODES, PATIENT, OttlaCluster

from ottla import Admin

pytestmark = pytest.mark.slow

KILL_EVERY_S = 25
WAIT_S = 900
SETTINGS = PATIENT | {
    "default.replication.factor": 3,
    "min.insync.replicas": 2,
    "offsets.topic.num.partitions": 3,
    "offsets.topic.replication.factor": 3,
    "transaction.state.log.num.partitions": 3,
    "transaction.state.log.replication.factor": 3,
    "transaction.state.log.min.isr": 2,
}


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("minutes", [2, 10])
def test_counts_are_exact_while_nodes_are_killed(minutes: int, tmp_path: Path) -> None:
    random = Random(minutes)
    with (
        OttlaCluster(tmp_path, SETTINGS) as cluster,
        Admin(cluster.bootstrap, **QUICK) as admin,
        Pipeline(cluster.bootstrap, tmp_path / "pipeline") as pipeline,
    ):
        pipeline.feed()
        pipeline.await_results(WAIT_S)
        began_s = time.monotonic()
        while time.monotonic() - began_s < minutes * 60:
            next_s = time.monotonic() + KILL_EVERY_S
            pipeline.feed()
            time.sleep(random.uniform(0, 2))  # somewhere within a batch
            victim = random.choice(NODES)
            pipeline.kills.append(f"node {victim}")
            cluster.kill(victim)
            pipeline.feed()
            pipeline.await_results(WAIT_S)
            pipeline.feed()
            cluster.start(victim)
            for topic in ("input", "output", "__transaction_state"):
                await_in_sync(admin, topic, WAIT_S)
            print(f"kill {len(pipeline.kills)}, node {victim}: {pipeline.sent} records", flush=True)
            while time.monotonic() < next_s:
                pipeline.feed()
                pipeline.await_results(WAIT_S)
        pipeline.await_results(WAIT_S)
        pipeline.check()
        failures = pipeline.folder / "failures"
        restarts = failures.read_text(encoding="utf-8").count("----") if failures.exists() else 0
        print(f"{len(pipeline.kills)} nodes killed, {pipeline.sent} records, {restarts} restarts of the query")
        assert hanging_transactions(cluster.bootstrap) == []
