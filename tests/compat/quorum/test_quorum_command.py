"""`ottla quorum add` and `remove` change the voters of a quorum of Ottla's and Apache's controllers."""

import json
from pathlib import Path

import pytest
from tests.support.peers.topics import await_true
from tests.support.servers.apache_kafka import ApacheKafka
from tests.support.servers.mixed_cluster import MixedCluster, Part
from tests.support.servers.ottla_cli import Said, run_cli

pytestmark = pytest.mark.slow

OTTLA, APACHE = Part("ottla", "controller"), Part("apache", "controller")


def quorum(cluster: MixedCluster, *arguments: object) -> Said:
    server = f"127.0.0.1:{cluster.controller_ports[cluster.leader()]}"
    return run_cli("quorum", *arguments, "--bootstrap-controller", server)


def ids(cluster: MixedCluster, kind: str) -> set[int]:
    return {each["id"] for each in json.loads(quorum(cluster, "describe", "--json").out)[kind]}


@pytest.mark.parametrize("first", [OTTLA, APACHE], ids=["ottla-leads", "apache-leads"])
def test_voters_are_added_and_removed(
    first: Part, apache_kafka: ApacheKafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OTTLA_BOOTSTRAP_SERVERS", raising=False)
    second = APACHE if first is OTTLA else OTTLA
    with MixedCluster(apache_kafka, tmp_path, {1: first, 2: second, 3: OTTLA}, first_voters=[1]) as cluster:
        cluster.start(1)
        cluster.start(2, 3)
        assert ids(cluster, "voters") == {1}
        for node in (2, 3):
            await_true(lambda node=node: node in ids(cluster, "observers"), f"node {node} follows")  # type: ignore[misc]
            endpoint = f"127.0.0.1:{cluster.controller_ports[node]}"

            def is_added(node: int = node, endpoint: str = endpoint) -> bool:
                """It may have to be tried again until the observer has caught up."""
                return quorum(cluster, "add", node, "--endpoint", endpoint).rc == 0 or node in ids(cluster, "voters")

            await_true(is_added, f"node {node} is added")
        assert ids(cluster, "voters") == {1, 2, 3}
        said = quorum(cluster, "add", 3, "--endpoint", f"127.0.0.1:{cluster.controller_ports[3]}")
        assert said.rc == 1
        assert len(said.err.splitlines()) == 1
        said = quorum(cluster, "remove", 2, "--yes")
        assert said.rc == 0, said.err
        await_true(lambda: ids(cluster, "voters") == {1, 3}, "node 2 is removed")
