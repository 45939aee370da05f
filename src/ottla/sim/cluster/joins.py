"""Troubles at the moment at which a replica is about to join an ISR, and of leaders whose followers are gone.

- `stale join`: a node loses power and starts again. When a leader proposes it for ISRs, these proposals are delayed, and the
  node loses its power once more. It is registered again, and cannot reach the leader to catch up. Then the proposals are sent:
  the process that they were made for is gone.
- `lonely leader`: a leader of partitions reaches clients, and no other node: it appends what no replica gets, until another
  leads. Then it comes back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context
from typing import TYPE_CHECKING

from ottla.metadata.image.image import MetadataImage
from ottla.sim.cluster.checkers.checker import ClusterChecker, HeldPartition

if TYPE_CHECKING:
    from random import Random

    from ottla.sim.cluster.machine import ClusterMachine
    from ottla.sim.net import SimNetwork

WAIT_S_MAX = 3.0
"""How long a join is waited for."""
REGISTERED_S_MAX = 5.0
"""How long the registration of the next process is waited for: the session of the lost one has to end first."""
APART_S = 0.3
"""How much longer the joining node cannot reach the leader."""
LONELY_S = 2.0
LOOK_S = 0.02


class Joins(ClusterChecker):
    """Tells of proposals to add a replica to an ISR."""

    def __init__(self) -> None:
        self._image = MetadataImage()
        self._waiting: list[tuple[int, Callable[[str], bool], asyncio.Future[str]]] = []
        self.delayed: dict[str, list[tuple[Context, Callable[[], None]]]] = {}
        """Node whose proposals are delayed → how to make each of them, and its process."""

    def image_committed(self, before: MetadataImage, image: MetadataImage) -> None:
        self._image = image

    def broker_epoch(self, broker_id: int) -> int:
        """The epoch of a broker that is registered and not fenced; else -1."""
        broker = self._image.cluster.brokers.get(broker_id)
        return -1 if broker is None or broker.fenced else broker.epoch

    def isr_proposed(self, node: str, held: HeldPartition, isr: tuple[int, ...]) -> None:
        for replica, is_wanted, waiting in self._waiting:
            if replica in isr and replica not in held.isr and not waiting.done() and is_wanted(node):
                waiting.set_result(node)
                self.delayed.setdefault(node, [])

    def release(self, node: str) -> None:
        """Make the delayed proposals of a node."""
        for context, propose in self.delayed.pop(node, ()):
            asyncio.get_running_loop().call_soon(propose, context=context)

    async def next_join(self, replica: int, is_wanted: Callable[[str], bool]) -> str | None:
        """The wanted leader that next proposes this replica; None if none does in time."""
        proposed: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        waiting = (replica, is_wanted, proposed)
        self._waiting.append(waiting)
        try:
            async with asyncio.timeout(WAIT_S_MAX):
                return await proposed
        except TimeoutError:
            return None
        finally:
            self._waiting.remove(waiting)


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
        await self._lose_power(machine)
        # Not the node of the controller: the joining one must reach that, to be registered.
        leader = await self._joins.next_join(
            machine.number, lambda node: not any(each.leads for each in self._machines if each.name == node)
        )
        if leader is None:
            return
        self._network.part(leader, machine.name)
        before = self._joins.broker_epoch(machine.number)
        await self._lose_power(machine)
        try:
            async with asyncio.timeout(REGISTERED_S_MAX):
                while self._joins.broker_epoch(machine.number) <= before:
                    await asyncio.sleep(LOOK_S)
        except TimeoutError:
            pass
        self._joins.release(leader)
        await asyncio.sleep(APART_S)
        self._network.heal(leader, machine.name)

    async def lonely_leader(self, machine: ClusterMachine) -> None:
        others = [each.name for each in self._machines if each is not machine]
        for other in others:
            self._network.part(machine.name, other)
        await asyncio.sleep(LONELY_S)
        for other in others:
            self._network.heal(machine.name, other)
