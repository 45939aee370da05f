"""What the active controller decides from time to time: elections (preferred leaders, and unclean ones where topics allow
them), and which delegation tokens have expired.

Settings: `auto.leader.rebalance.enable`, `leader.imbalance.check.interval.seconds`, `unclean.leader.election.interval.ms`,
`delegation.token.expiry.check.interval.ms`.
Runs between `start` and `stop`, on the controller's event loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from ottla.broker.background import watched
from ottla.errors import KafkaError

if TYPE_CHECKING:
    from ottla.metadata.controller.decision import Decision
    from ottla.metadata.controller.state import ControllerSettings, ControllerState

    Decide = Callable[[ControllerState, int], Decision[bool]]
    Write = Callable[[Decide], Awaitable[bool]]

logger = logging.getLogger("ottla.controller")


class PeriodicDecisions:
    """The decisions of one controller; `write` commits one and returns whether there is more to decide."""

    def __init__(self, settings: ControllerSettings, write: Write) -> None:
        self._settings = settings
        self._write = write
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._running: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """The controller is active from now on."""
        self.stop()
        self._wait("elect_unclean_leaders", self._settings.unclean_election_interval_ms)
        if self._settings.leader_balance_interval_ms is not None:
            self._wait("balance_leaders", self._settings.leader_balance_interval_ms)
        if self._settings.tokens.secret_key is not None:
            self._wait("remove_expired_tokens", self._settings.tokens.check_interval_ms)

    def stop(self) -> None:
        """The controller is not active any more, or stops."""
        for timer in self._timers.values():
            timer.cancel()
        for task in self._running:
            task.cancel()
        self._timers.clear()

    def _wait(self, name: str, interval_ms: int) -> None:
        self._timers[name] = asyncio.get_running_loop().call_later(interval_ms / 1000, self._begin, name, interval_ms)

    def _begin(self, name: str, interval_ms: int) -> None:
        task = watched(f"the controller's task {name}", self._decide(name))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        self._wait(name, interval_ms)

    async def _decide(self, name: str) -> None:
        from ottla.metadata.controller import delegation_tokens, elections  # late: not needed at a start

        decide: Decide = getattr(delegation_tokens if "token" in name else elections, name)
        try:
            while await self._write(decide):
                pass  # each decision has a limit, and other requests come between two
        except KafkaError as refused:
            logger.info("%s: not now: %s", name, refused)  # the controller is not active any more, or its node stops
