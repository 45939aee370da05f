"""A leader, a follower and the controller are paused (SIGSTOP) beyond their limits, and go on: nothing is lost or doubled."""

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
from ottla.testing import Cluster

TOPIC = "paused"
LAG = {"replica.lag.time.max.ms": 2000}
LONG_SESSIONS = {**LAG, "broker.session.timeout.ms": 600_000}


def pause(folder: Path, who: str, settings: dict[str, int], rounds: int = 1) -> None:
    data = folder / "data"
    with Cluster(settings, nodes=3, data=data) as cluster, Admin(cluster.bootstrap_servers, **QUICK) as admin:
        cluster.create_topic(TOPIC, 1, {"min.insync.replicas": 2}, replication_factor=3)
        to_zombies: list[DirectSend] = []
        with Recorded(folder) as run:
            for library in ("ottla", "confluent"):
                run.produce(library, cluster.bootstrap_servers, TOPIC, 1)
                run.read(library, cluster.bootstrap_servers, TOPIC, 1)
            for number in range(rounds):
                run.await_more(50)
                leader = cluster.leader(TOPIC)
                others = [each for each in cluster.nodes if each.node_id != leader.node_id]
                node = {"leader": leader, "follower": others[0], "controller": cluster.controller()}[who]
                with node.pause():
                    if node.node_id == leader.node_id:
                        # It is in the zombie's socket when it goes on, and may be handled before the zombie knows.
                        sent = DirectSend(node.bootstrap_servers, TOPIC, 0, f"zombie-{number}")
                        to_zombies.append(sent)
                    await_true(lambda node=node: node.node_id not in in_sync(admin, TOPIC)[0], "the ISR to shrink")
                    run.await_more(50)
                cluster.wait_until_healthy()
                # It may have asked the node that was paused, which still has its old metadata.
                await_true(lambda: in_sync(admin, TOPIC) == {0: {1, 2, 3}}, "the ISR to grow")
                run.await_more(50)
            # In the history they would be invented records: no producer of it has sent them.
            codes = [each.end() for each in to_zombies]
            assert ErrorCode.NONE not in codes, f"the zombie answered {codes}"
        await_equal_replicas([data / f"node-{each}" for each in (1, 2, 3)], TOPIC, 1)
        stored = stored_values(data / "node-1", TOPIC, 0)
        assert not [value for value in stored if value.startswith("zombie")]


@pytest.mark.slow
def test_paused_leader_answers_nothing_as_a_zombie(tmp_path: Path) -> None:
    pause(tmp_path, "leader", LAG, rounds=3)


@pytest.mark.slow
def test_paused_follower_leaves_the_isr_by_its_lag_and_returns(tmp_path: Path) -> None:
    pause(tmp_path, "follower", LONG_SESSIONS)


@pytest.mark.slow
def test_paused_controller_is_replaced_and_returns(tmp_path: Path) -> None:
    pause(tmp_path, "controller", LAG, rounds=3)
