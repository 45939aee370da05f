"""The requests that a broker for tests has refused, in its log: all of them, and not many times the same.

A node spares its log: it leaves reads out, and logs a few lines for each host. In a test all clients are on one host, and a
refused read is often why it fails. A client that asks again and again must not push everything else out of the last lines.
"""

from __future__ import annotations

from typing import Final

from ottla.broker.net.fault_log import FaultLog
from ottla.errors.codes import ErrorCode, error_name

LINES_PER_KIND: Final = 3
"""In a window of `FaultLog`. Lines of one kind differ only in numbers: correlation ids, ports."""
_MEMBER_ID_REQUIRED: Final = error_name(ErrorCode.MEMBER_ID_REQUIRED)


class RefusalLog(FaultLog):
    """One node's."""

    __slots__ = ()

    def report(self, level: int, host: str, text: str, *arguments: object) -> None:
        words = [argument for argument in arguments if not isinstance(argument, int)]
        if words[-1:] == [_MEMBER_ID_REQUIRED]:
            return  # how a group's new member gets its id: no failure
        if self._may_log(f"{text} {words}", LINES_PER_KIND):
            self._logger.log(level, text, *arguments)
        else:
            self._omitted += 1
