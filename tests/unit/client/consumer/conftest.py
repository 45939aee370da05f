"""A broker for the tests of both faces, and the asyncio face under the names of the synchronous one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Iterator
from typing import Any

import pytest

from ottla.client.consumer import asynchronous, sync
from ottla.env.real.threads import RealThreads
from ottla.testing import Broker


class OnLoop:
    """An asyncio consumer on a loop of its own, called like the synchronous one."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._thread = RealThreads().start_loop("aio consumer")
        try:
            self._consumer = asynchronous.Consumer(*args, **kwargs)
        except BaseException:
            self._thread.stop(30)
            raise

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._consumer, name)

        async def call(args: Any, kwargs: Any) -> Any:
            found = method(*args, **kwargs)
            return await found if inspect.isawaitable(found) else found

        def wrapped(*args: Any, **kwargs: Any) -> Any:
            if self._thread.is_current:  # a listener, which cannot wait for its own loop
                return method(*args, **kwargs)
            return self._thread.call(lambda: call(args, kwargs))

        return wrapped

    def __iter__(self) -> Iterator[Any]:
        records = self._consumer.__aiter__()
        try:
            while True:
                yield self._thread.call(records.__anext__)
        finally:
            self._thread.call(records.aclose)  # type: ignore[attr-defined]

    def __enter__(self) -> OnLoop:
        self._thread.call(self._consumer.__aenter__)
        return self

    def __exit__(self, *error: Any) -> None:
        try:
            self._thread.call(lambda: self._consumer.__aexit__(*error))
        finally:
            self._thread.stop(30)


FACES: dict[str, Callable[..., Any]] = {"sync": sync.Consumer, "aio": OnLoop}
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
