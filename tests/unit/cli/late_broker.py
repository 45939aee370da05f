"""A broker that starts only when a command has said that it waits for one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from unittest import mock

from ottla.cli.common import waiting
from ottla.testing import Broker


class LateBroker:
    """A broker with topics that is away: it has been up, so that its port and its topics are known."""

    def __init__(self, *topics: str) -> None:
        self.broker = Broker()
        self._topics = topics

    @property
    def address(self) -> str:
        return self.broker.bootstrap_servers

    def __enter__(self) -> LateBroker:
        self.broker.start()
        for topic in self._topics:
            self.broker.create_topic(topic)
        self.broker.kill()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.broker.stop()

    @contextmanager
    def started_by_a_message(self) -> Iterator[list[str]]:
        """While this lasts, the first message of a wait starts the broker. Yields the messages."""
        said: list[str] = []

        def hear(text: str) -> None:
            if is_waiting.is_set() or "nothing listens" in text:  # on a busy machine the first attempt may not have failed yet
                said.append(text)
                is_waiting.set()

        short = mock.patch.object(waiting, "LINE_EVERY_S", 0.2)
        with self._started_later() as is_waiting, mock.patch.object(waiting, "warn", hear), short:
            yield said

    @contextmanager
    def started_by_a_line(self) -> Iterator[threading.Event]:
        """While this lasts, the first line that a wait draws on a terminal starts the broker."""
        fit = waiting.fit

        def drawn(line: str, width: int) -> str:
            is_waiting.set()
            return fit(line, 200)

        with self._started_later() as is_waiting, mock.patch.object(waiting, "fit", drawn):
            yield is_waiting

    @contextmanager
    def _started_later(self) -> Iterator[threading.Event]:
        is_waiting = threading.Event()

        def start() -> None:
            is_waiting.wait()
            self.broker.start()

        starting = threading.Thread(target=start)
        starting.start()
        try:
            with mock.patch.object(waiting, "SILENT_S", 0.2):
                yield is_waiting
        finally:
            is_waiting.set()
            starting.join()
