"""Fixtures of the tests that run against Apache Kafka and against Ottla alike.

A test that asks for `cluster` (or `start_server`) is written once and run twice. Against Ottla it belongs to `make test`.
Against Apache Kafka it proves that the test itself is right; that run is marked `slow`.
"""

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from tests.support.apache_kafka import ApacheKafka
from tests.support.kafka_server import KafkaServer
from tests.support.kafka_tools import KafkaTools
from tests.support.ottla_server import StartServer, start_ottla

SETTINGS: dict[str, Any] = {
    "num.partitions": 3,
    "log.retention.ms": -1,  # tests write records of years ago
    "log.segment.delete.delay.ms": 100,  # deleted topics are really removed soon
    "log.initial.task.delay.ms": 500,
}
"""What the shared servers run with, beside the defaults of the harness."""

_numbers = count(1)


@pytest.fixture(
    scope="session", params=[pytest.param("ottla"), pytest.param("apache", marks=(pytest.mark.slow, pytest.mark.kafka))]
)
def server_kind(request: pytest.FixtureRequest) -> str:
    """Whose server the test runs against: `ottla` or `apache`."""
    return str(request.param)


@pytest.fixture(scope="session")
def start_server(server_kind: str, request: pytest.FixtureRequest) -> StartServer:
    """Starts a server of the kind at hand: `start_server(properties, data_dir=...)`. For tests that need one of their own."""
    if server_kind == "ottla":
        return start_ottla
    apache: ApacheKafka = request.getfixturevalue("apache_kafka")
    return apache.start_server


@pytest.fixture(scope="session")
def shared_server(start_server: StartServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    """One node with two log directories, for all tests of the session."""
    paths: list[Path] = [tmp_path_factory.mktemp("data-one"), tmp_path_factory.mktemp("data-two")]
    with start_server(SETTINGS | {"log.dirs": ",".join(map(str, paths))}, data_dir=paths[0]) as server:
        yield server


@pytest.fixture
def cluster(shared_server: KafkaServer) -> Iterator[KafkaServer]:
    """The shared node: make topics with names of your own (`topic`). A test that ends it has failed, whatever else it found."""
    assert shared_server.ended_with is None, "the server ended in an earlier test: see there for its log"
    yield shared_server
    code = shared_server.ended_with
    assert code is None, f"{shared_server.name} ended with {code} during this test.\n{shared_server.log_tail()}"


@pytest.fixture(scope="session")
def kafka_tools(apache_kafka: ApacheKafka) -> Iterator[KafkaTools]:
    """Kafka's command line tools in one Java process."""
    with KafkaTools(apache_kafka) as tools:
        yield tools


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A topic name that no other test uses. The topic itself is up to the test."""
    return f"t{next(_numbers)}-{request.node.originalname.removeprefix('test_')[:40]}"
