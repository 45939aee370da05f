"""Fixtures for the tests of a broker: one shared node, and a topic name for each test."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from tests.support.servers.kafka_server import KafkaServer
from tests.support.servers.ottla_server import StartServer

SETTINGS: dict[str, Any] = {
    "num.partitions": 3,
    "log.retention.ms": -1,  # tests write records of years ago
    "log.segment.delete.delay.ms": 100,  # deleted topics are really removed soon
    "log.initial.task.delay.ms": 500,
}
"""Settings of the shared servers, in addition to the defaults of the harness."""

_numbers = count(1)


@pytest.fixture(scope="session")
def shared_server(start_server: StartServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    """One node with two log directories, for all tests of the session."""
    paths: list[Path] = [tmp_path_factory.mktemp("data-one"), tmp_path_factory.mktemp("data-two")]
    with start_server(SETTINGS | {"log.dirs": ",".join(map(str, paths))}, data_dir=paths[0]) as server:
        yield server


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A topic name that no other test uses. The topic itself is up to the test."""
    return f"t{next(_numbers)}-{request.node.originalname.removeprefix('test_')[:40]}"
