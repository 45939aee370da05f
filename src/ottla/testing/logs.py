"""Keeps the last lines that one broker logged, in memory. Levels and other handlers of the loggers are not changed.

Python's loggers are shared by all brokers of a process; the lines of one broker are recognised by its thread. Failed requests
are kept from INFO up, through a logger that only this broker has. Other lines are kept if the process logs them anyway.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Iterable
from typing import Final

LINES_KEPT: Final = 200
_LINE: Final = "%(asctime)s.%(msecs)03d %(levelname)-8s %(name)s: %(message)s"
_TIME: Final = "%H:%M:%S"


STAMP_LENGTH: Final = len("00:00:00.000")


def stamp(at: float) -> str:
    """A time as the lines have it."""
    return f"{time.strftime(_TIME, time.localtime(at))}.{int(at % 1 * 1000):03d}"


def stamped(lines: Iterable[str]) -> list[tuple[str, str]]:
    """Lines with the time of each. The lines of a traceback have none of their own: they get the time of the line above."""
    found: list[tuple[str, str]] = []
    last = ""
    for line in lines:
        if line[2:3] == ":" and line[8:9] == ".":
            last = line[:STAMP_LENGTH]
        found.append((last, line))
    return found


def lines_since(lines: Iterable[str], since: float) -> list[str]:
    """The lines from a time on."""
    first = stamp(since)
    # 23:59 is before 00:01 if a test runs at midnight.
    return [line for at, line in stamped(lines) if (at >= first) != (abs(_hour(at) - _hour(first)) > 12)]


def _hour(at: str) -> int:
    return int(at[:2] or 0)


def line_formatter() -> logging.Formatter:
    return logging.Formatter(_LINE, _TIME)


class LastLines(logging.Handler):
    """Keeps the last lines that the thread `thread_id` logged."""

    def __init__(self, thread_id: int) -> None:
        super().__init__()
        self.setFormatter(line_formatter())
        self.lines: deque[str] = deque(maxlen=LINES_KEPT)
        self._thread_id = thread_id

    def filter(self, record: logging.LogRecord) -> bool:
        return record.thread == self._thread_id

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))

    def attach(self) -> None:
        logging.getLogger("ottla").addHandler(self)

    def detach(self) -> None:
        logging.getLogger("ottla").removeHandler(self)


class PrivateLogger(logging.Logger):
    """A logger of one broker: keeps lines from INFO up, and passes them to the shared logger."""

    def __init__(self, shared: logging.Logger, kept: LastLines) -> None:
        super().__init__(shared.name, logging.INFO)
        self._shared = shared
        self._kept = kept

    def handle(self, record: logging.LogRecord) -> None:
        if self._shared.isEnabledFor(record.levelno):
            self._shared.handle(record)  # `LastLines` is a handler of that too
        else:
            self._kept.handle(record)
