"""`Patience`: logs what a call waits for, once it has waited for some seconds, and again every minute.

A blocked call looks like a hung program. Its caller sees an error only when its time is up, which may be minutes later.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ottla.env.clock import Clock

logger = logging.getLogger("ottla.client")

FIRST_S = 5.0
"""How long a call waits in silence."""
AGAIN_S = 60.0

Reason = Callable[[], str | None]
"""What is waited for and why, such as "flush() waits for 1 record to be stored: node 1 has not answered"; None: nothing."""


class Patience:
    """Watches the calls of one kind, such as the polls of a consumer: short ones in a row count as one."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since_s: float | None = None
        self._log_at_s = 0.0

    def ended(self) -> None:
        """What was waited for is there: the next call starts from zero."""
        self._since_s = None

    @contextmanager
    def waiting(self, reason: Reason) -> Iterator[None]:
        """A call that waits on the running event loop."""
        loop = asyncio.get_running_loop()
        timer: asyncio.TimerHandle | None = None

        def tick() -> None:
            nonlocal timer
            timer = loop.call_later(self.look(reason), tick)

        tick()
        try:
            yield
        finally:
            if timer is not None:
                timer.cancel()

    def look(self, reason: Reason) -> float:
        """Log if it is time to; returns after how many seconds to look again."""
        now_s = self._clock.monotonic_s()
        if self._since_s is None:
            self._since_s, self._log_at_s = now_s, now_s + FIRST_S
        if now_s >= self._log_at_s:
            found = reason()
            if found is None:
                self._since_s, self._log_at_s = now_s, now_s + FIRST_S
            else:
                logger.warning("%s. Waiting for %.0f s already", found.rstrip("."), now_s - self._since_s)
                self._log_at_s = now_s + AGAIN_S
        return max(0.01, self._log_at_s - now_s)
