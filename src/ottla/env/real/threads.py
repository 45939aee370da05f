"""`RealThreads`: event loops in daemon threads (`env/threads.py` is the contract)."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from typing import Any, TypeVar

T = TypeVar("T")

LOOK_AGAIN_S = 1.0
"""How often a waiting thread looks at the signal itself. One that was interrupted may not have passed the lock on."""


class _Lineage:
    """`Lineage` that a hook of the operating system's fork counts up in the child."""

    def __init__(self) -> None:
        self.generation = 0

    def forked(self) -> None:
        self.generation += 1


_LINEAGE = _Lineage()
os.register_at_fork(after_in_child=_LINEAGE.forked)


class RealThreads:
    """`Threads` over the operating system's threads."""

    def start_loop(self, name: str) -> RealLoopThread:
        return RealLoopThread(name)

    def signal(self) -> RealSignal:
        return RealSignal()

    def lock(self) -> AbstractContextManager[Any]:
        return threading.Lock()

    def lineage(self) -> _Lineage:
        return _LINEAGE

    def thread_id(self) -> int:
        return threading.get_ident()

    def process_id(self) -> int:
        return os.getpid()


class RealSignal:
    """`Signal` over one lock, which is held while the signal is not set.

    Not `threading.Event`: its wait holds a second lock in Python code, and Ctrl-C at the wrong moment there ends in
    "release unlocked lock" instead of KeyboardInterrupt. Acquiring a lock is one call that Ctrl-C interrupts cleanly.
    """

    def __init__(self) -> None:
        self._is_set = False
        self._lock = threading.Lock()
        self._lock.acquire()

    def set(self) -> None:
        if not self._is_set:
            self._is_set = True
            self._release()

    def is_set(self) -> bool:
        """Whether `set` was called, and not `clear` since."""
        return self._is_set

    def clear(self) -> None:
        self._is_set = False
        self._lock.acquire(blocking=False)

    def wait(self, timeout_s: float | None = None) -> bool:
        deadline_s = None if timeout_s is None else time.monotonic() + timeout_s
        while not self._is_set:
            left_s = LOOK_AGAIN_S if deadline_s is None else deadline_s - time.monotonic()
            if left_s <= 0:
                return False
            if self._lock.acquire(timeout=min(left_s, LOOK_AGAIN_S)):
                self._release()
                return True
        return True

    def _release(self) -> None:
        try:
            self._lock.release()
        except RuntimeError:
            pass  # another thread has released it: the signal is set, and that is all that counts


class RealLoopThread:
    """`LoopThread` over one daemon thread. It does not keep the process alive: a client that must flush does so at exit."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._process_id = os.getpid()
        self._calls: set[_Call] = set()
        """Those that a thread waits for."""
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def is_current(self) -> bool:
        return threading.get_ident() == self._thread.ident

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive() and os.getpid() == self._process_id and not self._loop.is_closed()

    def call(self, start: Callable[[], Awaitable[T]], timeout_s: float | None = None) -> T:
        if self.is_current:
            raise RuntimeError("a callback of a client must not wait for the same client: it would wait for itself")
        call = _Call(start)
        self._calls.add(call)
        try:
            self._loop.call_soon_threadsafe(call.begin)
            if not call.ended.wait(timeout_s):
                call.cancel(self._loop)
                if isinstance(call.error, asyncio.CancelledError):
                    raise TimeoutError
        except BaseException:
            call.cancel(self._loop)  # Ctrl-C: what was begun must not go on behind the caller's back
            raise
        finally:
            self._calls.discard(call)
        if call.error is not None:
            raise call.error
        return call.result  # type: ignore[no-any-return]  # a call keeps it untyped

    def post(self, callback: Callable[[], Any]) -> None:
        self._loop.call_soon_threadsafe(callback)

    def stop(self, timeout_s: float) -> None:
        if self.is_alive:
            self._loop.call_soon_threadsafe(self._loop.stop)
            if not self.is_current:  # it is if the collector runs there, and finds a client that was dropped
                self._thread.join(timeout_s)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            while pending := asyncio.all_tasks(self._loop):  # calls may come while others are cancelled
                for task in pending:
                    task.cancel()
                self._loop.run_until_complete(asyncio.gather(*pending, return_exceptions=True))
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        finally:
            self._loop.close()
            for call in tuple(self._calls):  # those that have not begun: no loop runs them any more
                call.give_up()


class _Call:
    """One call from another thread."""

    def __init__(self, start: Callable[[], Awaitable[Any]]) -> None:
        self._start = start
        self._task: asyncio.Future[Any] | None = None
        self._is_cancelled = False
        self.ended = RealSignal()
        self.result: Any = None
        self.error: BaseException | None = None

    def begin(self) -> None:
        if self._is_cancelled:
            return
        try:
            self._task = asyncio.ensure_future(self._start())
        except Exception as error:
            self._end(error)
            return
        self._task.add_done_callback(self._done)

    def _done(self, task: asyncio.Future[Any]) -> None:
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        if error is None:
            self.result = task.result()
        self._end(error)

    def _end(self, error: BaseException | None) -> None:
        self.error = error
        self.ended.set()

    def give_up(self) -> None:
        """End a call whose loop is closed."""
        if not self.ended.is_set():
            self._end(asyncio.CancelledError())

    def cancel(self, loop: asyncio.AbstractEventLoop) -> None:
        """Cancel the call in the loop's thread, and wait until it has ended."""
        if not self.ended.is_set():
            loop.call_soon_threadsafe(self._cancel)
            self.ended.wait()

    def _cancel(self) -> None:
        self._is_cancelled = True
        if self._task is not None:
            self._task.cancel()
        else:
            self._end(asyncio.CancelledError())  # Ctrl-C came before the call had begun
