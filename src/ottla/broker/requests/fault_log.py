"""Rate limit for log lines about peers' faults, so that a hostile peer can neither fill the disk nor hide other faults.

Within a window of `WINDOW_S` every host gets `LINES_PER_HOST` lines, and all hosts together `LINES_IN_ALL`. Our own bugs are
logged with a traceback and have a limit of their own, per exception type and place: faults of peers cannot hide them. Lines
left out are counted, and the count is logged when the next window begins. Nothing is kept beyond a window.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

WINDOW_S = 10.0
LINES_PER_HOST = 10
LINES_PER_BUG = 3
LINES_IN_ALL = 100


class FaultLog:
    """The fault log of one node. Once a limit is reached, `report` only counts."""

    __slots__ = ("_ends_s", "_lines", "_lines_in_all", "_logger", "_monotonic_s", "_omitted")

    def __init__(self, monotonic_s: Callable[[], float], logger: logging.Logger) -> None:
        self._monotonic_s = monotonic_s
        self._logger = logger
        self._ends_s = 0.0
        self._lines: dict[str, int] = {}
        self._lines_in_all = 0
        self._omitted = 0

    def report(self, level: int, host: str, text: str, *arguments: object) -> None:
        """Log a line about the peer at `host`."""
        if self._may_log(f"host {host}", LINES_PER_HOST) and self._lines_in_all < LINES_IN_ALL:
            self._lines_in_all += 1
            self._logger.log(level, text, *arguments)
        else:
            self._omitted += 1

    def report_bug(self, level: int, bug: BaseException, text: str, *arguments: object) -> None:
        """Log a line about one of our own bugs, with its traceback."""
        traceback = bug.__traceback__
        while traceback is not None and traceback.tb_next is not None:
            traceback = traceback.tb_next
        place = "" if traceback is None else f"{traceback.tb_frame.f_code.co_filename}:{traceback.tb_lineno}"
        if self._may_log(f"bug {type(bug).__name__} {place}", LINES_PER_BUG):
            self._logger.log(level, text, *arguments, exc_info=bug)
        else:
            self._omitted += 1

    def _may_log(self, key: str, lines_max: int) -> bool:
        now_s = self._monotonic_s()
        if now_s >= self._ends_s:
            self._begin_window(now_s)
        lines = self._lines.get(key, 0)
        if lines >= lines_max:
            return False
        self._lines[key] = lines + 1
        return True

    def _begin_window(self, now_s: float) -> None:
        if self._omitted:
            self._logger.warning(
                "%d more failed requests and closed connections were not logged, to spare the log", self._omitted
            )
        self._ends_s = now_s + WINDOW_S
        self._lines.clear()
        self._lines_in_all = self._omitted = 0
