"""Troubles at the moment at which a replica is about to join an ISR, and of leaders whose followers are gone.

- `stale join`: a node loses power and starts again. When a leader is about to propose it for an ISR, that leader cannot reach
  the controller, and the node loses its power once more. It is registered again, and cannot reach the leader to catch up. Then
  the leader's proposal reaches the controller: the process that it was made for is gone.
- `lonely leader`: a leader of partitions reaches clients, and no other node: it appends what no replica gets, until another
  leads. Then it comes back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from ottla.sim.cluster.checkers.checker import ClusterChecker, HeldPartition

if TYPE_CHECKING:
    from random import Random

    from ottla.sim.cluster.machine import ClusterMachine
    from ottla.sim.net import SimNetwork

WAIT_S_MAX = 3.0
"""How long a join is waited for."""
SPLIT_S = 0.6
"""How long the leader cannot reach the controller. Less than its session: it stays the leader."""
APART_S = 0.5
"""How much longer the joining node cannot reach the leader."""
LONELY_S = 2.0


class Joins(ClusterChecker):
    """Tells of proposals to add a replica to an ISR."""

    def __init__(self) -> None:
        self._waiting: list[tuple[int, asyncio.Future[str]]] = []

    def isr_proposed(self, node: str, held: HeldPartition, isr: tuple[int, ...]) -> None:
        for replica, waiting in self._waiting:
            if replica in isr and replica not in held.isr and not waiting.done():
                waiting.set_result(node)

    async def next_join(self, replica: int) -> str | None:
        """The leader that next proposes this replica; None if none does in time."""
        proposed: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._waiting.append((replica, proposed))
        try:
            async with asyncio.timeout(WAIT_S_MAX):
                return await proposed
        except TimeoutError:
            return None
        finally:
            self._waiting.remove((replica, proposed))


class JoinTroubles:
    """Carries them out on `machines`. `lose_power` ends a node's life, if that may be, and starts the next."""

    def __init__(
        self,
        machines: Sequence[ClusterMachine],
        network: SimNetwork,
        joins: Joins,
        random: Random,
        lose_power: Callable[[ClusterMachine], Awaitable[None]],
    ) -> None:
        self._machines, self._network, self._joins, self._random = machines, network, joins, random
        self._lose_power = lose_power

    async def stale_join(self, machine: ClusterMachine) -> None:
        """The node must not be that of the active controller."""
        await self._lose_power(machine)
        leader = await self._joins.next_join(machine.number)
        controller = next((each.name for each in self._machines if each.leads), None)
        if leader is None or controller in (None, leader, machine.name):
            return
        assert controller is not None
        self._network.part(leader, controller)
        self._network.part(leader, machine.name)
        await self._lose_power(machine)
        await asyncio.sleep(SPLIT_S)
        self._network.heal(leader, controller)
        await asyncio.sleep(APART_S)
        self._network.heal(leader, machine.name)

    async def lonely_leader(self, machine: ClusterMachine) -> None:
        others = [each.name for each in self._machines if each is not machine]
        for other in others:
            self._network.part(machine.name, other)
        await asyncio.sleep(LONELY_S)
        for other in others:
            self._network.heal(machine.name, other)
