"""Waiting for states of a cluster, and what is said when they do not come."""

import pytest

from ottla import Admin
from ottla.errors import UnknownTopicOrPartitionError
from ottla.testing import Cluster, TimedOut


def test_a_leader_that_was_killed_is_not_a_leader(cluster: Cluster) -> None:
    cluster.create_topic("led", replication_factor=1)
    node = cluster.leader("led")
    node.kill()
    with pytest.raises(
        TimedOut, match=r"waited 1 s for a leader of led-0: (by the metadata node \d leads it, but it was killed|led)"
    ):
        cluster.leader("led", timeout=1)
    node.start()
    assert cluster.leader("led") is node


def test_a_topic_that_does_not_exist_is_not_waited_for(cluster: Cluster) -> None:
    with pytest.raises(UnknownTopicOrPartitionError, match="topic absent does not exist"):
        cluster.leader("absent")
    cluster.create_topic("narrow")
    with pytest.raises(UnknownTopicOrPartitionError, match="narrow-5 does not exist: the topic has partitions 0 to 0"):
        cluster.leader("narrow", 5)


def test_a_cluster_that_stays_ill_says_what_is_wrong(cluster: Cluster) -> None:
    cluster.node(2).kill()
    with pytest.raises(TimedOut, match=r"waited 0\.5 s for a healthy cluster: node 2: it was killed"):
        cluster.wait_until_healthy(timeout=0.5)


def test_every_node_of_a_healthy_cluster_has_the_newest_metadata(cluster: Cluster) -> None:
    controller = cluster.controller()
    paused = next(node for node in cluster.nodes if node is not controller)
    with paused.pause():
        cluster.create_topic("meanwhile", replication_factor=1)
    cluster.wait_until_healthy()
    with Admin(paused.bootstrap_servers) as admin:
        assert "meanwhile" in admin.list_topics()


def test_a_live_node_is_not_fenced(cluster: Cluster) -> None:
    with pytest.raises(TimedOut, match=r"waited 0\.5 s for node 1 to be fenced: the controller still counts on it"):
        cluster.wait_until_fenced(1, timeout=0.5)


def test_without_a_majority_there_is_no_controller(cluster: Cluster) -> None:
    active = cluster.controller()
    other = next(each for each in cluster.nodes if each.node_id != active.node_id)
    other.kill()  # first: the node that is left could win an election with its vote
    active.kill()
    with pytest.raises(TimedOut, match="waited 3 s for an active controller"):
        cluster.controller(timeout=3)


def test_the_coordinator_of_a_group_is_a_node(cluster: Cluster) -> None:
    assert cluster.coordinator("some-group") in cluster.nodes
