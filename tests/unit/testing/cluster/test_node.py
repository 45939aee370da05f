"""What can be done to one node, and the arguments of `cut_off`."""

import os
import signal
from pathlib import Path

import pytest
from tests.support.peers.topics import await_true

from ottla.testing import Cluster, NotRunning, TimedOut
from ottla.testing.cluster.cuts import BOTH, CLIENTS, IN, CutRule
from ottla.testing.cluster.node import cut_rule

NODES = [1, 2, 3]


def test_everything_is_cut_unless_something_is_named() -> None:
    assert cut_rule(NODES, 2, None, None, BOTH) == CutRule(2, ("1", "3", CLIENTS), BOTH)
    assert cut_rule(NODES, 2, None, False, IN) == CutRule(2, ("1", "3"), IN)
    assert cut_rule(NODES, 2, None, True, BOTH) == CutRule(2, (CLIENTS,), BOTH)
    assert cut_rule(NODES, 2, [3], None, BOTH) == CutRule(2, ("3",), BOTH)
    assert cut_rule(NODES, 2, [3, 3], True, BOTH) == CutRule(2, ("3", CLIENTS), BOTH)


@pytest.mark.parametrize(
    ("node", "nodes", "clients", "direction", "said"),
    [
        (4, None, None, BOTH, "the cluster has no node 4; it has 1, 2, 3"),
        (2, [4], None, BOTH, "the cluster has no node 4"),
        (2, [2], None, BOTH, "node 2 cannot be cut off from itself"),
        (2, [], None, BOTH, "names neither nodes nor clients"),
        (2, None, None, "sideways", "direction='sideways': choose from both, in, out"),
    ],
)
def test_a_mistake_in_a_cut_is_named(
    node: int, nodes: list[int] | None, clients: bool | None, direction: str, said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        cut_rule(NODES, node, nodes, clients, direction)


def test_a_list_of_nodes_is_asked_for() -> None:
    with pytest.raises(TypeError, match="from_nodes=3: give a list"):
        cut_rule(NODES, 2, 3, None, BOTH)  # type: ignore[arg-type]


def test_a_node_before_the_start() -> None:
    node = Cluster().node(2)
    assert not node.is_running
    assert not node.is_paused
    assert node.log_lines == []
    assert repr(node) == "<ClusterNode 2: it was not started>"
    with pytest.raises(NotRunning, match="was not started"):
        _ = node.port
    with pytest.raises(NotRunning):
        node.kill()


def process_state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_kill_and_start(cluster: Cluster) -> None:
    node = cluster.node(2)
    pid, address = node.pid, node.bootstrap_servers
    node.kill()
    assert not node.is_running
    with pytest.raises(NotRunning, match="node 2 has no process: it was killed"):
        _ = node.pid
    with pytest.raises(NotRunning, match=r"node 2 is not running: it was killed\. start\(\) it"):
        node.pause()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    node.start()
    assert (node.bootstrap_servers, node.is_running) == (address, True)
    with pytest.raises(NotRunning, match="node 2 is running already"):
        node.start()


def test_a_pause_stops_the_process_until_its_block_ends(cluster: Cluster) -> None:
    node = cluster.node(3)
    with node.pause() as paused:
        assert paused is node
        assert node.is_paused
        await_true(lambda: process_state(node.pid) == "T", "the process is stopped")
    assert not node.is_paused
    await_true(lambda: process_state(node.pid) != "T", "the process goes on")
    node.resume()  # harmless


def test_stop_is_clean_and_restart_keeps_the_address(cluster: Cluster) -> None:
    node = cluster.node(1)
    node.stop()
    assert (node.data / ".kafka_cleanshutdown").exists()
    node.start()
    port, pid = node.port, node.pid
    node.restart()
    assert node.port == port
    assert node.pid != pid
    assert any("node 1 has stopped" in line for line in node.log_lines)


def test_a_start_without_a_majority_says_what_is_missing(cluster: Cluster) -> None:
    for node_id in NODES:
        cluster.node(node_id).kill()
    with pytest.raises(TimedOut, match=r"node 1 did not start within 1 s\. .*\(node 2: it was killed; node 3: it was killed\)"):
        cluster.node(1).start(timeout=1)
    cluster.start()
    assert all(node.is_running for node in cluster.nodes)


def test_faults_are_injected_into_one_node(cluster: Cluster) -> None:
    cluster.create_topic("faulty", partitions=3)
    node = cluster.leader("faulty", 1)
    with node.faults.fail("Produce", "INVALID_RECORD", topic="faulty") as fault:
        assert fault.hits == 0
    assert "fail of Produce" in repr(fault)


def test_a_process_that_dies_by_itself_is_a_failure() -> None:
    from ottla.testing import BrokerFailed

    cluster = Cluster(nodes=3)
    cluster.start()
    try:
        node = cluster.node(2)
        os.kill(node.pid, signal.SIGKILL)
        await_true(lambda: not node.is_running, "its end is noticed")
        with pytest.raises(BrokerFailed, match="ended with code -9"):
            cluster.wait_until_healthy()
    finally:
        with pytest.raises(BrokerFailed, match="ended with code -9"):
            cluster.stop()
