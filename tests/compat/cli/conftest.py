"""Fixtures for the tests of `ottla`'s commands against a real cluster: Ottla, and Apache Kafka.

One server of each kind serves all tests; each test uses unique topic names.
"""

from collections.abc import Callable, Iterator
from itertools import count

import pytest
from tests.support.peers.group_members import FAST_GROUPS
from tests.support.servers.kafka_server import KafkaServer
from tests.support.servers.kafka_tools import KafkaTools
from tests.support.servers.ottla_cli import Said, run_cli
from tests.support.servers.ottla_server import StartServer

_numbers = count(1)

RunOttla = Callable[..., Said]
RunTool = Callable[..., Said]


@pytest.fixture(scope="session")
def server(start_server: StartServer) -> Iterator[KafkaServer]:
    """One node, shared by all tests of this folder."""
    with start_server(FAST_GROUPS | {"num.partitions": 2, "transaction.partition.verification.enable": "false"}) as running:
        yield running


@pytest.fixture(scope="session")
def bootstrap(server: KafkaServer) -> str:
    return server.bootstrap


@pytest.fixture(scope="session")
def kafka(kafka_tools: KafkaTools, bootstrap: str) -> RunTool:
    """Calls one of Kafka's tools on the server: `kafka("topics", "--list")`."""

    def run(tool: str, *arguments: object, stdin: str = "") -> Said:
        done = kafka_tools.run(tool, "--bootstrap-server", bootstrap, *arguments, stdin=stdin, check=False)
        return Said(done.rc, done.stdout, done.stderr)

    return run


@pytest.fixture
def ottla(bootstrap: str, monkeypatch: pytest.MonkeyPatch) -> RunOttla:
    """Calls `ottla` on the server: `ottla("topics", "list")`."""
    monkeypatch.setenv("OTTLA_BOOTSTRAP_SERVERS", bootstrap)
    return run_cli


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A topic name that no other test uses. The topic itself is up to the test."""
    return f"cli{next(_numbers)}-{request.node.originalname.removeprefix('test_')[:40].replace('_', '-')}"
