"""What a node says while it runs: one readable line each, on the terminal and in a file per day.

Only commands that own their process set logging up; an embedded broker never does. Written without `logging.handlers`, whose
import costs as much as a tenth of a node's start.
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from time import localtime, strftime
from types import TracebackType
from typing import TextIO

from ottla.cli.common.escaping import escape
from ottla.cli.log_limits import CoordinatorLines
from ottla.errors import OttlaError

_ExceptionInfo = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]

FILE_NAME = "server.log"
LINE = "%(asctime)s.%(msecs)03d %(levelname)-8s %(short_name)s: %(message)s"
TIME = "%Y-%m-%d %H:%M:%S"
_DAY = "%Y-%m-%d"
MESSAGE_CHARACTERS_MAX = 4000
HEAD_CHARACTERS = 2000
"""Of what is longer the middle is left out: it is a name, and what happened to it stands before and behind."""


class LineFormatter(logging.Formatter):
    """`2026-11-15 10:20:30.123 INFO     node: …`; the package's name is left out, since everything is ours."""

    def __init__(self) -> None:
        super().__init__(LINE, TIME)

    def format(self, record: logging.LogRecord) -> str:
        record.short_name = record.name.removeprefix("ottla.")
        return super().format(record)

    def formatMessage(self, record: logging.LogRecord) -> str:
        """One line and no more, whatever names clients give to what they make: those may forge lines or steer terminals."""
        message = escape(record.message)
        if len(message) > MESSAGE_CHARACTERS_MAX:
            left_out = len(message) - MESSAGE_CHARACTERS_MAX
            message = f"{message[:HEAD_CHARACTERS]}… ({left_out} characters) …{message[HEAD_CHARACTERS + left_out :]}"
        record.message = message
        return super().formatMessage(record)

    def formatException(self, ei: _ExceptionInfo) -> str:
        """Below the line of the event, indented: what an exception says cannot begin a line that looks like an event's."""
        return "\n".join(f"    {escape(line)}" for line in super().formatException(ei).split("\n"))


class DailyFile(logging.Handler):
    """A file per day, `server.log.2026-11-15`, in the machine's own time. Old ones are the operator's to remove."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)  # before logging knows of the handler, and closes it at the end
        super().__init__()
        self._directory = directory
        self._day = ""
        self._file: TextIO | None = None
        self.setFormatter(LineFormatter())
        self._file_of(strftime(_DAY))  # a folder that cannot be written is noticed now, not at midnight

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._file_of(strftime(_DAY, localtime(record.created))).write(self.format(record) + "\n")
        except Exception:
            self.handleError(record)

    def _file_of(self, day: str) -> TextIO:
        if self._file is None or day != self._day:
            if self._file is not None:
                self._file.close()
            # Line by line: what was said last before a crash is what one wants to read.
            self._file = open(self._directory / f"{FILE_NAME}.{day}", "a", buffering=1, encoding="utf-8")  # noqa: SIM115
            self._day = day
        return self._file

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
        super().close()


def configure_logging(*, level: str, directory: Path | None = None) -> None:
    """Log to the terminal from `level` up and, if a directory is given, from INFO up to files there."""
    terminal = logging.StreamHandler(sys.stderr)
    terminal.setFormatter(LineFormatter())
    terminal.setLevel(level)
    handlers: list[logging.Handler] = [terminal]
    if directory is not None:
        try:
            handlers.append(DailyFile(directory))
        except OSError as error:
            raise OttlaError(
                f"log files cannot be written to {directory}: {error.strerror}. Name another folder with --log-dir"
            ) from None
    limits = CoordinatorLines()
    for handler in handlers:
        handler.addFilter(limits)
    package = logging.getLogger("ottla")
    package.handlers = handlers
    package.propagate = False
    package.setLevel(logging.INFO if directory is not None else level)
