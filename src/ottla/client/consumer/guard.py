"""`ThreadGuard` and `TaskGuard`: a consumer is used by one thread or task at a time, and in the process that made it."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

from ottla.env.threads import Threads
from ottla.errors import ConcurrentUseError, IllegalStateError

Call = TypeVar("Call", bound=Callable[..., Any])

_PUBLIC_NAMES = {"_refill": "next", "_next_taken": "read_ranges", "_on_loop": "read_ranges"}
"""What a caller has called, where a step inside of it is guarded."""


class ThreadGuard:
    """Lets one thread in at a time; the same thread may come in again, as a rebalance listener does."""

    def __init__(self, threads: Threads) -> None:
        self._thread_id = threads.thread_id
        self._process_id = threads.process_id
        self._made_in = threads.process_id()
        self._owner: dict[str, int] = {}  # dict.setdefault is atomic between threads
        self._depth = 0

    def enter(self, call: str) -> None:
        """`call` begins."""
        me = self._thread_id()
        owner = self._owner.setdefault("thread", me)
        if owner != me:
            raise ConcurrentUseError(
                f"{call}() in thread {me}, while thread {owner} uses the same consumer: give each thread its own consumer, or "
                "lock around it. Only wakeup() may be called from another thread"
            )
        if self._process_id() != self._made_in:
            del self._owner["thread"]
            raise IllegalStateError(
                f"{call}() in a forked process: its connections belong to the parent. Make the consumer after the fork"
            )
        self._depth += 1

    def leave(self) -> None:
        """The call that entered last has ended."""
        self._depth -= 1
        if self._depth == 0:
            self._owner.pop("thread", None)


def guarded(call: Call) -> Call:
    """A call that only one thread may make at a time, on a consumer that is open."""

    name = _PUBLIC_NAMES.get(call.__name__, call.__name__)

    @functools.wraps(call)
    def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
        self._guard.enter(name)
        try:
            check_open(self, name)
            return call(self, *args, **kwargs)
        finally:
            self._guard.leave()

    return cast(Call, wrapped)  # the same signature: it only passes its arguments on


def reading(call: Call) -> Call:
    """A guarded call that hands out records. If it raises, also by Ctrl-C at the very end, what it has taken goes back."""

    name = _PUBLIC_NAMES.get(call.__name__, call.__name__)

    @functools.wraps(call)
    def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
        self._guard.enter(name)
        try:
            check_open(self, name)
            found = call(self, *args, **kwargs)
        except BaseException:
            try:
                self._undo_step()
            finally:
                self._guard.leave()
            raise
        try:
            self._guard.leave()
        except BaseException:
            self._undo_step()
            raise
        # Ctrl-C does not come between here and the caller's next line: Python looks for it at calls and jumps backwards only.
        self._reader.is_handed_out = True
        return found

    return cast(Call, wrapped)


def check_open(consumer: Any, call: str) -> None:
    """Raise if a consumer is closed."""
    if consumer._is_closed:
        raise IllegalStateError(f"{call}() on a consumer that is closed: make another one")


def refuse_in_listener(consumer: Any, call: str) -> None:
    """Raise if a rebalance listener runs: the call would wait for events behind the one that is being handled."""
    if consumer._is_in_listener:
        raise IllegalStateError(f"{call}() inside of a rebalance listener: the rebalance has to end first")


class TaskGuard:
    """Lets one task in at a time; the same task may come in again."""

    def __init__(self) -> None:
        self._owner: asyncio.Task[object] | None = None
        self._depth = 0

    def enter(self, call: str) -> None:
        """`call` begins."""
        me = asyncio.current_task()
        if self._owner is not None and self._owner is not me:
            raise ConcurrentUseError(
                f"{call}() while another task waits for the same consumer: give each task its own, or lock around it. Only "
                "wakeup() may be called from another task"
            )
        self._owner = me
        self._depth += 1

    def leave(self) -> None:
        """The call that entered last has ended."""
        self._depth -= 1
        if self._depth == 0:
            self._owner = None
