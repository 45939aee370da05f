"""Replicas are killed one by one, and the first of them is started alone: `ottla` says why there is no leader, and what to do.

Five nodes: the three that hold the topic, and two more, so that there is a controller all the while.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.compat.operations.conftest import RunOttla
from tests.support.peers.leaders import await_leader, make_replicated
from tests.support.peers.topics import await_true

from ottla import Admin
from ottla.testing import Cluster

TOPIC = "orders"
CONFIG = {
    "auto.leader.rebalance.enable": "false",
    "unclean.leader.election.interval.ms": 1000,  # the default is five minutes
}


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(CONFIG, nodes=5) as running:
        yield running


@pytest.fixture
def admin(cluster: Cluster) -> Iterator[Admin]:
    with Admin(cluster.bootstrap_servers, request_timeout_ms=5_000) as client:
        yield client


def kill_one_by_one(cluster: Cluster, admin: Admin) -> None:
    """Each record is acknowledged by the replicas that are left; then only the first-killed is started."""
    make_replicated(admin, TOPIC, {0: [1, 2, 3]})
    cluster.produce(TOPIC, "all have it")
    cluster.node(1).kill()
    cluster.wait_until_fenced(1)
    cluster.produce(TOPIC, "2 and 3 have it")
    cluster.node(2).kill()
    cluster.wait_until_fenced(2)
    cluster.produce(TOPIC, "only 3 has it")
    cluster.node(3).kill()  # now two of five controllers are left: the first-killed makes a majority again
    cluster.node(1).start()
    await_leader(admin, TOPIC, 0, None)


def shown(ottla: RunOttla) -> Any:
    return json.loads(ottla("topics", "describe", TOPIC, "--json").out)[0]["partitions"][0]


@pytest.mark.slow
def test_first_killed_started_alone_does_not_lead_and_ottla_says_why(ottla: RunOttla, cluster: Cluster, admin: Admin) -> None:
    kill_one_by_one(cluster, admin)
    said = ottla("topics", "describe", TOPIC, "--check")
    assert said.rc == 1
    assert said.err == (
        "ottla: orders-0 is offline: only broker 3 holds every acknowledged record, and it is down; broker 1 is up, but was "
        "out of sync or killed. To do: start broker 3: it leads, and nothing is lost. If that is impossible: `ottla "
        "elect-leaders orders:0 --unclean` lets broker 1 lead, and loses what was acknowledged while it was out of sync\n"
    )
    assert ottla("topics", "describe", "--unavailable-partitions").lines, "filters find it"
    preferred = ottla("elect-leaders", "orders:0")
    assert preferred.rc == 1, "broker 1 is preferred, but out of sync"
    assert "nothing was changed: add --yes" in ottla("elect-leaders", "orders:0", "--unclean").err
    unclean = ottla("elect-leaders", "orders:0", "--unclean", "--yes")
    assert unclean.rc == 0, unclean.out + unclean.err
    before, after = unclean.err.splitlines()
    assert before.endswith(
        "for good. The log of broker 1 ends at offset 1. If broker 3 can be started, do that instead: then nothing is lost"
    )
    assert "broker 1 leads with its own log, which ends at offset 1: what was acknowledged from there on is lost" in after
    await_leader(admin, TOPIC, 0, 1)
    assert [each.value for each in cluster.records(TOPIC)] == [b"all have it"]
    cluster.start()
    cluster.wait_until_healthy()
    assert [each.value for each in cluster.records(TOPIC)] == [b"all have it"], "the others cut off what was lost"
    assert ottla("topics", "describe", TOPIC, "--check").rc == 0


@pytest.mark.slow
def test_nothing_is_lost_if_the_right_broker_is_started(ottla: RunOttla, cluster: Cluster, admin: Admin) -> None:
    kill_one_by_one(cluster, admin)
    cluster.node(3).start()
    await_leader(admin, TOPIC, 0, 3)
    assert len(cluster.records(TOPIC)) == 3
    said = ottla("topics", "describe", TOPIC, "--check")
    assert said.rc == 1
    assert "broker 2 is down" in said.err
    cluster.start()
    cluster.wait_until_healthy()
    assert ottla("topics", "describe", TOPIC, "--check").rc == 0


@pytest.mark.slow
def test_topic_that_allows_unclean_elections_is_led_and_the_loss_is_named(
    ottla: RunOttla, cluster: Cluster, admin: Admin
) -> None:
    kill_one_by_one(cluster, admin)
    admin.alter_configs({("topic", TOPIC): {"unclean.leader.election.enable": "true"}}).raise_first()
    await_true(lambda: shown(ottla)["leader"] == 1, "the controller to elect broker 1")
    assert len(cluster.records(TOPIC)) == 1
    lines = [line for line in cluster.node(1).log_lines if "orders-0" in line and "lost" in line]
    assert lines, "the new leader's log names the loss"
    assert "ends at offset 1" in lines[-1]


@pytest.mark.slow
def test_two_killed_eligible_replicas_lead_only_when_both_are_back(ottla: RunOttla, cluster: Cluster, admin: Admin) -> None:
    make_replicated(admin, TOPIC, {0: [1, 2]})
    admin.alter_configs({("topic", TOPIC): {"min.insync.replicas": "2"}}).raise_first()
    cluster.produce(TOPIC, "both have it")
    for node in (1, 2):
        cluster.node(node).kill()
        cluster.wait_until_fenced(node)
    await_leader(admin, TOPIC, 0, None)
    said = ottla("topics", "describe", TOPIC, "--check").err
    assert "To do: start brokers 2 and 1: one that was killed leads only once the last of them is back\n" in said
    cluster.node(2).start()
    await_true(lambda: shown(ottla)["elr"] == [1], "broker 2 to leave the ELR")
    await_leader(admin, TOPIC, 0, None)
    said = ottla("topics", "describe", TOPIC, "--check").err
    assert "broker 2 led last and is up, but was killed: it waits for broker 1. To do: start broker 1: then it or " in said
    cluster.node(1).start()
    await_leader(admin, TOPIC, 0, 2)
    cluster.wait_until_healthy()  # below min.insync.replicas the high watermark stays where its checkpoint was: perhaps at 0
    assert [each.value for each in cluster.records(TOPIC)] == [b"both have it"]
