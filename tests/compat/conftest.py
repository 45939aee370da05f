"""Fixtures for tests that compare with Apache Kafka, and for tests that run against both Apache Kafka and Ottla.

A test that asks for `start_server` (or for a server made with it) is written once and run twice. Against Ottla it belongs to
`make test`. Against Apache Kafka it proves that the test itself is right; that run is marked `slow`.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import Unavailable
from tests.support.logs.apache_logs import LogsFromApache, make_logs
from tests.support.servers.apache_kafka import ApacheKafka
from tests.support.servers.go_programs import GoUnavailable, build_go_program
from tests.support.servers.kafka_server import KafkaServer
from tests.support.servers.kafka_tools import KafkaTools
from tests.support.servers.ottla_server import StartServer, start_ottla


@pytest.fixture(scope="session")
def logs_from_apache(
    apache_kafka: ApacheKafka, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> LogsFromApache:
    """Log directories that Apache Kafka wrote, made once for all pytest workers of this run."""
    base: Path = tmp_path_factory.getbasetemp()
    shared = base.parent if hasattr(request.config, "workerinput") else base
    return make_logs(apache_kafka, shared / "logs-from-apache")


@pytest.fixture(
    scope="session", params=[pytest.param("ottla"), pytest.param("apache", marks=(pytest.mark.slow, pytest.mark.kafka))]
)
def server_kind(request: pytest.FixtureRequest) -> str:
    """The server under test: `ottla` or `apache`."""
    return str(request.param)


@pytest.fixture(scope="session")
def start_server(server_kind: str, request: pytest.FixtureRequest) -> StartServer:
    """Starts a server of this kind: `start_server(properties, data_dir=...)`. For tests that need a separate one."""
    if server_kind == "ottla":
        return start_ottla
    apache: ApacheKafka = request.getfixturevalue("apache_kafka")
    return apache.start_server


@pytest.fixture(scope="session")
def franz(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program of franz-go, `tests/support/go/franz`."""
    try:
        return build_go_program("franz", tmp_path_factory.mktemp("go"))
    except GoUnavailable as reason:
        raise Unavailable(str(reason)) from None


@pytest.fixture
def cluster(shared_server: KafkaServer) -> Iterator[KafkaServer]:
    """The server that a folder's tests share, so each test uses unique names. A test during which it ends fails.

    The fixture `shared_server` of the folder starts it.
    """
    assert shared_server.ended_with is None, "the server ended in an earlier test: see there for its log"
    yield shared_server
    code = shared_server.ended_with
    assert code is None, f"{shared_server.name} ended with {code} during this test.\n{shared_server.log_tail()}"


@pytest.fixture(scope="session")
def kafka_tools(apache_kafka: ApacheKafka) -> Iterator[KafkaTools]:
    """Kafka's command line tools in one Java process."""
    with KafkaTools(apache_kafka) as tools:
        yield tools
