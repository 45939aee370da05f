"""Runs the lives of the node in a run: ends each as the plan says, with its faults, and starts the next.

After a power loss the clients are kept from the node until everything was audited. The checkers must know what was lost before
a client writes again, because later records may get the offsets of lost ones.
"""

from __future__ import annotations

import asyncio
from random import Random

from ottla.sim.clients.admin import Admin
from ottla.sim.clients.auditor import Auditor
from ottla.sim.clients.client import Client, Stage
from ottla.sim.machine import Machine
from ottla.sim.net import SimNetwork
from ottla.sim.plan import Life, Plan

CRASH_WAIT_S_MAX = 1.0
ENDING_WAIT_S_MAX = 0.3
PARTED_S_MAX = 4.0


class Troubles:
    """Runs the lives of a plan; the last one is left running."""

    def __init__(
        self,
        plan: Plan,
        machine: Machine,
        network: SimNetwork,
        stage: Stage,
        clients: list[Client],
        auditor: Auditor,
        admin: Admin,
    ) -> None:
        self._plan, self._machine, self._network, self._stage = plan, machine, network, stage
        self._clients, self._auditor, self._admin = clients, auditor, admin
        self._random = Random(f"{plan.seed}/troubles")

    async def run(self) -> None:
        for life in self._plan.lives:
            await self._live(life)
            await asyncio.sleep(life.down_s)
            self._stage.is_disk_broken = False
            self._machine.start()
            if self._stage.gate.is_set():
                continue
            await self._machine.wait_up()
            self._check_started()
            await self._auditor.audit([*self._admin.topics, *self._admin.temporary])
            self._stage.gate.set()
        await self._machine.wait_up()
        self._check_started()
        await asyncio.sleep(0.2)

    def _check_started(self) -> None:
        if self._machine.failures:
            raise self._machine.failures[0]

    async def _live(self, life: Life) -> None:
        machine = self._machine
        machine.slowness_s = life.slowness_s
        off_ms = machine.clock.now_ms() - self._stage.now_ms()
        if life.clock_error_ms != off_ms:
            self._stage.trace.note(machine.name, "clock", f"{life.clock_error_ms:+} ms off")
            machine.clock.jump(life.clock_error_ms - off_ms)
            self._stage.checkers.clock_set(life.clock_error_ms / 1000, self._stage.now_s())
        if life.is_parted:
            self._part()
        await asyncio.sleep(life.length_s)
        if life.fault is not None:
            self._stage.is_disk_broken = True
            machine.break_disk(life.fault)
            await asyncio.sleep(life.length_s)
        if life.waits_for_ending:
            await self._wait_for_ending()
        if life.end in ("crash", "power crash"):
            machine.crash_in(life.changes)
            try:
                async with asyncio.timeout(CRASH_WAIT_S_MAX):
                    await machine.wait_ended()
            except TimeoutError:
                pass  # too few changes to the disk: end this life anyway
        if life.end in ("power", "power crash"):
            self._stage.gate.clear()
            machine.lose_power()
            for client in self._clients:
                client.hang_up()
            await asyncio.sleep(0.001)  # let clients process answers that arrived before the loss
            self._stage.checkers.power_lost()
        elif life.end == "stop":
            await machine.stop()
        else:
            machine.kill()

    async def _wait_for_ending(self) -> None:
        """Wait until some transaction is about to end: its EndTxn, the work of the coordinator or the answer is under way."""
        self._stage.ending_sent.clear()
        try:
            async with asyncio.timeout(ENDING_WAIT_S_MAX):
                await self._stage.ending_sent.wait()
        except TimeoutError:
            return
        await asyncio.sleep(self._random.uniform(0, self._random.choice((1, 4)) * self._plan.weather.delay_s_max))

    def _part(self) -> None:
        name = self._random.choice(self._clients).name
        self._stage.trace.note("network", "part", name)
        self._network.part(name, self._machine.name)
        asyncio.get_running_loop().call_later(self._random.uniform(0, PARTED_S_MAX), self._heal, name)

    def _heal(self, name: str) -> None:
        self._stage.trace.note("network", "heal", name)
        self._network.heal(name, self._machine.name)
