"""Fixtures for the tests of transactions: a node with transaction.version 1 and one with 2, and producers of every library."""

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest
from tests.support.peers.transactions import Open, Producers, set_transaction_version
from tests.support.peers.transactions_java import JavaProducers
from tests.support.servers.apache_kafka import ApacheKafka
from tests.support.servers.kafka_server import KafkaServer
from tests.support.servers.ottla_server import StartServer

SETTINGS: dict[str, Any] = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": 100}

_numbers = count(1)


@pytest.fixture(scope="session", params=[1, 2], ids=["TV1", "TV2"])
def transaction_version(request: pytest.FixtureRequest) -> int:
    """The level of the feature: 1, or 2 (KIP-890)."""
    return int(request.param)


@pytest.fixture(scope="session")
def shared_server(start_server: StartServer, transaction_version: int) -> Iterator[KafkaServer]:
    """One node for all tests of the session with that level."""
    with start_server(SETTINGS) as server:
        set_transaction_version(server.bootstrap, transaction_version)
        yield server


@pytest.fixture(scope="session")
def open_java(request: pytest.FixtureRequest) -> Iterator[Callable[[], Open]]:
    """Opens Java producers. Java is required only when the first is opened."""
    made: list[JavaProducers] = []

    def get() -> Open:
        if not made:
            kafka: ApacheKafka = request.getfixturevalue("apache_kafka")
            made.append(JavaProducers(kafka))
        return made[0].open

    yield get
    for each in made:
        each.stop()


@pytest.fixture
def producers(open_java: Callable[[], Open]) -> Iterator[Producers]:
    """Opens transactional producers, and abandons those the test leaves open."""
    with Producers(open_java) as opened:
        yield opened


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A name for a topic, a group or a transactional id that no other test uses."""
    return f"x{next(_numbers)}-{request.node.originalname.removeprefix('test_')[:40]}"
