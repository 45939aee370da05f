"""Limits the rate of coordinators' log lines, so that a client that joins and leaves in a loop does not fill the disk.

Token buckets: one for each group and transactional id, and one for all of them together. Lines beyond that are dropped and
counted, and the count is logged. Errors are never dropped.
"""

from __future__ import annotations

import logging
from time import localtime, strftime
from typing import Final

LOGGER: Final = "ottla.coordinator"
PER_SUBJECT: Final = (1000, 20.0)
IN_ALL: Final = (10_000, 50.0)
"""(burst, refill per second) of the buckets, in lines."""
LINE_CHARACTERS: Final = 400
"""A longer message counts as several lines."""
REPORT_EVERY_S: Final = 10.0
SUBJECTS_MAX: Final = 1000
_DECISION: Final = "may_pass"


class _Bucket:
    """A token bucket: full with `burst` tokens, refilled with `per_s`."""

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
    """A filter that all handlers of a process share: it decides about each record once, and stores the decision in it.

    The first argument of a coordinator's line is its group or transactional id. Lines of other loggers always pass.
    """

    def __init__(self) -> None:
        super().__init__()
        self._in_all: _Bucket | None = None
        self._of: dict[str, _Bucket] = {}
        self._dropped: dict[str, int] = {}
        self._dropped_since_s = 0.0

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
        if self._dropped and not 0 <= now_s - self._dropped_since_s < REPORT_EVERY_S:
            self._report_dropped()
        subject = str(record.args[0])[:LINE_CHARACTERS] if isinstance(record.args, tuple) and record.args else ""
        if self._in_all is None:
            self._in_all = _Bucket(*IN_ALL, now_s)
        if subject not in self._of:
            if len(self._of) >= SUBJECTS_MAX:
                self._of.clear()
            self._of[subject] = _Bucket(*PER_SUBJECT, now_s)
        own, count = self._of[subject], 1 + len(record.getMessage()) // LINE_CHARACTERS
        if own.has(count, now_s) and self._in_all.has(count, now_s):
            own.take(count)
            self._in_all.take(count)
            return True
        if not self._dropped:
            self._dropped_since_s = now_s
        known = subject if subject in self._dropped or len(self._dropped) < SUBJECTS_MAX else ""
        self._dropped[known] = self._dropped.get(known, 0) + 1
        return False

    def _report_dropped(self) -> None:
        dropped, self._dropped = self._dropped, {}
        loudest = max(dropped, key=dropped.__getitem__)
        logger = logging.getLogger(LOGGER)
        text = "since %s %d log lines were dropped to keep the log small; %d of them were about %s"
        since = strftime("%H:%M:%S", localtime(self._dropped_since_s))
        facts = (since, sum(dropped.values()), dropped[loudest], loudest or "many")
        logger.handle(logger.makeRecord(LOGGER, logging.WARNING, __file__, 0, text, facts, None, extra={_DECISION: True}))
