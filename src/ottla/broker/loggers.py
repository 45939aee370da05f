"""Reads and sets the levels of Ottla's loggers while the node runs, with Kafka's names for the levels.

`root` is the logger of the whole package; it and the loggers below it are Python's, shared by all nodes of a process.
Loggers of other packages are not touched.
"""

from __future__ import annotations

import logging
from typing import Final, Protocol

ROOT: Final = "root"
LEVELS: Final[dict[str, int]] = {
    "TRACE": 5,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}
"""Kafka's level → Python's."""

_PACKAGE: Final = "ottla"


class Loggers(Protocol):
    """The interface that the handlers of logger settings use."""

    def levels(self) -> dict[str, str]:
        """Logger → its effective level, sorted by name, `root` first."""
        ...

    def set_level(self, name: str, level: str | None) -> None:
        """Set a logger's level; None: it inherits the level of its parent."""
        ...


class PythonLoggers:
    """The standard library's loggers below `ottla`."""

    def levels(self) -> dict[str, str]:
        names = sorted(
            name
            for name, logger in logging.root.manager.loggerDict.items()
            if isinstance(logger, logging.Logger) and name.startswith(f"{_PACKAGE}.")
        )
        return {ROOT: _level_name(logging.getLogger(_PACKAGE))} | {name: _level_name(logging.getLogger(name)) for name in names}

    def set_level(self, name: str, level: str | None) -> None:
        logging.getLogger(_PACKAGE if name == ROOT else name).setLevel(logging.NOTSET if level is None else LEVELS[level])


def _level_name(logger: logging.Logger) -> str:
    effective = logger.getEffectiveLevel()
    return next((name for name, level in LEVELS.items() if effective <= level), "FATAL")
