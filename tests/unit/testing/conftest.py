"""A broker for the tests of `ottla.testing`, and a bare protocol client."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

import pytest
from tests.support.peers.broker_links import connected

from ottla.link import Link
from ottla.testing import Broker

T = TypeVar("T")


@pytest.fixture(scope="module")
def shared_broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def broker(shared_broker: Broker) -> Iterator[Broker]:
    """One broker for all tests of a file; without faults at the beginning of each."""
    yield shared_broker
    shared_broker.faults.clear()


@pytest.fixture
def ask(broker: Broker) -> Callable[..., Any]:
    """`ask(request)`: the response, on a new connection."""

    async def ask_once(message: Any, client_id: str, timeout_ms: int, version: int | None) -> Any:
        async with connected(broker, client_id, timeout_ms) as link:
            return await link.request(message, version=version)

    def ask(message: Any, client_id: str = "a-client", timeout_ms: int = 10_000, version: int | None = None) -> Any:
        return asyncio.run(ask_once(message, client_id, timeout_ms, version))

    return ask


@pytest.fixture
def with_link(broker: Broker) -> Callable[[Callable[[Link], Coroutine[Any, Any, T]]], T]:
    """`with_link(f)`: what `await f(link)` returns, for several requests on one connection."""

    async def work(use: Callable[[Link], Coroutine[Any, Any, T]]) -> T:
        async with connected(broker) as link:
            return await use(link)

    return lambda use: asyncio.run(work(use))
