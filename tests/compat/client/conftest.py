"""Fixtures for the tests of Ottla's clients: one node that all share, both faces of the clients, and names."""

from collections.abc import Callable, Iterator
from itertools import count

import pytest
from tests.support.peers.group_members import FAST_GROUPS, Members, Open
from tests.support.peers.group_members_java import JavaMembers
from tests.support.peers.ottla_clients import Faces
from tests.support.servers.apache_kafka import ApacheKafka
from tests.support.servers.kafka_server import KafkaServer
from tests.support.servers.ottla_server import StartServer

_numbers = count(1)


@pytest.fixture(scope="session")
def shared_server(start_server: StartServer) -> Iterator[KafkaServer]:
    """One node for all tests of this folder."""
    with start_server(FAST_GROUPS | {"num.partitions": 3}) as server:
        yield server


@pytest.fixture
def bootstrap(cluster: KafkaServer) -> str:
    return cluster.bootstrap


@pytest.fixture(params=["sync", "aio"])
def face(request: pytest.FixtureRequest) -> Iterator[Faces]:
    """Opens clients of one face."""
    with Faces(request.param) as faces:
        yield faces


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A name for a topic or a group that no other test uses. The topic itself is up to the test."""
    return f"c{next(_numbers)}-{request.node.originalname.removeprefix('test_')[:40]}"


@pytest.fixture(scope="session")
def open_java(request: pytest.FixtureRequest) -> Iterator[Callable[[], Open]]:
    """Opens Java members. Java is required only when the first is opened."""
    made: list[JavaMembers] = []

    def get() -> Open:
        if not made:
            kafka: ApacheKafka = request.getfixturevalue("apache_kafka")
            made.append(JavaMembers(kafka))
        return made[0].open

    yield get
    for each in made:
        each.stop()


@pytest.fixture
def members(open_java: Callable[[], Open]) -> Iterator[Members]:
    """Opens members of groups, and closes those the test leaves open."""
    with Members(open_java) as opened:
        yield opened
