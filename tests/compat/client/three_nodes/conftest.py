"""Three nodes, of Ottla or of Apache Kafka, that all tests of this folder share.

Each test finds them up, with every replica in sync.
"""

import logging
from collections.abc import Iterator

import pytest
from tests.support.servers.three_nodes import ThreeNodes
from tests.support.servers.three_ottla_nodes import ThreeOttlaNodes

from ottla import Admin


@pytest.fixture(scope="session", params=["ottla", pytest.param("apache", marks=pytest.mark.kafka)])
def shared_nodes(request: pytest.FixtureRequest) -> Iterator[ThreeNodes]:
    made = ThreeOttlaNodes() if request.param == "ottla" else ThreeNodes(request.getfixturevalue("apache_kafka"))
    with made as cluster:
        yield cluster


@pytest.fixture
def nodes(shared_nodes: ThreeNodes) -> Iterator[ThreeNodes]:
    yield shared_nodes
    logging.getLogger("three_nodes").warning("%s", shared_nodes.log_tails())  # pytest shows it if the test has failed
    shared_nodes.heal()


@pytest.fixture
def admin(nodes: ThreeNodes) -> Iterator[Admin]:
    """For what a test does to the cluster; the admin client under test is the face's own."""
    with Admin(nodes.bootstrap, reconnect_backoff_max_ms=200, retry_backoff_max_ms=200) as made:
        yield made


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All are slow; `make test-long-alone` runs them in one process: three nodes are enough for the machine."""
    for item in items:
        if "shared_nodes" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)
