"""Worker threads for calls that wait for a device, or that compute (`env/work.py` is the contract).

Threads start on first use, so a process that never syncs has none, and are named for stack dumps. `run` may be called from
any event loop; `close` waits for the calls that have begun.

Threads that compute get a lower priority than the event loop (`niceness`): on a machine whose cores are all busy, a codec
would otherwise take turns with the loop on equal terms.
"""

import asyncio
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

THREADS_DEFAULT = 4


class ThreadWorkers:
    """`Workers` on a small pool of threads."""

    def __init__(self, threads: int = THREADS_DEFAULT, name: str = "ottla-worker", niceness: int = 0) -> None:
        self._threads = threads
        self._name = name
        self._niceness = niceness
        self._executor: ThreadPoolExecutor | None = None
        self._closed = False

    async def run(self, call: Callable[[], T], /) -> T:
        if self._executor is None:
            if self._closed:
                raise RuntimeError(f"the {self._name} threads are closed and take no more calls")
            self._executor = ThreadPoolExecutor(
                self._threads, thread_name_prefix=self._name, initializer=self._lower_priority if self._niceness else None
            )
        return await asyncio.get_running_loop().run_in_executor(self._executor, call)

    def close(self) -> None:
        """Wait for calls that have begun, drop those still queued, stop the threads. Closing twice is harmless."""
        self._closed = True
        executor, self._executor = self._executor, None
        if executor is not None:
            executor.shutdown(wait=True, cancel_futures=True)

    def _lower_priority(self) -> None:
        """Lower the priority of the calling thread alone, where the system has priorities of threads: Linux."""
        if sys.platform == "linux":
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), self._niceness)


COMPUTE_THREADS = 2
"""One for large calls and one for small ones (`broker/lane.py`): a small one never waits for a large one."""
COMPUTE_NICENESS = 10


def compute_workers() -> ThreadWorkers:
    """The threads of a node for calls that compute."""
    return ThreadWorkers(COMPUTE_THREADS, "ottla-compute", COMPUTE_NICENESS)
