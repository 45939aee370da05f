"""Reports a node to the service manager that started it (`Supervisor` in `env/world.py`): ready, recovering, alive, stopping.

`WATCHDOG=1` is sent from the event loop, at half of the manager's time: a loop that is held sends none, and the manager
restarts the node. While logs are opened, it is asked for more time again and again. Without a manager nothing is timed
and nothing is sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.env.world import Supervisor

TOLD_EVERY_S = 0.2
"""How often the state of a start is told, and how soon a message that was not taken is sent again."""
EXTENSION_S = 60
"""How much longer the manager shall wait for a node that opens its logs. Told again and again."""


class Supervision:
    """The reports of one node. One event loop."""

    def __init__(self, supervisor: Supervisor | None) -> None:
        self._supervisor = supervisor
        self._unsent: list[str] = []
        self._status = ""
        self._has_failed = False
        self._is_stopping = False
        self._telling: asyncio.TimerHandle | None = None
        self._watchdog: asyncio.TimerHandle | None = None
        self.starting: Callable[[], tuple[str, bool]] = lambda: ("starting", False)
        """What the start does, and whether it may need more time than the manager gives it."""

    def begin(self) -> None:
        """The start begins."""
        if self._supervisor is None:
            return
        self._tell_start(self._supervisor)
        if self._supervisor.watchdog_s is not None:
            self._feed(self._supervisor, self._supervisor.watchdog_s / 2)

    def ready(self, status: str) -> None:
        """The node answers requests, as the broker or controller that it is meant to be."""
        if not self._is_stopping:
            self._tell("READY=1", status)

    def reloading(self) -> None:
        """The node reads some of its settings again; `ready` follows. The time tells the manager which of the two is newer."""
        self._tell(f"RELOADING=1\nMONOTONIC_USEC={int(asyncio.get_running_loop().time() * 1e6)}")

    def failed(self, reason: BaseException) -> None:
        """The node cannot go on; the manager shows why."""
        self._has_failed = True
        self._tell("", str(reason).split("\n")[0])

    def stopping(self) -> None:
        """A clean shutdown begins."""
        if self._is_stopping:
            return
        self._is_stopping = True
        self._tell("STOPPING=1", None if self._has_failed else "stopping: handing over partitions, closing logs")

    def close(self) -> None:
        """The node has stopped, or has not started."""
        for timer in (self._telling, self._watchdog):
            if timer is not None:
                timer.cancel()

    def _tell_start(self, supervisor: Supervisor) -> None:
        """Tell what the start does, now and then; one that is not taken is soon outdated."""
        status, needs_time = self.starting()
        lines = [f"EXTEND_TIMEOUT_USEC={EXTENSION_S * 1_000_000}"] if needs_time else []
        if status != self._status:
            lines.append(f"STATUS={status}")
        if lines and supervisor.tell("\n".join(lines)):
            self._status = status
        self._telling = asyncio.get_running_loop().call_later(TOLD_EVERY_S, self._tell_start, supervisor)

    def _tell(self, lines: str, status: str | None = None) -> None:
        """Tell a change of state, which ends what the start tells; again until it is taken."""
        if self._supervisor is None:
            return
        if status is not None and status != self._status:
            self._status = status
            lines = f"{lines}\nSTATUS={status}".lstrip("\n")
        if lines:
            self._unsent.append(lines)
        self._send(self._supervisor)

    def _send(self, supervisor: Supervisor) -> None:
        if self._telling is not None:
            self._telling.cancel()
        while self._unsent and supervisor.tell(self._unsent[0]):
            del self._unsent[0]
        if self._unsent:
            self._telling = asyncio.get_running_loop().call_later(TOLD_EVERY_S, self._send, supervisor)

    def _feed(self, supervisor: Supervisor, interval_s: float) -> None:
        supervisor.tell("WATCHDOG=1")
        self._watchdog = asyncio.get_running_loop().call_later(interval_s, self._feed, supervisor, interval_s)
