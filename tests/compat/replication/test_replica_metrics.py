"""The metrics of replication on three nodes, while a follower is paused and after it has come back."""

import re
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.support.peers.topics import await_true

from ottla.testing import Cluster, ClusterNode

SETTINGS = {
    "ottla.metrics.port": 0,
    "replica.lag.time.max.ms": 3000,
    "broker.session.timeout.ms": 600_000,  # the paused follower is not fenced: its leader has to notice that it lags
    "auto.leader.rebalance.enable": "false",
}
MANAGER = "kafka_server_replicamanager_"
CONTROLLER = "kafka_controller_kafkacontroller_"


def scrape(node: ClusterNode) -> dict[str, float]:
    """Name → value; the largest of all labels."""
    ports = [found[1] for line in node.log_lines if (found := re.search(r"metrics are served at http://[^:]+:(\d+)/", line))]
    with urlopen(f"http://127.0.0.1:{ports[-1]}/metrics", timeout=60) as response:
        text = response.read().decode()
    values: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            values[sample.name] = max(sample.value, values.get(sample.name, sample.value))
    return values


@pytest.mark.slow
def test_paused_follower_is_seen_in_the_metrics() -> None:
    with Cluster(SETTINGS, nodes=3) as cluster:
        cluster.create_topic("t", 2, {"min.insync.replicas": 2}, replication_factor=3)
        cluster.wait_until_healthy()
        controller, leader = cluster.controller(), cluster.leader("t", 0)
        follower = next(each for each in cluster.nodes if each not in (controller, leader))
        await_true(lambda: all(scrape(each)["ottla_cluster_healthy"] == 1 for each in cluster.nodes), "all replicas in sync")
        before = {each: scrape(each) for each in cluster.nodes}
        assert sum(page[f"{MANAGER}leadercount"] for page in before.values()) == 2
        assert {page[f"{MANAGER}partitioncount"] for page in before.values()} == {2}
        assert {page[f"{CONTROLLER}activebrokercount"] for page in before.values()} == {3}
        assert before[leader][f"{MANAGER}underreplicatedpartitions"] == before[leader][f"{MANAGER}atminisrpartitioncount"] == 0
        led = before[leader][f"{MANAGER}leadercount"]

        with follower.pause():
            for number in range(20):
                cluster.produce("t", str(number), partition=0)
            await_true(lambda: scrape(leader)[f"{MANAGER}underreplicatedpartitions"] == led, "the ISRs to shrink")
            page = scrape(leader)
            assert page[f"{MANAGER}isrshrinks_total"] - before[leader][f"{MANAGER}isrshrinks_total"] >= led
            assert (page[f"{MANAGER}atminisrpartitioncount"], page[f"{MANAGER}underminisrpartitioncount"]) == (led, 0)
            await_true(lambda: scrape(controller)["ottla_cluster_healthy"] == 0, "the controller to know of it")
            assert scrape(controller)[f"{CONTROLLER}fencedbrokercount"] == 0
        await_true(lambda: scrape(leader)[f"{MANAGER}underreplicatedpartitions"] == 0, "the follower to be in sync again")
        page = scrape(leader)
        assert page[f"{MANAGER}isrexpands_total"] - before[leader][f"{MANAGER}isrexpands_total"] >= led
        assert page["kafka_controller_controllerstats_uncleanleaderelections_total"] == 0
        await_true(
            lambda: all(scrape(each)["ottla_cluster_healthy"] == 1 for each in cluster.nodes), "the cluster to be healthy"
        )
        await_true(lambda: scrape(follower)["kafka_server_replicafetchermanager_maxlag"] == 0, "the follower to lag no more")
