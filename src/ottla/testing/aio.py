"""The helpers of `Broker` as coroutines."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from ottla.testing.arguments import Text
from ottla.testing.engine import Engine
from ottla.testing.records import Record

if TYPE_CHECKING:
    from ottla.testing.faults import Fault

__tracebackhide__ = True  # for pytest: a test that fails shows the line that called us


class AsyncBroker:
    """`Broker.aio`. Works on any event loop: the broker has its own."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def start(self) -> None:
        self._engine.begin()
        try:
            await asyncio.shield(self._engine.wait(self._engine.start()))
        except Exception:
            if not self._engine.is_begun:
                self._engine.end()
            raise

    async def stop(self) -> None:
        try:
            await asyncio.shield(self._engine.wait_if_begun(self._engine.stop()))
        finally:
            self._engine.end()

    async def restart(self) -> None:
        await asyncio.shield(self._engine.wait(self._engine.restart()))

    async def kill(self) -> None:
        await asyncio.shield(self._engine.wait(self._engine.kill()))

    async def create_topic(self, name: str, partitions: int = 1, config: Mapping[str, object] = MappingProxyType({})) -> None:
        await self._engine.wait(self._engine.create_topic(name, partitions, config))

    async def delete_topic(self, name: str) -> None:
        await self._engine.wait(self._engine.delete_topic(name))

    async def topics(self) -> dict[str, int]:
        return await self._engine.wait(self._engine.topics())

    async def produce(
        self,
        topic: str,
        value: Text,
        key: Text = None,
        *,
        partition: int | None = None,
        headers: Sequence[tuple[str, bytes | None]] = (),
        timestamp: int | None = None,
    ) -> Record:
        return await self._engine.wait(self._engine.produce(topic, value, key, partition, headers, timestamp))

    async def records(self, topic: str) -> list[Record]:
        return await self._engine.wait(self._engine.records(topic))

    async def await_records(self, topic: str, count: int = 1, timeout: float = 10.0) -> list[Record]:
        return await self._engine.wait(self._engine.await_records(topic, count, timeout))

    async def end_offsets(self, topic: str) -> dict[int, int]:
        return await self._engine.wait(self._engine.end_offsets(topic))

    async def await_hits(self, fault: Fault, count: int = 1, timeout: float = 10.0) -> int:
        return await self._engine.wait(self._engine.await_hits(fault, count, timeout))
