"""Log lines about what peers do wrong, so few that a hostile one cannot fill the disk or hide what others do.

Within a window every host gets a few lines, and all together get some more. What was left out is counted, and the count is
logged when the next window begins. Nothing is remembered beyond a window.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

WINDOW_S = 10.0
LINES_PER_HOST = 10
LINES_IN_ALL = 100


class FaultLog:
    """One node's. `report` is as cheap as can be once the window is full."""

    __slots__ = ("_ends_s", "_lines_by_host", "_lines_in_all", "_logger", "_monotonic_s", "_omitted")

    def __init__(self, monotonic_s: Callable[[], float], logger: logging.Logger) -> None:
        self._monotonic_s = monotonic_s
        self._logger = logger
        self._ends_s = 0.0
        self._lines_by_host: dict[str, int] = {}
        self._lines_in_all = 0
        self._omitted = 0

    def report(self, level: int, host: str, text: str, *arguments: object, error: BaseException | None = None) -> None:
        """Log a line about the peer at `host`; `error` adds its traceback."""
        now_s = self._monotonic_s()
        if now_s >= self._ends_s:
            self._begin_window(now_s)
        lines = self._lines_by_host.get(host, 0)
        if lines >= LINES_PER_HOST or self._lines_in_all >= LINES_IN_ALL:
            self._omitted += 1
            return
        self._lines_by_host[host] = lines + 1
        self._lines_in_all += 1
        self._logger.log(level, text, *arguments, exc_info=error)

    def _begin_window(self, now_s: float) -> None:
        if self._omitted:
            self._logger.warning(
                "%d more failed requests and closed connections were not logged, to spare the log", self._omitted
            )
        self._ends_s = now_s + WINDOW_S
        self._lines_by_host.clear()
        self._lines_in_all = self._omitted = 0
