"""How many lines coordinators may write, so that a client that joins and leaves in a loop does not fill the disk.

What becomes of members and producers is logged line by line, as long as it goes on at a rate that one could read or would want
to look through later: each group and each transactional id has lines to spare, which come back with time, and so have all of
them together. Beyond that lines are left out and counted, and the count is logged. Errors are never left out.
"""

from __future__ import annotations

import logging
from time import localtime, strftime
from typing import Final

LOGGER: Final = "ottla.coordinator"
PER_SUBJECT: Final = (1000, 20.0)
IN_ALL: Final = (10_000, 50.0)
"""How many lines there are to spare, and how many come back per second."""
LINE_CHARACTERS: Final = 400
"""What is longer counts as several lines."""
TOLD_EVERY_S: Final = 10.0
SUBJECTS_MAX: Final = 1000
_DECISION: Final = "may_pass"


class _Lines:
    """Lines to spare."""

    __slots__ = ("_as_of_s", "_burst", "_left", "_per_s")

    def __init__(self, burst: int, per_s: float, now_s: float) -> None:
        self._burst, self._per_s = burst, per_s
        self._left, self._as_of_s = float(burst), now_s

    def has(self, count: int, now_s: float) -> bool:
        self._left = min(self._burst, self._left + max(0.0, now_s - self._as_of_s) * self._per_s)
        self._as_of_s = now_s
        return self._left >= count

    def take(self, count: int) -> None:
        self._left -= count


class CoordinatorLines(logging.Filter):
    """For all handlers of a process together: of each line it is decided once.

    The first argument of coordinators' lines is the group or transactional id that they are about. Those of others pass.
    """

    def __init__(self) -> None:
        super().__init__()
        self._in_all: _Lines | None = None
        self._of: dict[str, _Lines] = {}
        self._omitted: dict[str, int] = {}
        self._omitted_since_s = 0.0

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name != LOGGER or record.levelno >= logging.ERROR:
            return True
        decided: bool | None = getattr(record, _DECISION, None)
        if decided is None:
            decided = self._may_pass(record)
            setattr(record, _DECISION, decided)
        return decided

    def _may_pass(self, record: logging.LogRecord) -> bool:
        now_s = record.created
        if self._omitted and not 0 <= now_s - self._omitted_since_s < TOLD_EVERY_S:
            self._tell_omitted()
        subject = str(record.args[0])[:LINE_CHARACTERS] if isinstance(record.args, tuple) and record.args else ""
        if self._in_all is None:
            self._in_all = _Lines(*IN_ALL, now_s)
        if subject not in self._of:
            if len(self._of) >= SUBJECTS_MAX:
                self._of.clear()
            self._of[subject] = _Lines(*PER_SUBJECT, now_s)
        own, count = self._of[subject], 1 + len(record.getMessage()) // LINE_CHARACTERS
        if own.has(count, now_s) and self._in_all.has(count, now_s):
            own.take(count)
            self._in_all.take(count)
            return True
        if not self._omitted:
            self._omitted_since_s = now_s
        known = subject if subject in self._omitted or len(self._omitted) < SUBJECTS_MAX else ""
        self._omitted[known] = self._omitted.get(known, 0) + 1
        return False

    def _tell_omitted(self) -> None:
        omitted, self._omitted = self._omitted, {}
        loudest = max(omitted, key=omitted.__getitem__)
        logger = logging.getLogger(LOGGER)
        text = "since %s %d lines were left out, to spare the log: there were too many. Most of them, %d, were about %s"
        since = strftime("%H:%M:%S", localtime(self._omitted_since_s))
        facts = (since, sum(omitted.values()), omitted[loudest], loudest or "many")
        logger.handle(logger.makeRecord(LOGGER, logging.WARNING, __file__, 0, text, facts, None, extra={_DECISION: True}))
