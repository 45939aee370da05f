"""Rate limit for log lines that clients can cause as often as they like.

A line with a key is logged at most once in `WINDOW_S`. The next line with that key says how many were left out. Keys are names
that the code gives, never texts from clients: nothing here grows.
"""

import logging

from ottla.env.clock import Clock

WINDOW_S = 60.0


class RepeatedLines:
    """The repeated lines of one logger."""

    __slots__ = ("_clock", "_logger", "_seen")

    def __init__(self, clock: Clock, logger: logging.Logger) -> None:
        self._clock = clock
        self._logger = logger
        self._seen: dict[str, tuple[float, int]] = {}
        """Key → when the last line was logged, and how many were left out since."""

    def log(self, level: int, key: str, text: str, *arguments: object) -> None:
        """Log a line, unless one with the same key was logged less than `WINDOW_S` ago."""
        now_s = self._clock.monotonic_s()
        last_s, omitted = self._seen.get(key, (None, 0))
        if last_s is not None and now_s - last_s < WINDOW_S:
            self._seen[key] = last_s, omitted + 1
            return
        self._seen[key] = now_s, 0
        if omitted:
            text += " (%d such lines were left out since the last one)"
            arguments = (*arguments, omitted)
        self._logger.log(level, text, *arguments)
