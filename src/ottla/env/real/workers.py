"""Worker threads for calls that wait for a device (`env/work.py` is the contract).

Threads start on first use, so a process that never syncs has none, and are named for stack dumps. `run` may be called from
any event loop; `close` waits for the calls that have begun.
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
                raise RuntimeError(f"the {self._name} threads are closed and take no more calls")
            self._executor = ThreadPoolExecutor(self._threads, thread_name_prefix=self._name)
        return await asyncio.get_running_loop().run_in_executor(self._executor, call)

    def close(self) -> None:
        """Wait for calls that have begun, drop those still queued, stop the threads. Closing twice is harmless."""
        self._closed = True
        executor, self._executor = self._executor, None
        if executor is not None:
            executor.shutdown(wait=True, cancel_futures=True)
