"""Tasks that nobody awaits. What they raise is logged, never lost; each says whether it goes on or the node stops.

asyncio reports the failure of such a task when it is collected, if at all: a broker without heartbeats would be fenced, and
its log would not say why.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

logger = logging.getLogger("ottla.node")

OnFailure = Callable[[BaseException], None]


def lasting(name: str, work: Callable[[], Awaitable[None]], pause_s: float) -> asyncio.Task[None]:
    """A task that calls `work` until it is cancelled. What `work` raises is logged, and it is called again after `pause_s`."""
    return asyncio.get_running_loop().create_task(_repeat(name, work, pause_s))


async def _repeat(name: str, work: Callable[[], Awaitable[None]], pause_s: float) -> None:
    while True:
        try:
            await work()
        except Exception:
            logger.exception("%s failed unexpectedly: trying again in %g s. Please report this", name, pause_s)
            await asyncio.sleep(pause_s)


def watched(name: str, work: Coroutine[Any, Any, None], on_failure: OnFailure | None = None) -> asyncio.Task[None]:
    """A task that runs `work` once. What it raises is logged, and given to `on_failure`, which may stop the node."""

    def ended(task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (failure := task.exception()) is not None:
            logger.error("%s failed unexpectedly. Please report this", name, exc_info=failure)
            if on_failure is not None:
                on_failure(failure)

    task = asyncio.get_running_loop().create_task(work)
    task.add_done_callback(ended)
    return task
