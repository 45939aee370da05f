"""`LoopThread`: an event loop in a thread of its own, for coroutines that a plain thread calls and waits for."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable
from typing import Any

from tests.support.servers.kafka_server import HANG_S


class LoopThread:
    """Runs until `stop`."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="loop", daemon=True)
        self._thread.start()

    @property
    def is_current(self) -> bool:
        """Whether the caller runs on this loop."""
        return threading.current_thread() is self._thread

    def run(self, call: Callable[[], Any], timeout_s: float | None = HANG_S) -> Any:
        """The result of `call` on the loop; awaited if it is awaitable."""

        async def made() -> Any:
            result = call()
            return await result if inspect.isawaitable(result) else result

        return asyncio.run_coroutine_threadsafe(made(), self.loop).result(timeout_s)

    def stop(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(HANG_S)
        self.loop.close()
