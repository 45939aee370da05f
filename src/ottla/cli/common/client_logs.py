"""What a client logs while a command runs, as messages on standard error: lost brokers, offsets that are gone."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ottla.cli.common.output import warn

LOGGER = "ottla.client"


class _Printer(logging.Handler):
    def __init__(self, show: Callable[[str], object], after: Callable[[], object] | None) -> None:
        super().__init__(logging.WARNING)
        self._show = show
        self._after = after

    def emit(self, record: logging.LogRecord) -> None:
        self._show(record.getMessage())
        if self._after is not None:
            self._after()


@contextmanager
def client_logs_shown(after: Callable[[], object] | None = None, show: Callable[[str], object] = warn) -> Iterator[None]:
    """Print the client's warnings with `show`, and call `after` after each."""
    logger = logging.getLogger(LOGGER)
    printer = _Printer(show, after)
    logger.addHandler(printer)
    try:
        yield
    finally:
        logger.removeHandler(printer)
