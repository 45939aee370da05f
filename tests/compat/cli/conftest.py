"""Fixtures of the tests of `ottla`'s verbs against a real cluster: Apache Kafka, and Ottla itself where it can be started.

One server of each kind serves all tests; each makes topics with names of its own.
"""

from collections.abc import Callable, Iterator
from itertools import count

import pytest
from tests.support.apache_kafka import ApacheKafka
from tests.support.kafka_server import KafkaServer
from tests.support.kafka_tools import KafkaTools
from tests.support.ottla_cli import Said, run_cli
from tests.support.ottla_server import start_ottla

from ottla.cli.main import VERBS

KINDS = ["apache", *(["ottla"] if "server" in VERBS else [])]
_numbers = count(1)

RunOttla = Callable[..., Said]
RunTool = Callable[..., Said]


@pytest.fixture(scope="session", params=KINDS)
def server(request: pytest.FixtureRequest, apache_kafka: ApacheKafka) -> Iterator[KafkaServer]:
    """One node, shared by all tests of this folder."""
    start = start_ottla if request.param == "ottla" else apache_kafka.start_server
    with start({"num.partitions": 2}) as running:
        yield running


@pytest.fixture(scope="session")
def bootstrap(server: KafkaServer) -> str:
    return server.bootstrap


@pytest.fixture(scope="session")
def tools(apache_kafka: ApacheKafka) -> Iterator[KafkaTools]:
    """Kafka's command line tools in one Java process."""
    with KafkaTools(apache_kafka) as running:
        yield running


@pytest.fixture(scope="session")
def kafka(tools: KafkaTools, bootstrap: str) -> RunTool:
    """Calls one of Kafka's tools on the server: `kafka("topics", "--list")`."""

    def run(tool: str, *arguments: object, stdin: str = "") -> Said:
        done = tools.run(tool, "--bootstrap-server", bootstrap, *arguments, stdin=stdin, check=False)
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
