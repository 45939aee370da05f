"""A broker for the tests of both faces, and the asyncio face under the names of the synchronous one."""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator
from typing import Any

import pytest
from tests.support.peers.ottla_clients import OnOwnLoop

from ottla.client.consumer import asynchronous, sync
from ottla.testing import Broker

FACES: dict[str, Callable[..., Any]] = {"sync": sync.Consumer, "aio": functools.partial(OnOwnLoop, asynchronous.Consumer)}
GROUP_SETTINGS = {"group.initial.rebalance.delay.ms": 0, "group.consumer.min.heartbeat.interval.ms": 1}


@pytest.fixture(params=["sync", "aio"])
def face(request: pytest.FixtureRequest) -> Any:
    """The class of each face in turn."""
    return FACES[request.param]


@pytest.fixture(scope="module")
def broker() -> Generator[Broker, None, None]:
    with Broker(GROUP_SETTINGS) as made:
        yield made


@pytest.fixture
def topic(broker: Broker, request: pytest.FixtureRequest) -> str:
    """A new topic with two partitions of ten records each: values 0 to 9."""
    name = "".join(each if each.isalnum() else "-" for each in request.node.name)[:200]
    broker.create_topic(name, partitions=2, config={"retention.ms": -1})  # its records are of 1970
    for index in range(10):
        for partition in range(2):
            broker.produce(name, value=b"%d" % index, partition=partition, timestamp=1_000 + index)
    return name
