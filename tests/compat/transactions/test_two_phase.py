"""A node that advertises InitProducerId v6, which no other library uses: their transactions work as before."""

from collections.abc import Iterator

import pytest
from tests.support.peers.topics import make_topic
from tests.support.peers.transactions import LIBRARIES, Producers, await_all_decided, read

from ottla.testing import Broker


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with Broker({"transaction.two.phase.commit.enable": "true"}) as broker:
        yield broker.bootstrap_servers


@pytest.mark.parametrize("library", LIBRARIES)
def test_transactions_work_beside_an_unstable_version(servers: str, producers: Producers, name: str, library: str) -> None:
    make_topic(servers, name, 2)
    producer = producers.open(library, servers, name)
    producer.init()
    for turn in range(3):
        producer.begin()
        for partition in range(2):
            producer.send(name, partition, f"{turn}-{partition}")
        if turn == 1:
            producer.abort()
        else:
            producer.commit()
    producer.close()
    await_all_decided(servers, name, 2)
    assert read(servers, name, 2, committed=True) == ["0-0", "2-0", "0-1", "2-1"]
