"""The contract for watching the running event loop: which turns took long, and what the loop's thread did meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    import asyncio

REPORTED_TURN_S = 0.1
"""Turns of the loop that take at least this long are reported."""


class LoopTurn(NamedTuple):
    """One long turn of the loop: everything that ran between two polls for events."""

    began_s: float
    """On the loop's clock."""
    held_s: float
    frames: tuple[str, ...]
    """Where the loop's thread was seen, innermost first, as module.function:line; empty if the turn ended before the look."""
    task: asyncio.Task[Any] | None
    """The task that ran then; None: a callback did, or nothing was seen."""
    cpu_share: float | None
    """How much of the time since that look the thread had the processor, from 0 to 1; None if unknown."""


class LoopWatch(Protocol):
    """Watches the loop that is running when `start` is called."""

    def start(self, on_turn: Callable[[LoopTurn], None]) -> bool:
        """Call `on_turn` on the loop's thread after every long turn. False: this kind of loop cannot be watched."""
        ...

    def busy_s(self) -> float:
        """How long the loop has worked since the start: all of its turns, without the time it waited for events."""
        ...

    def stop(self) -> None:
        """End the watch. Stopping twice is harmless."""
        ...
