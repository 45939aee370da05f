"""The contract for threads: an event loop in a thread of its own, for clients that are called synchronously.

Only the synchronous faces of the clients use it. The simulator has no threads: it runs the asyncio faces.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Signal(Protocol):
    """Lets threads wait until another thread has done something."""

    def set(self) -> None:
        """Wake every thread that waits, and those that wait later, until `clear`."""
        ...

    def clear(self) -> None: ...

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until it is set; False if the time was up first. Ctrl-C ends the wait with KeyboardInterrupt."""
        ...


class Lineage(Protocol):
    """Tells a client whether a forked child inherited it. Cheaper to read than the process id, which is a system call."""

    @property
    def generation(self) -> int:
        """Differs between a process and its forked children."""
        ...


class LoopThread(Protocol):
    """An asyncio event loop that runs in its own daemon thread."""

    @property
    def is_current(self) -> bool:
        """Whether the caller runs in this thread."""
        ...

    @property
    def is_alive(self) -> bool:
        """False after `stop`, and in a child process that was forked from the thread's process."""
        ...

    def call(self, start: Callable[[], Awaitable[T]], timeout_s: float | None = None) -> T:
        """Call `start` in the thread, await what it returns there, and return its result or raise its exception.

        After `timeout_s`, and when Ctrl-C interrupts the wait, the awaitable is cancelled and has ended when this raises
        `TimeoutError` or `KeyboardInterrupt`. Must not be called in the thread itself.
        """
        ...

    def post(self, callback: Callable[[], Any]) -> None:
        """Call `callback` in the thread soon. Returns at once; may be called from every thread."""
        ...

    def stop(self, timeout_s: float) -> None:
        """Cancel what still runs, close the loop and wait for the thread, but no longer than `timeout_s`."""
        ...


class Threads(Protocol):
    """Makes threads and what they wait for each other with."""

    def start_loop(self, name: str) -> LoopThread:
        """Start a thread that runs a new event loop."""
        ...

    def signal(self) -> Signal: ...

    def lock(self) -> AbstractContextManager[Any]:
        """A lock, not reentrant, that is held inside a `with` block."""
        ...

    def thread_id(self) -> int:
        """The calling thread's id."""
        ...

    def lineage(self) -> Lineage:
        """The calling process's; the same object for every caller."""
        ...

    def process_id(self) -> int:
        """The calling process's id: a client must not be used in a forked child."""
        ...
