"""Logs the requests that a test broker refuses: reads too, and repeated lines only a few times.

A node limits its log: it leaves out reads, and logs a few lines per host. In a test all clients are on one host, and a refused
read is often the reason for a failure. A client that retries in a loop must not push other lines out of the last lines.
"""

from __future__ import annotations

from typing import Final

from ottla.broker.requests.fault_log import FaultLog
from ottla.errors.codes import ErrorCode, error_name

LINES_PER_KIND: Final = 3
"""Lines per kind in a window of `FaultLog`. Lines of one kind differ only in numbers: correlation ids, ports."""
_MEMBER_ID_REQUIRED: Final = error_name(ErrorCode.MEMBER_ID_REQUIRED)


class RefusalLog(FaultLog):
    """The log of refused requests of one node."""

    __slots__ = ()

    def report(self, level: int, host: str, text: str, *arguments: object) -> None:
        words = [argument for argument in arguments if not isinstance(argument, int)]
        if words[-1:] == [_MEMBER_ID_REQUIRED]:
            return  # MEMBER_ID_REQUIRED, by which a group's new member gets its id: no failure
        if self._may_log(f"{text} {words}", LINES_PER_KIND):
            self._logger.log(level, text, *arguments)
        else:
            self._omitted += 1
