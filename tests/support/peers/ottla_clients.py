"""Ottla's clients behind one synchronous interface, so that a test is written once for both faces.

    with Faces("aio") as face:
        producer = face.producer(bootstrap, acks="all")
        producer.send("t", b"v").result(10)

`sync` gives the synchronous clients themselves. `aio` gives the asyncio clients, each call of which runs on an event loop in
another thread.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

from tests.support.servers.loop_thread import LoopThread

import ottla
from ottla import aio


class Faces:
    """The clients of one face (`sync` or `aio`) that a test opens. Those still open are closed at its end."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._open: list[Any] = []
        self._loop = LoopThread() if kind == "aio" else None

    def producer(self, *bootstrap: str, **settings: Any) -> Any:
        return self._made("Producer", bootstrap, settings)

    def consumer(self, *bootstrap: str, **settings: Any) -> Any:
        return self._made("Consumer", bootstrap, settings)

    def admin(self, *bootstrap: str, **settings: Any) -> Any:
        return self._made("Admin", bootstrap, settings)

    def _made(self, name: str, bootstrap: tuple[str, ...], settings: dict[str, Any]) -> Any:
        if self._loop is None:
            client = getattr(ottla, name)(*bootstrap, **settings)
        else:
            inner = self._loop.run(lambda: getattr(aio, name)(*bootstrap, **settings))
            client = (BlockingProducer if name == "Producer" else Blocking)(inner, self._loop)
        self._open.append(client)
        return client

    def __enter__(self) -> Faces:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            for client in reversed(self._open):
                client.close()
        finally:
            if self._loop is not None:
                self._loop.stop()


class Blocking:
    """An asyncio client whose methods are called from a plain thread."""

    def __init__(self, inner: Any, loop: LoopThread) -> None:
        self._inner = inner
        self._loop = loop

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._inner, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            if self._loop.is_current:  # a listener, which cannot wait for its own loop
                return method(*args, **kwargs)
            result = self._loop.run(functools.partial(method, *args, **kwargs))
            return Blocking(result, self._loop) if isinstance(result, type(self._inner)) else result

        return call

    def __iter__(self) -> Iterator[Any]:
        records = aiter(self._inner)
        try:
            while True:
                try:
                    yield self._loop.run(lambda: anext(records))
                except StopAsyncIteration:
                    return
        finally:
            self._loop.run(records.aclose)

    def __enter__(self) -> Self:
        self._loop.run(self._inner.__aenter__)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._loop.run(lambda: self._inner.__aexit__(kind, error, trace))


class OnOwnLoop(Blocking):
    """An asyncio client of the class `kind` on a loop of its own, which ends with the `with` block."""

    def __init__(self, kind: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        loop = LoopThread()
        try:
            super().__init__(kind(*args, **kwargs), loop)
        except BaseException:
            loop.stop()
            raise

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            super().__exit__(kind, error, trace)
        finally:
            self._loop.stop()


class BlockingProducer(Blocking):
    """An asyncio producer, whose deliveries have a `result` that waits."""

    def send(self, *args: Any, **kwargs: Any) -> BlockingDelivery:
        return BlockingDelivery(self._loop.run(lambda: self._inner.send(*args, **kwargs)), self._loop)

    @contextmanager
    def transaction(self) -> Iterator[BlockingProducer]:
        manager = self._inner.transaction()
        self._loop.run(manager.__aenter__)
        try:
            yield self
        except BaseException as error:
            failure = error  # the name `error` ends with this block
            self._loop.run(lambda: manager.__aexit__(type(failure), failure, failure.__traceback__))
            raise
        self._loop.run(lambda: manager.__aexit__(None, None, None))


class BlockingDelivery:
    """The handle of a record sent by an asyncio producer."""

    def __init__(self, inner: Any, loop: LoopThread) -> None:
        self._inner = inner
        self._loop = loop

    def result(self, timeout: float | None = None) -> Any:
        async def wait() -> Any:
            return await asyncio.wait_for(_awaited(self._inner), timeout)

        return self._loop.run(wait)


async def _awaited(delivery: Any) -> Any:
    return await delivery
