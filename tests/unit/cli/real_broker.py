"""Fixtures for commands that need a broker which stores records: a broker in this process, a topic and `ottla` against it.

A folder's `conftest.py` imports them. `topic_partitions` may be overridden there.
"""

from collections.abc import Callable, Iterator
from itertools import count

import pytest
from tests.support.servers.ottla_cli import Said, run_cli

from ottla.testing import Broker

_numbers = count(1)
RunOttla = Callable[..., Said]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def topic_partitions() -> int:
    return 2


@pytest.fixture
def topic(broker: Broker, topic_partitions: int) -> str:
    """A topic that only the test uses."""
    name = f"topic-{next(_numbers)}"
    broker.create_topic(name, partitions=topic_partitions)
    return name


@pytest.fixture
def ottla(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> RunOttla:
    """Runs `ottla` against the broker."""
    monkeypatch.setenv("OTTLA_BOOTSTRAP_SERVERS", broker.bootstrap_servers)
    return run_cli
