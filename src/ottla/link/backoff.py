"""How long to wait before the next attempt: a pure function of how many have failed. Imports nothing."""

EXPONENT_MAX = 30  # beyond this every sensible limit has been reached


def backoff_ms(failures: int, first_ms: int, max_ms: int, chance: float = 0.5, spread: float = 0.2) -> int:
    """The wait after `failures` failed attempts in a row: doubled each time from `first_ms` up to `max_ms`.

    `chance`, from 0 up to 1, moves the wait within `spread` to either side, so that many who failed together do not all come
    back together; the caller draws it. Without a failure there is nothing to wait for.
    """
    if failures <= 0:
        return 0
    wait_ms = min(first_ms << min(failures - 1, EXPONENT_MAX), max_ms)
    return round(wait_ms * (1 - spread + 2 * spread * chance))
