"""Logging of a node: one line per event, on the terminal and in a file per day.

Only commands that own their process configure logging; an embedded broker never does. `logging.handlers` is not used: its
import takes a tenth of a node's start.
"""

from __future__ import annotations

import logging
import os
import sys
from contextlib import suppress
from pathlib import Path
from time import localtime, strftime
from types import TracebackType
from typing import TextIO

from ottla.cli.common.output import escape
from ottla.cli.log_limits import CoordinatorLines
from ottla.errors import OttlaError

_ExceptionInfo = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]

FILE_NAME = "server.log"
LINE = "%(asctime)s %(levelname)-8s %(short_name)s: %(message)s"
_DAY = "%Y-%m-%d"
MESSAGE_CHARACTERS_MAX = 4000
HEAD_CHARACTERS = 2000
"""A longer message loses its middle: that is a long name, and the event is described before and after it."""


class LineFormatter(logging.Formatter):
    """`2026-11-15T10:20:30.123+0100 INFO     node: …`, without the prefix `ottla.` of logger names.

    The time is local, with its offset: options that take a time (`consume --from-time`) read it.
    """

    def __init__(self) -> None:
        super().__init__(LINE)

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        moment = localtime(record.created)
        return f"{strftime('%Y-%m-%dT%H:%M:%S', moment)}.{int(record.msecs):03d}{strftime('%z', moment)}"

    def format(self, record: logging.LogRecord) -> str:
        record.short_name = record.name.removeprefix("ottla.")
        return super().format(record)

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Escaped, so that it is always one line: names that clients choose could forge lines or contain terminal commands."""
        message = escape(record.message)
        if len(message) > MESSAGE_CHARACTERS_MAX:
            left_out = len(message) - MESSAGE_CHARACTERS_MAX
            message = f"{message[:HEAD_CHARACTERS]}… ({left_out} characters) …{message[HEAD_CHARACTERS + left_out :]}"
        record.message = message
        return super().formatMessage(record)

    def formatException(self, ei: _ExceptionInfo) -> str:
        """Indented and escaped: the text of an exception cannot look like the line of an event."""
        return "\n".join(f"    {escape(line)}" for line in super().formatException(ei).split("\n"))


class JournalFormatter(LineFormatter):
    """For systemd's journal, which has the time: each line begins with its priority as `<4>` (sd-daemon(3))."""

    def __init__(self) -> None:
        super().__init__()
        self._style._fmt = "%(levelname)s %(short_name)s: %(message)s"

    def format(self, record: logging.LogRecord) -> str:
        priority = next((each for level, each in _PRIORITIES if record.levelno >= level), 7)
        return "\n".join(f"<{priority}>{line}" for line in super().format(record).split("\n"))


_PRIORITIES = ((logging.CRITICAL, 2), (logging.ERROR, 3), (logging.WARNING, 4), (logging.INFO, 6))


class DailyFile(logging.Handler):
    """A file per day, `server.log.2026-11-15`, in local time. The operator removes old files."""

    def __init__(self, directory: Path) -> None:
        self._made = [each for each in (directory, *directory.parents) if not each.exists()]
        directory.mkdir(parents=True, exist_ok=True)  # may fail: before logging registers the handler
        super().__init__()
        self._directory = directory
        self._day = ""
        self._file: TextIO | None = None
        self.setFormatter(LineFormatter())
        self._file_of(strftime(_DAY))  # fails now if the folder cannot be written, not at the first event

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._file_of(strftime(_DAY, localtime(record.created))).write(self.format(record) + "\n")
        except Exception:
            self.handleError(record)

    def _file_of(self, day: str) -> TextIO:
        if self._file is None or day != self._day:
            if self._file is not None:
                self._file.close()
            # Line buffered: the last lines before a crash must be in the file.
            self._file = open(self._directory / f"{FILE_NAME}.{day}", "a", buffering=1, encoding="utf-8")  # noqa: SIM115
            self._day = day
        return self._file

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
        super().close()

    def discard_empty(self) -> None:
        """Remove the file if nothing was ever logged, with the folders that were made for it."""
        file = self._directory / f"{FILE_NAME}.{self._day}"
        if self._file is None or file.stat().st_size:
            return
        self.close()
        file.unlink()
        for folder in self._made:
            folder.rmdir()


def discard_empty_files() -> None:
    """A node whose start was refused leaves no empty log file behind."""
    for handler in logging.getLogger("ottla").handlers:
        if isinstance(handler, DailyFile):
            with suppress(OSError):  # someone else uses the folder by now
                handler.discard_empty()


class _TerminalLevel(logging.Filter):
    """Lets lines of `level` and above pass, and all lines of loggers that `ottla configs alter` has set below `usual`."""

    def __init__(self, level: int, usual: int) -> None:
        super().__init__()
        self._level, self._usual = level, usual

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno >= self._level or logging.getLogger(record.name).getEffectiveLevel() < self._usual


def _is_journal(stream: TextIO) -> bool:
    """Whether the stream is connected to systemd's journal, which names it by device and inode."""
    with suppress(OSError, ValueError):
        status = os.fstat(stream.fileno())
        return os.environ.get("JOURNAL_STREAM") == f"{status.st_dev}:{status.st_ino}"
    return False


def configure_logging(*, level: str, directory: Path | None = None, for_journal: bool = False) -> None:
    """Log to the terminal at `level` and above, and to files in `directory`, if given, at INFO and above.

    With `for_journal`, lines carry their priority if standard error is systemd's journal.
    """
    terminal = logging.StreamHandler(sys.stderr)
    terminal.setFormatter(JournalFormatter() if for_journal and _is_journal(sys.stderr) else LineFormatter())
    levels = logging.getLevelNamesMapping()
    usual = levels[level] if directory is None else logging.INFO
    terminal.addFilter(_TerminalLevel(levels[level], usual))
    handlers: list[logging.Handler] = [terminal]
    if directory is not None:
        try:
            handlers.append(DailyFile(directory))
        except OSError as error:
            raise OttlaError(
                f"cannot write log files to {directory}: {error.strerror}. Choose another folder with --log-dir"
            ) from None
    limits = CoordinatorLines()
    for handler in handlers:
        handler.addFilter(limits)
    package = logging.getLogger("ottla")
    package.handlers = handlers
    package.propagate = False
    package.setLevel(usual)
