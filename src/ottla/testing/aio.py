"""The helpers of `Broker` as coroutines."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from ottla.env.uninterrupted import uninterrupted
from ottla.testing.engine import Engine
from ottla.testing.topic_helpers import AsyncTopicHelpers

if TYPE_CHECKING:
    from ottla.testing.faults import Fault

__tracebackhide__ = True  # for pytest: a test that fails shows the line that called us


class AsyncBroker(AsyncTopicHelpers):
    """`Broker.aio`: the helpers of a broker as coroutines, for tests with an event loop."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self._engine: Engine = engine

    async def start(self) -> None:
        """Start the broker; returns when it answers requests."""
        self._engine.begin()
        try:
            await uninterrupted(self._engine.wait(self._engine.start()))
        except Exception:
            if not self._engine.is_begun:
                self._engine.end()
            raise

    async def stop(self) -> None:
        """Shut it down cleanly and remove temporary data. Stopping twice is harmless."""
        await asyncio.to_thread(self._engine.close_registry)
        try:
            await uninterrupted(self._engine.wait_if_begun(self._engine.stop()))
        finally:
            self._engine.end()

    async def restart(self) -> None:
        """Shut it down cleanly and start it again, on the same port, with the same data. Faults are removed."""
        await uninterrupted(self._engine.wait(self._engine.restart()))

    async def kill(self) -> None:
        """End it at once, as `kill -9` does. `start()` then recovers its data and uses the same port."""
        await uninterrupted(self._engine.wait(self._engine.kill()))

    async def create_topic(self, name: str, partitions: int = 1, config: Mapping[str, object] = MappingProxyType({})) -> None:
        """Create a topic. `config` are topic settings."""
        await self._engine.wait(self._engine.create_topic(name, partitions, config))

    async def await_hits(self, fault: Fault, count: int = 1, timeout: float = 10.0) -> int:
        """Wait until the fault has met `count` requests; returns how many it has met. `TimedOut` if that takes too long."""
        return await self._engine.wait(self._engine.await_hits(fault, count, timeout))
