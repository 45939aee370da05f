"""A simulated cluster without clients."""

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

import pytest

from ottla.sim.cluster.checkers.checker import ClusterChecker, ClusterCheckers
from ottla.sim.cluster.machine import ClusterFacts, ClusterMachine, Machines
from ottla.sim.cluster.plan import QUORUM_SETTINGS
from ottla.sim.cluster.watch import Watch
from ottla.sim.loop import VirtualLoop
from ottla.sim.net import SimNetwork
from ottla.sim.trace import Trace


class Nodes:
    """Machines, not started."""

    def __init__(
        self, loop: VirtualLoop, checkers: list[ClusterChecker], is_static: bool, count: int, controllers: int | None
    ) -> None:
        self.network = SimNetwork(Random(1))
        self.trace = Trace(loop)
        self.watch = Watch(ClusterCheckers(checkers), self.trace)
        cluster = ClusterFacts(1, count, is_static, {}, controllers)
        self.machines = Machines(
            ClusterMachine(loop, self.network, Random(number), self.trace, QUORUM_SETTINGS, cluster, number, self.watch)
            for number in range(1, count + 1)
        )

    async def start(self) -> None:
        for machine in self.machines:
            machine.start()
        await self.until(lambda: all(machine.is_up for machine in self.machines) and self.leader() is not None)

    def leader(self) -> ClusterMachine | None:
        return next((machine for machine in self.machines if machine.leads), None)

    async def until(self, condition: Callable[[], bool], limit_s: float = 30) -> None:
        async with asyncio.timeout(limit_s):
            while not condition():
                await asyncio.sleep(0.05)


Body = Callable[[Nodes], Coroutine[Any, Any, None]]
OnNodes = Callable[..., None]


@pytest.fixture
def on_nodes() -> OnNodes:
    """Runs a body with three machines, or as many as asked for."""

    def run(
        body: Body, *checkers: ClusterChecker, is_static: bool = False, count: int = 3, controllers: int | None = None
    ) -> None:
        loop = VirtualLoop(600)

        async def work() -> None:
            await body(Nodes(loop, list(checkers), is_static, count, controllers))

        loop.run(work(), close_dead=True)

    return run
