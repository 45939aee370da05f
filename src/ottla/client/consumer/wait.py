"""`Waiting`: calls that wait on the loop until the machines have got somewhere, the time is up, or another thread says stop."""

from __future__ import annotations

import asyncio
from builtins import TimeoutError as TimeIsUp
from collections.abc import Callable
from contextlib import AbstractContextManager

from ottla.client.patience import Patience
from ottla.env.clock import Clock
from ottla.errors import ClientError, KafkaError, TimeoutError, WakeupError


class Waiting:
    """The calls of one consumer that wait. Its owner calls `look` after every round of the machines."""

    def __init__(
        self, wake: Callable[[], None], default_s: float, clock: Clock, hold: Callable[[], AbstractContextManager[None]]
    ) -> None:
        """`hold` lets max.poll.interval.ms stand still while a call waits."""
        self._wake = wake
        self._hold = hold
        self._clock = clock
        self._default_s = default_s
        self._loop = asyncio.get_running_loop()
        self._entries: list[tuple[Callable[[], bool], asyncio.Future[None]]] = []
        self._is_woken = False
        self._is_closing = False
        self.fault: Exception | None = None
        """A bug that has stopped the machines."""

    async def until(self, is_true: Callable[[], bool], timeout_s: float | None) -> bool:
        """Wait until `is_true` (None: ever); False if the time was up first. Raises what concerns every call."""
        self._wake()
        if not self._is_over(is_true) and (timeout_s is None or timeout_s > 0):
            entry = (is_true, self._loop.create_future())
            self._entries.append(entry)
            try:
                async with asyncio.timeout(timeout_s):
                    await entry[1]
            except TimeIsUp:
                pass
            finally:
                self._entries.remove(entry)
        if self._is_woken:
            self._is_woken = False
            raise WakeupError
        if self.fault is not None:
            raise ClientError(f"this consumer met a bug of Ottla and cannot go on: {self.fault!r}. Make another one")
        return is_true()

    async def done(
        self, is_true: Callable[[], bool], timeout_s: float | None, what: str, why: Callable[[], KafkaError | None]
    ) -> None:
        """Wait until `is_true` (None: for default.api.timeout.ms). `what` did not happen and `why` make the `TimeoutError`."""
        limit_s = self._default_s if timeout_s is None else timeout_s

        def reason_so_far() -> str:
            reason = why()
            return f"{what} yet{'' if reason is None else f': {reason}'}"

        with self._hold(), Patience(self._clock).waiting(reason_so_far):
            is_done = await self.until(is_true, limit_s)
        if not is_done:
            reason = why()
            raise TimeoutError(f"{what} within {limit_s:g} s{'' if reason is None else f': {reason}'}")

    def limit_s(self, timeout_s: float | None) -> float:
        """The time that a call has."""
        return self._default_s if timeout_s is None else timeout_s

    def wakeup(self) -> None:
        """End the call that waits now, or else the next one, with `WakeupError`."""
        self._is_woken = not self._is_closing
        self.look()

    def refuse_wakeups(self) -> None:
        """The consumer closes: nothing must interrupt that."""
        self._is_closing = True
        self._is_woken = False

    def look(self) -> None:
        """Let those go on that need not wait any more."""
        for is_true, future in self._entries:
            if not future.done() and self._is_over(is_true):
                future.set_result(None)

    def _is_over(self, is_true: Callable[[], bool]) -> bool:
        return self._is_woken or self.fault is not None or is_true()
