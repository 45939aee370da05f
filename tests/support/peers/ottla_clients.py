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
import inspect
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from tests.support.servers.kafka_server import HANG_S

import ottla
from ottla import aio


class Faces:
    """The clients of one face (`sync` or `aio`) that a test opens. Those still open are closed at its end."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._open: list[Any] = []
        self._loop = _LoopThread() if kind == "aio" else None

    def producer(self, bootstrap: str, **settings: Any) -> Any:
        return self._made("Producer", bootstrap, settings)

    def consumer(self, bootstrap: str, **settings: Any) -> Any:
        return self._made("Consumer", bootstrap, settings)

    def admin(self, bootstrap: str, **settings: Any) -> Any:
        return self._made("Admin", bootstrap, settings)

    def _made(self, name: str, bootstrap: str, settings: dict[str, Any]) -> Any:
        if self._loop is None:
            client = getattr(ottla, name)(bootstrap, **settings)
        else:
            inner = self._loop.run(lambda: getattr(aio, name)(bootstrap, **settings))
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


class _LoopThread:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="aio-face", daemon=True)
        self._thread.start()

    def run(self, call: Callable[[], Any], timeout_s: float | None = HANG_S) -> Any:
        """The result of `call` on the loop; awaited if it is awaitable."""

        async def made() -> Any:
            result = call()
            return await result if inspect.isawaitable(result) else result

        return asyncio.run_coroutine_threadsafe(made(), self._loop).result(timeout_s)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Blocking:
    """An asyncio client whose methods are called from a plain thread."""

    def __init__(self, inner: Any, loop: _LoopThread) -> None:
        self._inner = inner
        self._loop = loop

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._inner, name)
        return lambda *args, **kwargs: self._loop.run(functools.partial(method, *args, **kwargs))

    def __enter__(self) -> Blocking:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._loop.run(lambda: self._inner.__aexit__(kind, error, trace))


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

    def __init__(self, inner: Any, loop: _LoopThread) -> None:
        self._inner = inner
        self._loop = loop

    def result(self, timeout: float | None = None) -> Any:
        async def wait() -> Any:
            return await asyncio.wait_for(_awaited(self._inner), timeout)

        return self._loop.run(wait)


async def _awaited(delivery: Any) -> Any:
    return await delivery
