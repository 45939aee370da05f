"""Who may use a consumer: one thread or task at a time, in the process that made it, and not after its end.

`ThreadGuard` and `TaskGuard` refuse the others. The decorators make the methods of a face of the calls in `calls.py`, and
enter the face's guard around them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, Protocol, TypeVar, cast

from ottla.client.faces import Described, M, P, R, S, finished, method_of
from ottla.env.threads import Threads
from ottla.errors import ConcurrentUseError, IllegalStateError

T = TypeVar("T")
Read = tuple[float | None, Callable[[], Any], Callable[[Any], T] | None]
"""What a call that hands out records describes: its timeout, what takes buffered records, and what makes a T of these."""


class Guard(Protocol):
    """Lets one caller in at a time; the same caller may come in again, as a rebalance listener does."""

    def enter(self, call: str) -> None:
        """`call` begins. Raises `ConcurrentUseError` if another caller is inside."""
        ...

    def leave(self) -> None:
        """The call that entered last has ended."""
        ...


class ThreadGuard:
    """`Guard` for threads, of which only those of this process may come in."""

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


class TaskGuard:
    """`Guard` for tasks."""

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


# The synchronous face


def guarded(described: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """A method of a plain call, which only one thread may make at a time, on a consumer that is open."""
    name = described.__name__

    def method(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> R:
        self._guard.enter(name)
        try:
            check_open(self, name)
            return described(self, *args, **kwargs)
        finally:
            self._guard.leave()

    return method_of(described, method)


def blocking(described: Described[S, P, R]) -> Callable[Concatenate[S, P], R]:
    """A guarded method of a call that waits: it blocks the calling thread."""
    name = described.__name__

    def method(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> R:
        self._guard.enter(name)
        try:
            check_open(self, name)
            return finished(described(self, *args, **kwargs))
        finally:
            self._guard.leave()

    return method_of(described, method)


def blocking_read(described: Callable[Concatenate[S, P], Read[T]], name: str | None = None) -> Callable[Concatenate[S, P], T]:
    """A guarded method that hands out records. If it raises, also by Ctrl-C at the very end, what it has taken goes back."""
    shown = name or described.__name__

    def method(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        self._guard.enter(shown)
        try:
            check_open(self, shown)
            timeout, take, convert = described(self, *args, **kwargs)
            found = self._read_buffered(take) or finished(self._read(timeout, take))
            if convert is not None:
                found = convert(found)
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
        return found  # type: ignore[no-any-return]  # a cast is a call, at which Ctrl-C could come

    return _method_of_read(described, method)


# The asyncio face


def awaiting(described: Described[S, P, R]) -> Callable[Concatenate[S, P], Coroutine[Any, Any, R]]:
    """A method of a call that waits, which only one task may do at a time, on a consumer that is open."""
    name = described.__name__

    async def method(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> R:
        _ = self._core  # raises if the consumer is closed or belongs to another loop
        self._guard.enter(name)
        try:
            return await described(self, *args, **kwargs)
        finally:
            self._guard.leave()

    return method_of(described, method)


def awaiting_read(
    described: Callable[Concatenate[S, P], Read[T]], name: str | None = None
) -> Callable[Concatenate[S, P], Coroutine[Any, Any, T]]:
    """A guarded method that hands out records. If it raises, also when it is cancelled, what it has taken goes back."""
    shown = name or described.__name__

    async def method(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        reader = self._core.reader  # raises if the consumer is closed or belongs to another loop
        self._guard.enter(shown)
        try:
            timeout, take, convert = described(self, *args, **kwargs)
            found = await self._read(timeout, take)
            if convert is not None:
                found = convert(found)
            reader.is_handed_out = True
            return cast(T, found)
        except BaseException:
            self._undo_step()
            raise
        finally:
            self._guard.leave()

    return _method_of_read(described, method)


def _method_of_read(described: Callable[..., Any], method: M) -> M:
    """As `method_of`; the method returns what the `Read` is of."""
    shown = described.__annotations__["return"]
    if shown.startswith("Read["):
        described.__annotations__["return"] = shown[5:-1]
    return method_of(described, method)


def check_open(consumer: Any, call: str) -> None:
    """Raise if a consumer is closed."""
    if consumer._is_closed:
        raise IllegalStateError(f"{call}() on a consumer that is closed: make another one")


def refuse_in_listener(consumer: Any, call: str) -> None:
    """Raise if a rebalance listener runs: the call would wait for events behind the one that is being handled."""
    if consumer._is_in_listener:
        raise IllegalStateError(f"{call}() inside of a rebalance listener: the rebalance has to end first")
