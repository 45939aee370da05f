"""Worker threads for calls that wait for a device, or that compute (`env/work.py` is the contract).

Threads start on first use, so a process that never syncs has none, and are named for stack dumps. `run` may be called from
any event loop; `close` waits for the calls that have begun.

All threads have the same priority. A lower one for those that compute makes the event loop wait for them on a busy machine:
they need the interpreter lock now and then, and may lose their core while they hold it.
"""

import asyncio
import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

THREADS_DEFAULT = 4


class ThreadWorkers:
    """`Workers` on a small pool of threads."""

    def __init__(
        self, threads: int = THREADS_DEFAULT, name: str = "ottla-worker", on_thread: Callable[[], None] | None = None
    ) -> None:
        self._threads = threads
        self._name = name
        self._on_thread = on_thread
        self._executor: ThreadPoolExecutor | None = None
        self._closed = False

    async def run(self, call: Callable[[], T], /) -> T:
        if self._executor is None:
            if self._closed:
                raise RuntimeError(f"the {self._name} threads are closed and take no more calls")
            self._executor = ThreadPoolExecutor(self._threads, self._name, self._on_thread)
        return await asyncio.get_running_loop().run_in_executor(self._executor, call)

    def close(self) -> None:
        """Wait for calls that have begun, drop those still queued, stop the threads. Closing twice is harmless."""
        self._closed = True
        executor, self._executor = self._executor, None
        if executor is not None:
            executor.shutdown(wait=True, cancel_futures=True)


RETURNED_BYTES = 1 << 20
_M_MMAP_THRESHOLD = -3
COMPUTE_THREADS = 3
"""One for large calls, one for small ones (`broker/requests/scheduler.py`), one for large decisions of the controller."""


def compute_workers() -> ThreadWorkers:
    """The threads of a node for calls that compute."""
    return ThreadWorkers(COMPUTE_THREADS, "ottla-compute", return_large_memory)


def return_large_memory() -> None:
    """Have blocks above `RETURNED_BYTES` returned to the system when they are freed.

    glibc keeps freed blocks of up to 32 MB, in each thread's own heap, once such a block was freed: a node that has
    decompressed a few large batches would keep 200 MB. Other C libraries have no such setting, and need none.
    """
    import ctypes  # late: only nodes that decompress large batches need it

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, RETURNED_BYTES)


def return_freed_memory() -> None:
    """Hand back what the C library keeps of freed blocks: 45 ms for 460 MB. Allocations of other threads wait for parts of it.

    A block that is still in use keeps all below it in a heap that only shrinks at its end.
    """
    import ctypes

    return_large_memory()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
