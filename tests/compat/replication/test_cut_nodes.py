"""Nodes of a replicated topic are cut off, both ways and one way: nothing acknowledged is lost or doubled.

Clients on the lonely leader's side send with acks=all, and get no success for a record that only it has.
"""

from pathlib import Path

import pytest
from tests.support.peers.leaders import in_sync
from tests.support.peers.load import QUICK
from tests.support.peers.topics import await_true
from tests.support.recorded.direct import DirectSend
from tests.support.recorded.replicas import await_equal_replicas, stored_values
from tests.support.recorded.run import Recorded

from ottla import Admin
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition
from ottla.testing import Cluster

TOPIC = "cut"
PARTITIONS = 3
# A node that is cut off is known to be gone after its session; what waits in vain for it, after replica.socket.timeout.ms.
SETTINGS = {"replica.lag.time.max.ms": 2000, "replica.socket.timeout.ms": 2000, "controller.socket.timeout.ms": 2000}


def is_led_elsewhere(admin: Admin, node: int) -> bool:
    found = admin.describe_topics([TOPIC])[TOPIC].partitions
    return all(each.leader is not None and each.leader != node and node not in each.isr for each in found)


def cut_leader(folder: Path, direction: str, *, rounds: int = 1, nodes: int = 3, from_clients: bool = False) -> None:
    data = folder / "data"
    with Cluster(SETTINGS, nodes=nodes, data=data) as cluster:
        cluster.create_topic(TOPIC, PARTITIONS, {"min.insync.replicas": 2}, replication_factor=3)
        with Recorded(folder) as run:
            for library in ("ottla", "confluent"):
                run.produce(library, cluster.bootstrap_servers, TOPIC, PARTITIONS)
                run.read(library, cluster.bootstrap_servers, TOPIC, PARTITIONS)
            lonely = [isolate(cluster, run, direction, from_clients, f"lonely-{number}") for number in range(rounds)]
            codes = [each.end() for each in lonely]
        assert ErrorCode.NONE not in codes, f"the lonely leader answered {codes}"
        folders = list(data.iterdir())
        await_equal_replicas(folders, TOPIC, PARTITIONS)
        for folder in folders:
            stayed = [value for value in stored_values(folder, TOPIC, 0) if value.startswith("lonely")]
            # Cut one way, the leader can still answer a fetch that waits: a follower may have got the record, and lead.
            assert not stayed or direction == "in", stayed


def isolate(cluster: Cluster, run: Recorded, direction: str, from_clients: bool, value: str) -> DirectSend:
    """Cut off the leader of partition 0 until others lead, send it a record meanwhile, and heal the cut."""
    run.await_more(50)
    leader = cluster.leader(TOPIC, 0)
    others = [each for each in cluster.nodes if each.node_id != leader.node_id]
    folder = cluster.data / f"node-{leader.node_id}"
    with Admin(",".join(each.bootstrap_servers for each in others), **QUICK) as admin:
        with leader.cut_off(from_nodes=others, from_clients=from_clients, direction=direction):
            run.history.send(value, TopicPartition(TOPIC, 0), value)
            sent = DirectSend(leader.bootstrap_servers, TOPIC, 0, value)
            if not from_clients:
                await_true(lambda: sent.is_answered or value in stored_values(folder, TOPIC, 0), "the leader to append it")
            await_true(lambda: is_led_elsewhere(admin, leader.node_id), "others to lead")
            run.await_more(50)
            assert sent.code != ErrorCode.NONE, "the lonely leader has acknowledged a record that only it has"
        cluster.wait_until_healthy()
    run.await_more(50)
    return sent


def test_leader_is_cut_off_from_the_others(tmp_path: Path) -> None:
    cut_leader(tmp_path, "both")


@pytest.mark.slow
@pytest.mark.parametrize("direction", ["in", "out"])
def test_leader_is_cut_off_one_way(tmp_path: Path, direction: str) -> None:
    cut_leader(tmp_path, direction, rounds=2)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_leaders_of_five_nodes_are_cut_off_with_their_clients(tmp_path: Path) -> None:
    cut_leader(tmp_path, "both", rounds=3, nodes=5, from_clients=True)


@pytest.mark.slow
@pytest.mark.parametrize("direction", ["both", "in", "out"])
def test_follower_is_cut_off_from_its_leader(tmp_path: Path, direction: str) -> None:
    """It reaches the controller, so it stays registered; the leader drops it from the ISR, and takes it back."""
    data = tmp_path / "data"
    with Cluster(SETTINGS, nodes=3, data=data) as cluster, Admin(cluster.bootstrap_servers, **QUICK) as admin:
        cluster.create_topic(TOPIC, 1, {"min.insync.replicas": 2}, replication_factor=3)
        with Recorded(tmp_path) as run:
            for library in ("ottla", "confluent"):
                run.produce(library, cluster.bootstrap_servers, TOPIC, 1)
                run.read(library, cluster.bootstrap_servers, TOPIC, 1)
            run.await_more(50)
            leader, controller = cluster.leader(TOPIC), cluster.controller()
            follower = next(each for each in cluster.nodes if each.node_id not in (leader.node_id, controller.node_id))
            with follower.cut_off(from_nodes=[leader], direction=direction):
                await_true(lambda: follower.node_id not in in_sync(admin, TOPIC)[0], "the ISR to shrink")
                run.await_more(100)
            cluster.wait_until_healthy()
            run.await_more(50)
        await_equal_replicas([data / f"node-{each}" for each in (1, 2, 3)], TOPIC, 1)
