"""franz-go, a client that shares no code with Kafka's clients or librdkafka, in our program `tests/support/go/franz`."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.servers.kafka_server import KafkaServer
from tests.support.servers.ottla_server import StartServer

pytestmark = pytest.mark.slow
PATIENCE_S = 300
"""Longer than the program's own limit, so that the program prints what it waited for."""


@pytest.fixture(scope="module")
def server(start_server: StartServer, franz: Path) -> Iterator[KafkaServer]:
    with start_server() as server:
        yield server


@pytest.mark.parametrize("scenario", ["produce", "classic", "consumer", "transactions", "fencing", "admin"])
def test_franz_go(franz: Path, server: KafkaServer, scenario: str) -> None:
    command = [franz, server.bootstrap, scenario]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert (done.returncode, done.stdout) == (0, "done\n"), f"{done.stdout}{done.stderr[-4000:]}\n{server.log_tail()}"
