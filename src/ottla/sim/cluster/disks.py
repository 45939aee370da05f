"""Troubles of disks: `wipe`, a node loses all its files and comes back under its id; `full disk`, it has no space for a while;
`rot`, a record of a closed segment is damaged (`rot.py`), until the disk is replaced or repaired.

Whether a node may be wiped is decided by what the others have:

- of partitions, another replica that could lead (`safekeeping.py`);
- of the metadata log, all that is committed and all that the node itself has, on every other controller: its last fetch may
  still be on the way to the leader, and commit what it had. Each must have a record of the leader's epoch: one that led before
  may be as long with other records. With static voters a wiped node votes under its old key, and does
  not remember its votes: all controllers must know the leader of the same epoch, so that none stands in it.

A node is wiped only while all controllers are voters. Two lost voters of three would end the quorum, as in Kafka.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from random import Random
from typing import TYPE_CHECKING

from ottla.sim.clients.consumer import Consumer
from ottla.sim.cluster.rot import cold_batches, rot

if TYPE_CHECKING:
    from ottla.sim.clients.client import Client, Stage
    from ottla.sim.cluster.machine import ClusterMachine
    from ottla.sim.cluster.safekeeping import Safekeeping

WAIT_S_MAX = 6.0
"""How long the others may take until they have everything."""
REJOIN_S_MAX = 15.0
COLD_S_MAX = 4.0
"""How long a closed segment is waited for."""
LOOK_S = 0.05


class DiskTroubles:
    """Carries them out on `machines`. `committed_end` gives the end of the committed metadata log; `may_end` notes an end."""

    def __init__(
        self,
        machines: Sequence[ClusterMachine],
        stage: Stage,
        safekeeping: Safekeeping,
        committed_end: Callable[[], int],
        may_end: Callable[..., bool],
        quorum_turn: asyncio.Lock | None = None,
        clients: Sequence[Client] = (),
    ) -> None:
        self._machines, self._stage, self._safekeeping, self._clients = machines, stage, safekeeping, clients
        self._committed_end, self._may_end = committed_end, may_end
        self._random = Random(f"{stage.seed}/disks")
        self._quorum_turn = quorum_turn or asyncio.Lock()
        """Held while a controller is not a voter."""

    async def wipe(self, machine: ClusterMachine, down_s: float) -> None:
        async with self._quorum_turn:
            async with machine.turn:
                if not await self._replace(machine, down_s):
                    return
            await self._rejoined(machine)

    async def _replace(self, machine: ClusterMachine, down_s: float) -> bool:
        """Wipe and start a node, if the others have everything. Returns whether it was done."""
        if not await soon(lambda: self.may_lose(machine), WAIT_S_MAX):
            self._stage.trace.note(machine.name, "spared", "wipe: the others have not all that it has")
            return False
        self._may_end("wipe", machine)
        machine.wipe()
        await asyncio.sleep(down_s)
        machine.start()
        return True

    async def _rejoined(self, machine: ClusterMachine) -> None:
        if not await soon(self._all_vote, REJOIN_S_MAX):
            self._stage.trace.note(machine.name, "no voter", f"{REJOIN_S_MAX:g} s after it was wiped")

    def may_lose(self, machine: ClusterMachine) -> bool:
        """Whether a node may lose all that it has now: it is there, and the others have it, too."""
        return not machine.is_lost and self._all_vote() and self._is_kept_by_others(machine)

    def _is_kept_by_others(self, machine: ClusterMachine) -> bool:
        controllers = [each for each in self._machines if each.is_controller]
        if len({each.quorum.epoch for each in controllers}) > 1 or not all(each.quorum.has_leader for each in controllers):
            return False
        if any(each.quorum.log.last_epoch != each.quorum.epoch for each in controllers):
            return False  # the records that it has may be others than the leader's
        end = max(self._committed_end(), machine.quorum.synced_offset if machine.is_controller else 0)
        kept = all(each.quorum.synced_offset >= end for each in controllers if each is not machine)
        return kept and self._safekeeping.may_end({machine.number}, loses_writes=True)

    def _all_vote(self) -> bool:
        return all(each.is_up and not each.is_out_of_voters for each in self._machines)

    async def rot(self, machine: ClusterMachine, length_s: float) -> None:
        async with self._quorum_turn:
            async with machine.turn:
                if not await soon(lambda: any(True for _ in cold_batches(machine)), COLD_S_MAX):
                    return
                batches = list(cold_batches(machine))
                batch = self._random.choice([each for each in batches if each.is_led] or batches)
                self._stage.has_rot = True
                repair = rot(machine, batch, self._random)
                self._stage.trace.note(machine.name, "rot", batch.path)
                for client in self._clients:
                    if isinstance(client, Consumer):
                        client.rewind()
                await asyncio.sleep(length_s)
                if self._random.random() < 0.5 or not await self._replace(machine, down_s=0.5):
                    self._stage.trace.note(machine.name, "repaired", batch.path)
                    repair()
            await self._rejoined(machine)

    async def full(self, machine: ClusterMachine, length_s: float) -> None:
        async with machine.turn:
            if not self._may_end("kill", machine):  # it stops by itself as soon as it cannot write
                return
            self._stage.is_disk_broken = True
            machine.fill_disk()
            await asyncio.sleep(length_s)
            machine.kill()
            machine.start()


async def soon(condition: Callable[[], bool], limit_s: float) -> bool:
    """Wait until `condition` holds. Returns whether it does within `limit_s`."""
    loop = asyncio.get_running_loop()
    until_s = loop.time() + limit_s
    while not condition():
        if loop.time() >= until_s:
            return False
        await asyncio.sleep(LOOK_S)
    return True
