"""`Pending`: an operation of a machine that a caller waits for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.errors import KafkaError


class Pending:
    """Becomes done once, with or without an error, and then calls those who wait. Belongs to the event loop."""

    __slots__ = ("error", "is_claimed", "is_done", "waiters", "what")

    def __init__(self, what: str) -> None:
        self.what = what
        self.is_done = False
        self.is_claimed = False
        """Whether a caller has got the outcome. One that stopped waiting gets it when it repeats its call."""
        self.error: KafkaError | None = None
        self.waiters: list[Callable[[], Any]] = []

    def finish(self, error: KafkaError | None = None) -> None:
        """Be done; only the first call counts."""
        if self.is_done:
            return
        self.is_done = True
        self.error = error
        waiters, self.waiters = self.waiters, []
        for waiter in waiters:
            waiter()
