"""Carries out the troubles of a plan: kills, pauses, cuts and slow disks of nodes that overlap in time, until all are over.

- `kill`, `crash`, `power`, `power crash`: a life ends, at some time or in the middle of a change to the disk, with or without
  the loss of unsynced writes; `stop`: a clean shutdown. The node is started again. `kill all` ends all lives at once.
- `pause`: the process stops and goes on later.
- `cut off`: no other host can be reached; `deaf`: nothing arrives; `mute`: nothing leaves; `split`: two nodes cannot reach each
  other; `client`: a client cannot reach a node.
- `storm`: packets are lost and connections are reset, everywhere. `slow disk`, `clock`: of one node.
- `stale join`, `lonely leader`: see `JoinTroubles`. `wipe`, `full disk`, `rot`: see `disks.py`. `voter change`,
  `replace`: see `operator.py`.

Where acknowledged records need not be synced, `Safekeeping` decides whether a node may end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context
from dataclasses import replace
from random import Random

from ottla.metadata.image.image import MetadataImage
from ottla.sim.clients.client import Client, Stage
from ottla.sim.cluster.checkers.checker import ClusterChecker, HeldPartition
from ottla.sim.cluster.disks import DiskTroubles, Safekeeping
from ottla.sim.cluster.machine import ClusterMachine, Machines
from ottla.sim.cluster.operator import Committed, Operator, Replacements, VoterTroubles
from ottla.sim.cluster.plan import LOSES_POWER, ClusterPlan, Trouble
from ottla.sim.net import SimNetwork
from ottla.sim.plan import CLOCK_ERRORS_MS

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
    """Troubles at the moment at which a replica is about to join an ISR, and of leaders whose followers are gone.

    - `stale join`: a node loses power and starts again. When a leader proposes it for ISRs, these proposals are delayed, and
      the node loses its power once more. It is registered again, and cannot reach the leader to catch up. Then the proposals
      are sent: the process that they were made for is gone.
    - `lonely leader`: a leader of partitions reaches clients, and no other node: it appends what no replica gets, until another
      leads. Then it comes back.

    Carries them out on `machines`. `lose_power` ends a node's life, if that may be, and starts the next.
    """

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


CRASH_WAIT_S_MAX = 1.0
SLOWNESS_S = 0.1
LOSES_FILES = ("wipe", "replace")


class ClusterTroubles:
    """The troubles of one run."""

    def __init__(
        self,
        plan: ClusterPlan,
        machines: Machines,
        network: SimNetwork,
        stage: Stage,
        clients: Sequence[Client],
        joins: Joins | None = None,
        safekeeping: Safekeeping | None = None,
        committed_end: Callable[[], int] = int,
        committed: Committed = MetadataImage,
    ) -> None:
        self._plan, self._machines, self._network, self._stage = plan, machines, network, stage
        self._clients = clients
        self._random = Random(f"{plan.seed}/troubles")
        self._safekeeping = safekeeping or Safekeeping()
        self._joins = JoinTroubles(machines, network, joins or Joins(), self._random, self._lose_power)
        quorum_turn = asyncio.Lock()
        self._disks = DiskTroubles(machines, stage, self._safekeeping, committed_end, self._may_end, quorum_turn, clients)
        operator = Operator(stage)
        self._voters = VoterTroubles(machines, operator, quorum_turn)
        self._replacements = Replacements(machines, operator, committed, self._disks.may_lose, self._may_end, quorum_turn)

    async def run(self) -> None:
        """Return when all troubles are over and every node has been started again. They may not be up yet."""
        await asyncio.gather(*(self._carry_out(trouble) for trouble in self._plan.troubles))
        self._network.heal()
        self._network.weather = self._plan.base.weather
        for machine in self._machines:
            machine.resume()
            self._revive(machine)
        self._stage.is_disk_broken = False
        self._stage.trace.note("troubles", "over")

    async def _carry_out(self, trouble: Trouble) -> None:
        await asyncio.sleep(trouble.at_s)
        leading = [machine for machine in self._machines if machine.leads]
        machine = leading[-1] if trouble.is_aimed and leading else self._machines[trouble.node]
        if trouble.kind in ("cut off", "deaf", "mute", "split", "client"):
            await self._cut(trouble, machine)
        elif trouble.kind == "storm":
            await self._storm(trouble)
        elif trouble.kind == "kill all":
            await self._end_all(trouble)
        elif trouble.kind == "stale join":
            self._stage.trace.note(machine.name, trouble.kind)
            await self._joins.stale_join(machine)
        elif trouble.kind == "wipe":
            await self._disks.wipe(machine, trouble.length_s)
        elif trouble.kind == "rot":
            await self._disks.rot(machine, trouble.length_s)
        elif trouble.kind == "voter change":
            await self._voters.change(machine, trouble.length_s)
        elif trouble.kind == "replace":
            await self._replacements.replace(machine, trouble.length_s)
        elif trouble.kind == "full disk":
            await self._disks.full(machine, trouble.length_s)
        elif trouble.kind == "lonely leader":
            self._stage.trace.note(machine.name, trouble.kind)
            await self._joins.lonely_leader(machine)
        else:
            async with machine.turn:
                await self._trouble_one(trouble, machine)

    # Processes

    async def _trouble_one(self, trouble: Trouble, machine: ClusterMachine) -> None:
        if trouble.kind == "pause":
            machine.pause()
            await asyncio.sleep(trouble.length_s)
            machine.resume()
        elif trouble.kind == "slow disk":
            self._stage.trace.note(machine.name, "slow disk")
            before_s, machine.slowness_s = machine.slowness_s, SLOWNESS_S
            await asyncio.sleep(trouble.length_s)
            machine.slowness_s = before_s
        elif trouble.kind == "clock":
            error_ms = self._random.choice(CLOCK_ERRORS_MS)
            self._stage.trace.note(machine.name, "clock", f"{error_ms:+} ms off")
            machine.clock.jump(error_ms - (machine.clock.now_ms() - self._stage.now_ms()))
        else:
            await self._end(trouble, machine)
            await asyncio.sleep(trouble.length_s)
            self._revive(machine)

    async def _lose_power(self, machine: ClusterMachine) -> None:
        async with machine.turn:
            if self._may_end("power", machine):
                machine.lose_power()
                self._revive(machine)

    def _may_end(self, kind: str, *machines: ClusterMachine) -> bool:
        """Whether these may end now, and takes account of it. A machine that is lost has ended."""
        if any(machine.is_lost for machine in machines):
            return False
        is_flushed = self._plan.base.is_flushed
        if self._plan.replication_factor == 1 or (is_flushed and not self._plan.has_wipes):
            return True
        loses_writes = kind in LOSES_FILES or (kind in LOSES_POWER and not is_flushed)
        if not self._safekeeping.may_end({machine.number for machine in machines}, loses_writes):
            self._stage.trace.note(machines[0].name, "spared", f"{kind}: acknowledged records could be lost")
            return False
        for machine in machines if kind != "stop" else ():
            self._safekeeping.note_end(machine.number, loses_writes)
            if loses_writes:
                machine.tell_writes_lost()
        return True

    async def _end(self, trouble: Trouble, machine: ClusterMachine) -> None:
        if not self._may_end(trouble.kind, machine):
            return
        if trouble.kind in ("crash", "power crash") and machine.is_alive:
            machine.crash_in(trouble.changes)
            try:
                async with asyncio.timeout(CRASH_WAIT_S_MAX):
                    await machine.wait_ended()
            except TimeoutError:
                pass  # too few changes to the disk: end this life anyway
        if trouble.kind in ("power", "power crash"):
            machine.lose_power()
        elif trouble.kind == "stop":
            with self._safekeeping.stopping(machine.number):
                await machine.stop()
        else:
            machine.kill()

    async def _end_all(self, trouble: Trouble) -> None:
        if not self._may_end(trouble.kind, *self._machines):
            return
        for machine in self._machines:
            machine.kill()
        await asyncio.sleep(trouble.length_s)
        for machine in self._machines:
            async with machine.turn:
                self._revive(machine)

    def _revive(self, machine: ClusterMachine) -> None:
        if not machine.is_alive and not machine.failures and not machine.is_lost:
            machine.start()

    # The network

    async def _cut(self, trouble: Trouble, machine: ClusterMachine) -> None:
        name, names = machine.name, [each.name for each in self._machines if each is not machine]
        others = names + [client.name for client in self._clients]
        if trouble.kind in ("split", "client"):
            others = [self._random.choice(names if trouble.kind == "split" else others[len(names) :])]
        self._stage.trace.note(name, trouble.kind, others[0] if len(others) == 1 else "")
        for other in others:
            if trouble.kind == "deaf":
                self._network.part_one_way(other, name)
            elif trouble.kind == "mute":
                self._network.part_one_way(name, other)
            else:
                self._network.part(name, other)
        await asyncio.sleep(trouble.length_s)
        self._stage.trace.note(name, "healed", trouble.kind)
        for other in others:
            self._network.heal(name, other)

    async def _storm(self, trouble: Trouble) -> None:
        self._stage.trace.note("network", "storm")
        self._network.weather = replace(self._network.weather, loss_chance=0.05, cut_chance=0.005)
        await asyncio.sleep(trouble.length_s)
        self._stage.trace.note("network", "calm")
        self._network.weather = self._plan.base.weather
