"""Worker threads for calls that wait for a device (`env/work.py`).

Threads are started on first use, so that a process which never syncs never has them, and carry a name a person can find in a
stack dump. `run` may be called from any event loop; `close` waits for the calls that have begun.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

THREADS_DEFAULT = 4


class ThreadWorkers:
    """`Workers` on a small pool of threads."""

    def __init__(self, threads: int = THREADS_DEFAULT, name: str = "ottla-worker") -> None:
        self._threads = threads
        self._name = name
        self._executor: ThreadPoolExecutor | None = None
        self._closed = False

    async def run(self, call: Callable[[], T], /) -> T:
        if self._executor is None:
            if self._closed:
                raise RuntimeError(f"the {self._name} threads were closed; nothing may be handed to them any more")
            self._executor = ThreadPoolExecutor(self._threads, thread_name_prefix=self._name)
        return await asyncio.get_running_loop().run_in_executor(self._executor, call)

    def close(self) -> None:
        """Let begun calls end, drop the ones still queued, stop the threads. Closing twice is harmless."""
        self._closed = True
        executor, self._executor = self._executor, None
        if executor is not None:
            executor.shutdown(wait=True, cancel_futures=True)
