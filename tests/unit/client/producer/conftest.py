"""A broker in this process for the producers' tests, with a topic `t` of three partitions, new for each test."""

from collections.abc import Iterator

import pytest

from ottla.testing import Broker


@pytest.fixture(scope="module")
def shared_broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def broker(shared_broker: Broker) -> Iterator[Broker]:
    shared_broker.create_topic("t", partitions=3)
    yield shared_broker
    shared_broker.faults.clear()
    shared_broker.delete_topic("t")
