"""The console beside one broker for all tests: each takes topics of its own."""

from collections.abc import Iterator

import pytest
from tests.support.servers.console_server import RunningConsole, running_console

from ottla.testing import Broker


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


@pytest.fixture(scope="session")
def console(broker: Broker) -> Iterator[RunningConsole]:
    with running_console(broker.bootstrap_servers) as running:
        yield running
