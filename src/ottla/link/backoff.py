"""Exponential backoff: the wait before the next attempt, as a pure function. Imports nothing."""

EXPONENT_MAX = 30  # avoids huge numbers: any sensible limit is reached before


def backoff_ms(failures: int, first_ms: int, max_ms: int, chance: float = 0.5, spread: float = 0.2) -> int:
    """The wait after `failures` failed attempts in a row: `first_ms`, doubled each time, up to `max_ms`.

    `chance`, a random number from 0 to 1 that the caller draws, moves the wait by up to `spread` to either side. So clients
    that failed at the same time do not retry at the same time. Without a failure the wait is 0.
    """
    if failures <= 0:
        return 0
    wait_ms = min(first_ms << min(failures - 1, EXPONENT_MAX), max_ms)
    return round(wait_ms * (1 - spread + 2 * spread * chance))
