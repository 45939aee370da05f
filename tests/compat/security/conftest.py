"""One server with listeners of every kind of login, shared by the tests of this folder."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.peers.sasl_login import dialer
from tests.support.servers.kafka_server import KafkaServer
from tests.support.servers.ottla_server import StartServer
from tests.support.servers.sasl_server import sasl_properties


@pytest.fixture(scope="session")
def sasl_server(start_server: StartServer) -> Iterator[KafkaServer]:
    with start_server(sasl_properties()) as server:
        yield server


@pytest.fixture
def dial(sasl_server: KafkaServer) -> Iterator[Any]:
    """Makes clients of a listener: `dial("SASL")`."""
    with dialer(sasl_server) as connect:
        yield connect
