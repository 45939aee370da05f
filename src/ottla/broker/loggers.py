"""Reads and sets the levels of Ottla's loggers while the node runs, with Kafka's names for the levels.

`root` is the logger of the whole package; it and the loggers below it are Python's, shared by all nodes of a process.
Loggers of other packages are not touched. A logger is also found by the name that log lines print, without `ottla.`.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Final, Protocol

from ottla.broker.requests.audit_log import audit_levels
from ottla.broker.requests.request_log import request_log
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.errors.texts import near_words

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
_KAFKAS_NAMES: Final = {
    "kafka.authorizer.logger": "ottla.authorizer",
    "kafka.controller": "ottla.controller",
    "kafka.log.LogCleaner": "ottla.log",
    "kafka.request.logger": "ottla.requests",
    "state.change.logger": "ottla.partitions",
}
"""Loggers that Kafka's documentation names → ours."""


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
        request_log.refresh()
        audit_levels.refresh()


def find_logger(name: str, known: Collection[str]) -> str:
    """The logger of `known` that is meant: by its name, as log lines print it, or by Kafka's name. Raises `KafkaError`."""
    for meant in (name, f"{_PACKAGE}.{name}", _KAFKAS_NAMES.get(name, name), ROOT if name == _PACKAGE else name):
        if meant in known:
            return meant
    short = [each.removeprefix(f"{_PACKAGE}.") for each in known]
    near = near_words(name.removeprefix(f"{_PACKAGE}."), short)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(short)}"
    raise KafkaError(ErrorCode.INVALID_CONFIG, f"there is no logger {name}: {hint}")


def logger_here(name: str) -> str | None:
    """The logger that has Kafka's name, or the name of one here; None for others."""
    if name in (ROOT, _PACKAGE) or name.startswith(f"{_PACKAGE}."):
        return name
    return _KAFKAS_NAMES.get(name)


def _level_name(logger: logging.Logger) -> str:
    effective = logger.getEffectiveLevel()
    return next((name for name, level in LEVELS.items() if effective <= level), "FATAL")
