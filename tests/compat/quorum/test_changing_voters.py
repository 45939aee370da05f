"""Voters added, removed and replaced with Kafka's own tools; auto join; kraft.version raised: with Ottla and Apache leading."""

from pathlib import Path

import pytest
from tests.support.peers.raw_client import RawClient
from tests.support.peers.topics import await_true
from tests.support.servers.apache_kafka import ApacheKafka
from tests.support.servers.mixed_cluster import MixedCluster, Part

from ottla.errors.codes import ErrorCode
from ottla.ids import Uuid, uuid_text
from ottla.wire.messages.add_raft_voter import AddRaftVoterRequest, Listener
from ottla.wire.messages.remove_raft_voter import RemoveRaftVoterRequest

pytestmark = pytest.mark.slow

OTTLA, APACHE = Part("ottla", "controller"), Part("apache", "controller")
AUTO_JOIN = {"controller.quorum.auto.join.enable": "true"}


def voters(cluster: MixedCluster) -> dict[int, Uuid]:
    """Voter → directory id, as the leader says."""
    return {each.replica_id: each.replica_directory_id for each in cluster.quorum().current_voters}


def observers(cluster: MixedCluster) -> dict[int, Uuid]:
    """The observers that have caught up, with their directory ids."""
    found = cluster.quorum()
    return {
        each.replica_id: each.replica_directory_id
        for each in found.observers
        if each.log_end_offset >= found.high_watermark and each.last_caught_up_timestamp > 0
    }


def run_tool(cluster: MixedCluster, *arguments: object) -> str:
    server = f"127.0.0.1:{cluster.controller_ports[cluster.leader()]}"
    return cluster.tools.run("metadata_quorum", "--bootstrap-controller", server, *arguments).stdout


def add_with_tool(cluster: MixedCluster, node: int) -> None:
    await_true(lambda: node in observers(cluster), f"node {node} has caught up")
    run_tool(cluster, "--command-config", cluster.config(node), "add-controller")
    assert node in voters(cluster)


def remove_with_tool(cluster: MixedCluster, node: int, directory_id: Uuid) -> None:
    run_tool(cluster, "remove-controller", "--controller-id", node, "--controller-directory-id", uuid_text(directory_id))
    await_true(lambda: voters(cluster).get(node) != directory_id, f"node {node} is removed")


def ask_leader(cluster: MixedCluster, request: AddRaftVoterRequest | RemoveRaftVoterRequest, version: int) -> int:
    with RawClient(cluster.controller_ports[cluster.leader()]) as client:
        return int(client.request(request, version).error_code)


def add_by_request(cluster: MixedCluster, node: int) -> None:
    await_true(lambda: node in observers(cluster), f"node {node} has caught up")
    listener = Listener(name="CONTROLLER", host="127.0.0.1", port=cluster.controller_ports[node])
    request = AddRaftVoterRequest(
        cluster_id=None, timeout_ms=30_000, voter_id=node, voter_directory_id=observers(cluster)[node], listeners=[listener]
    )
    assert ask_leader(cluster, request, 1) in (0, ErrorCode.DUPLICATE_VOTER)
    assert node in voters(cluster)


@pytest.mark.parametrize("first", [OTTLA, APACHE], ids=["ottla-first", "apache-first"])
def test_voters_are_added_removed_and_replaced(first: Part, apache_kafka: ApacheKafka, tmp_path: Path) -> None:
    second = APACHE if first is OTTLA else OTTLA
    with MixedCluster(apache_kafka, tmp_path, {1: first, 2: OTTLA, 3: second}, first_voters=[1]) as cluster:
        cluster.start(1)
        cluster.start(2, 3)
        assert set(voters(cluster)) == {1}
        add_with_tool(cluster, 2)
        add_with_tool(cluster, 3)
        old = voters(cluster)
        assert set(old) == {1, 2, 3}
        # The disk of node 2 is replaced: it is an observer with another directory id, until it is added again.
        cluster.kill(2)
        cluster.empty(2)
        cluster.start(2)
        await_true(lambda: 2 in observers(cluster), "the emptied node follows as an observer")
        assert voters(cluster)[2] == old[2]
        remove_with_tool(cluster, 2, old[2])
        add_by_request(cluster, 2)
        assert voters(cluster)[2] not in (old[2], Uuid(bytes(16)))
        # The leader removes itself, and another one takes over.
        leader = cluster.leader()
        epoch = cluster.quorum().leader_epoch
        remove_with_tool(cluster, leader, voters(cluster)[leader])
        after = cluster.quorum(but=[leader], after_epoch=epoch)
        assert after.leader_id != leader
        assert set(voters(cluster)) == {1, 2, 3} - {leader}
        add_with_tool(cluster, leader)
        assert set(voters(cluster)) == {1, 2, 3}
        mark = cluster.caught_up()
        assert mark > 0


@pytest.mark.parametrize("first", [OTTLA, APACHE], ids=["ottla-first", "apache-first"])
def test_controllers_join_by_themselves(first: Part, apache_kafka: ApacheKafka, tmp_path: Path) -> None:
    second = APACHE if first is OTTLA else OTTLA
    with MixedCluster(apache_kafka, tmp_path, {1: first, 2: OTTLA, 3: second}, AUTO_JOIN, first_voters=[1]) as cluster:
        cluster.start(1)
        cluster.start(2, 3)
        await_true(lambda: set(voters(cluster)) == {1, 2, 3}, "all have joined")
        old = voters(cluster)
        cluster.caught_up()
        for node in (2, 3):
            if cluster.leader() == node:
                cluster.elect_another()
            cluster.kill(node)
            cluster.empty(node)
            cluster.start(node)
            await_true(
                lambda node=node: voters(cluster).get(node) not in (None, old[node]),
                "the emptied controller has removed its old directory and joined again",
            )
            cluster.caught_up()


@pytest.mark.parametrize("leading", ["ottla", "apache"])
def test_static_quorum_is_upgraded_with_kafka_features(leading: str, apache_kafka: ApacheKafka, tmp_path: Path) -> None:
    nodes = {1: OTTLA, 2: APACHE, 3: APACHE}
    with MixedCluster(apache_kafka, tmp_path, nodes) as cluster:
        cluster.start(1, 2, 3)
        leader = cluster.elect_one_of({1})  # a controller of Ottla registers when it becomes active
        if leading == "apache":
            leader = cluster.elect_one_of({2, 3})
        assert set(voters(cluster).values()) == {Uuid(bytes(16))}, "static voters have no directory ids"

        def is_upgraded() -> bool:
            server = f"127.0.0.1:{cluster.controller_ports[cluster.leader()]}"
            tool = ("--bootstrap-controller", server, "upgrade", "--feature", "kraft.version=1")
            result = cluster.tools.run("features", *tool, check=False)
            print(result.stdout, result.stderr)
            return result.rc == 0

        await_true(is_upgraded, "every voter has told the leader its directory")
        await_true(lambda: len(set(voters(cluster).values())) == 3, "the voters have directory ids")
        assert cluster.leader() == leader
        cluster.caught_up()
        removed = 2 if leader != 2 else 3
        remove_with_tool(cluster, removed, voters(cluster)[removed])
        assert set(voters(cluster)) == {1, 2, 3} - {removed}
        add_with_tool(cluster, removed)
        cluster.elect_another()
        cluster.caught_up()
