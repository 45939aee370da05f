"""`Retry`: how often a worker calls its handler for a record, and how long it waits between two attempts. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

_EXPONENT_MAX = 60  # any sensible limit is reached before


@dataclass(frozen=True)
class Retry:
    """The attempts that each record gets. After the last one it is a dead letter, or the worker stops if it has none."""

    attempts: int = 3
    """How often the handler is called for a record, the first time included."""
    backoff_s: float = 1.0
    """The wait after the first failure. It doubles with each failure after that."""
    backoff_s_max: float = 30.0
    jitter: float = 0.2
    """The part of a wait that is left to chance, so that records which failed together are not retried together."""
    on: type[BaseException] | tuple[type[BaseException], ...] | Callable[[Exception], bool] = Exception
    """Which errors are worth another attempt: classes, or a function of the error. Others are final at once."""

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise ValueError(f"attempts={self.attempts}: a record gets at least one attempt, which is no retry")
        if self.backoff_s < 0 or self.backoff_s_max < 0:
            raise ValueError("backoff_s and backoff_s_max are seconds, 0 or more")
        if not 0 <= self.jitter <= 1:
            raise ValueError(f"jitter={self.jitter}: it is a part of the wait, from 0 to 1")

    def wait_s(self, attempts: int, error: Exception, chance: float) -> float | None:
        """The seconds until the next attempt, after this many; None if there is none. `chance` is from 0 to 1."""
        if attempts >= self.attempts or not self._is_worth_it(error):
            return None
        wait_s = min(self.backoff_s * 2.0 ** min(attempts - 1, _EXPONENT_MAX), self.backoff_s_max)
        return wait_s * (1 + self.jitter * (2 * chance - 1))

    def _is_worth_it(self, error: Exception) -> bool:
        if isinstance(self.on, type | tuple):
            return isinstance(error, self.on)
        return bool(self.on(error))
