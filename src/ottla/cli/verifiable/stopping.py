"""How the verifiable clients are stopped: SIGTERM or Ctrl-C ends them with their closing events.

A second signal ends them at once, but only after a moment: `timeout` and some supervisors send one to the process and one more
to its group.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SIGNALS = (signal.SIGTERM, signal.SIGINT)
INTERRUPTED = 130
REPEATED_S = 1.0
"""For how long after the first signal more of them are ignored."""


class Stop:
    """Whether and why to stop."""

    def __init__(self) -> None:
        self.signal: signal.Signals | None = None

    @property
    def exit_code(self) -> int | None:
        """130 after Ctrl-C; SIGTERM is how these commands are meant to end."""
        return INTERRUPTED if self.signal is signal.SIGINT else None


@contextmanager
def stopping(on_stop: Callable[[], object]) -> Iterator[Stop]:
    """A `Stop` that a signal sets; `on_stop` is called once then."""
    loop, stop = asyncio.get_running_loop(), Stop()

    def received(number: signal.Signals) -> None:
        if stop.signal is None:
            stop.signal = number
            loop.call_later(REPEATED_S, restore)
            on_stop()

    def restore() -> None:
        for each in SIGNALS:
            loop.remove_signal_handler(each)

    for each in SIGNALS:
        loop.add_signal_handler(each, received, each)
    try:
        yield stop
    finally:
        restore()
