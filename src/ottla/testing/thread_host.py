"""Runs a node in a thread of the test's process, on its own event loop. Called on the loop of the broker's helpers."""

from __future__ import annotations

import asyncio
from typing import Any

from ottla.broker.requests import pipeline as requests_pipeline
from ottla.errors import OttlaError
from ottla.testing.background import Background
from ottla.testing.errors import BrokerFailed
from ottla.testing.host import Facts, Launch
from ottla.testing.logs import LastLines, PrivateLogger
from ottla.testing.runner import NodeRunner


class ThreadHost:
    """`Host` of one run of a node."""

    def __init__(self) -> None:
        self._thread = Background("ottla-broker")
        self._log: LastLines | None = None
        self._runner: NodeRunner | None = None

    @property
    def failure(self) -> BrokerFailed | None:
        reason = None if self._runner is None else self._runner.broken
        return None if reason is None else _failure(reason)

    @property
    def log_lines(self) -> list[str]:
        return [] if self._log is None else list(self._log.lines)

    async def start(self, launch: Launch) -> Facts:
        self._thread.start()
        self._log = LastLines(self._thread.thread_id)
        self._log.attach()
        try:
            return await asyncio.wrap_future(self._thread.submit(self._start(launch)))
        except BaseException as error:
            self._end()
            if isinstance(error, OttlaError):
                raise BrokerFailed(f"the broker did not start: {error}") from error
            raise

    async def _start(self, launch: Launch) -> Facts:
        assert self._log is not None
        self._runner = NodeRunner()
        return await self._runner.start(launch, PrivateLogger(requests_pipeline.logger, self._log))

    async def stop(self) -> None:
        assert self._runner is not None
        try:
            await asyncio.wrap_future(self._thread.submit(self._runner.stop()))
        finally:
            self._end()

    async def kill(self) -> None:
        assert self._runner is not None
        try:
            await asyncio.wrap_future(self._thread.submit(self._runner.kill()))
        finally:
            self._end()

    async def settle(self) -> None:
        """Nothing to wait for: the failure is set before connections are closed."""

    async def command(self, name: str, values: dict[str, Any]) -> Any:
        assert self._runner is not None
        return await asyncio.wrap_future(self._thread.submit(self._runner.command(name, values)))

    def _end(self) -> None:
        self._thread.stop()
        if self._log is not None:
            self._log.detach()


def _failure(reason: BaseException) -> BrokerFailed:
    failure = BrokerFailed(f"the broker stopped by itself: {type(reason).__name__}: {reason}")
    failure.__cause__ = reason
    return failure
