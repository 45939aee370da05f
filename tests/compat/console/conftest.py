"""The console beside a server, Ottla's or Apache's: each test takes names of its own."""

from collections.abc import Callable, Iterator
from itertools import count

import pytest
from tests.support.servers.console_server import RunningConsole, running_console
from tests.support.servers.kafka_server import KafkaServer
from tests.support.servers.ottla_server import StartServer

OPEN = {"offsets.topic.num.partitions": 3, "transaction.state.log.num.partitions": 3, "group.initial.rebalance.delay.ms": 0}


@pytest.fixture(scope="session")
def shared_server(start_server: StartServer) -> Iterator[KafkaServer]:
    """A server without an authorizer."""
    with start_server(OPEN) as server:
        yield server


@pytest.fixture(scope="session")
def console(shared_server: KafkaServer) -> Iterator[RunningConsole]:
    with running_console(shared_server.bootstrap) as running:
        yield running


@pytest.fixture(scope="session")
def new_name() -> Callable[[str], str]:
    """Names that no other test of this server uses."""
    numbers = count()
    return lambda kind: f"{kind}-{next(numbers)}"
