"""Exponential backoff between attempts; for clients with jitter, so that those that failed together do not retry together
(KIP-580). Pure."""

from __future__ import annotations

from collections.abc import Callable

JITTER_PERCENT = 20
_EXPONENT_MAX = 30  # any sensible limit is reached before
_PRECISION = 1_000


def exponential(first: float, failures: int, most: float) -> float:
    """The wait after another failure: `first`, doubled for each of the `failures` in a row before it, up to `most`."""
    return min(first * (1 << min(failures, _EXPONENT_MAX)), most)


class Backoff:
    """Counts failures in a row and tells the wait after each: `first_ms`, doubled every time, up to `max_ms`, ± 20 %."""

    __slots__ = ("_first_ms", "_max_ms", "_random_below", "failures")

    def __init__(self, first_ms: int, max_ms: int, random_below: Callable[[int], int]) -> None:
        self._first_ms = first_ms
        self._max_ms = max(first_ms, max_ms)
        self._random_below = random_below
        self.failures = 0

    def failed(self) -> int:
        """Count a failure; returns the milliseconds to wait before the next attempt."""
        self.failures += 1
        wait_ms = int(exponential(self._first_ms, self.failures - 1, self._max_ms))
        chance = self._random_below(2 * _PRECISION + 1) - _PRECISION
        return max(0, wait_ms + wait_ms * JITTER_PERCENT * chance // (100 * _PRECISION))

    def succeeded(self) -> None:
        """Start over with the next failure."""
        self.failures = 0
