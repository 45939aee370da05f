"""`on_stage`: the stage of a simulated run without a node, whose checkers record the events that they get."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.ids import Uuid
from ottla.sim.checkers.checker import Checkers, TopicPlan
from ottla.sim.clients.client import Stage
from ottla.sim.loop import VirtualLoop
from ottla.sim.net import SimNetwork
from ottla.sim.trace import Trace

TOPIC = TopicPlan("t", Uuid(bytes(range(16))), 3)


class Recording:
    """A checker that records every event."""

    def __init__(self) -> None:
        self.events: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *what: self.events.append((name, *what))

    def names(self) -> list[str]:
        """The events without their contents."""
        return [event[0] for event in self.events]


def on_stage(body: Callable[[Stage, Recording], None]) -> None:
    """Call `body` on a virtual loop."""
    loop = VirtualLoop()

    async def run() -> None:
        checker = Recording()
        checkers: Any = [checker]
        body(Stage(1, SimNetwork(), Trace(loop), Checkers(checkers), ("node",)), checker)

    loop.run(run())
