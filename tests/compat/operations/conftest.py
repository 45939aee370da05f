"""Fixtures for the tests of commands that need several brokers: one cluster of four nodes, shared by all tests of this folder.

Nodes are up at the end of each test; topics have names of their own.
"""

from collections.abc import Callable, Iterator
from itertools import count

import pytest
from tests.support.servers.kafka_tools import KafkaTools
from tests.support.servers.ottla_cli import Said, run_cli

from ottla import Admin
from ottla.testing import Cluster

RunOttla = Callable[..., Said]
RunTool = Callable[..., Said]
_numbers = count(1)


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    config = {"auto.leader.rebalance.enable": "false", "offsets.topic.num.partitions": 4, "group.initial.rebalance.delay.ms": 0}
    with Cluster(config, nodes=4) as running:
        yield running


@pytest.fixture(scope="session")
def admin(cluster: Cluster) -> Iterator[Admin]:
    with Admin(cluster.bootstrap_servers, request_timeout_ms=10_000) as client:
        yield client


@pytest.fixture
def ottla(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> RunOttla:
    """Calls `ottla` on the cluster: `ottla("topics", "list")`."""
    monkeypatch.setenv("OTTLA_BOOTSTRAP_SERVERS", cluster.bootstrap_servers)
    return run_cli


@pytest.fixture
def kafka(kafka_tools: KafkaTools, cluster: Cluster) -> RunTool:
    """Calls one of Kafka's tools on the cluster: `kafka("reassign", "--list")`."""

    def run(tool: str, *arguments: object) -> Said:
        done = kafka_tools.run(tool, "--bootstrap-server", cluster.bootstrap_servers, *arguments, check=False)
        return Said(done.rc, done.stdout, done.stderr)

    return run


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A topic name that no other test uses. The topic itself is up to the test."""
    return f"ops{next(_numbers)}-{request.node.originalname.removeprefix('test_')[:40].replace('_', '-')}"
