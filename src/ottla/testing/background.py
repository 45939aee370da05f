"""A thread with its own event loop that runs coroutines for other threads, with or without a loop of their own.

The thread is a daemon: an interpreter that exits does not wait for it. It sets no signal handlers and no global state. `submit`
may be called from any thread; its caller may block on the result or await it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class Background:
    """One background thread, from `start` to `stop`."""

    def __init__(self, name: str) -> None:
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._is_ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop
        self._ending: asyncio.Event

    @property
    def thread_id(self) -> int:
        return self._thread.ident or 0

    def start(self) -> None:
        self._thread.start()
        self._is_ready.wait()

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Run `work` on the loop; cancelling the returned future cancels it."""
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop)
        except RuntimeError:
            work.close()
            raise

    def stop(self, timeout_s: float | None = None) -> None:
        """Cancel what still runs and end the thread. Must not be called on that thread. Stopping twice is harmless."""
        try:
            self._loop.call_soon_threadsafe(self._ending.set)
        except RuntimeError:
            pass  # the loop is closed already
        self._thread.join(timeout_s)

    def _run(self) -> None:
        asyncio.run(self._stay())

    async def _stay(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._ending = asyncio.Event()
        self._is_ready.set()
        await self._ending.wait()
