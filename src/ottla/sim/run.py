"""Runs one seed: plan, node, clients, faults, checks.

The seed decides everything: topics and their settings, clients, faults of the network, and how each life of the node ends.
`run_seed` returns the outcome, or raises `RunFailed`, which holds the trace.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from ottla.metadata.features import TRANSACTION_VERSION
from ottla.sim.aging import age
from ottla.sim.cast import Cast
from ottla.sim.checkers.checker import Checkers
from ottla.sim.checkers.flushed_in_time import FlushedInTime
from ottla.sim.checkers.in_step import InStep
from ottla.sim.checkers.no_loss import NoLoss
from ottla.sim.checkers.order import Order
from ottla.sim.checkers.producer_ids import UniqueProducerIds
from ottla.sim.checkers.quorum import MonotonicQuorum
from ottla.sim.checkers.topics import LastingTopics
from ottla.sim.checkers.watermarks import RisingWatermarks
from ottla.sim.clients.admin import Admin
from ottla.sim.clients.app import App
from ottla.sim.clients.auditor import Auditor
from ottla.sim.clients.client import Stage
from ottla.sim.clients.consumer import Consumer
from ottla.sim.clients.group_client import GroupClient
from ottla.sim.clients.member import Reader
from ottla.sim.clients.producer import Producer
from ottla.sim.group_checkers import GroupCheckers
from ottla.sim.loop import VirtualLoop
from ottla.sim.machine import Machine
from ottla.sim.net import SimNetwork
from ottla.sim.plan import Plan, make_plan
from ottla.sim.trace import Trace
from ottla.sim.troubles import Troubles

TIME_LIMIT_S = 900.0


class RunFailed(AssertionError):
    """A run has failed. `trace` lists the events that led to it, `timeline` what happened to the nodes of a cluster."""

    def __init__(
        self, seed: int, cause: BaseException, trace: list[str], options: str = "", timeline: Sequence[str] = ()
    ) -> None:
        replay = f"replay it with: python -m ottla.sim {options}--seed {seed} --trace"
        super().__init__("\n".join([f"seed {seed}: {type(cause).__name__}: {cause}", replay, *timeline]))
        self.seed = seed
        self.trace = trace


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a run in which every invariant held."""

    seed: int
    digest: str
    """The hash of the trace."""
    trace: list[str]
    counts: dict[str, int] = field(default_factory=dict)


def run_seed(seed: int) -> Outcome:
    """Run one seed to its end; `RunFailed` if an invariant did not hold."""
    loop = VirtualLoop(TIME_LIMIT_S)
    trace = Trace(loop)
    try:
        counts = loop.run(_Run(seed, loop, trace).run(), close_dead=True)
    except Exception as error:
        raise RunFailed(seed, error, trace.lines) from error
    return Outcome(seed, trace.digest(), trace.lines, counts)


class _Run:
    """The state of one run."""

    def __init__(self, seed: int, loop: VirtualLoop, trace: Trace) -> None:
        self.plan: Plan = make_plan(seed)
        self._loop, self._trace = loop, trace
        self._network = SimNetwork(Random(f"{seed}/network"), self.plan.weather)
        levels = {TRANSACTION_VERSION: self.plan.version.first}
        self.machine = Machine(loop, self._network, Random(f"{seed}/machine"), trace, self.plan.settings, levels)
        self._no_loss = NoLoss()
        self._flushed = FlushedInTime(loop.time, self.machine.safe_before_s)
        self._groups = GroupCheckers(self.plan)
        checkers = Checkers(
            [
                self._no_loss,
                self._flushed,
                Order(),
                InStep(),
                RisingWatermarks(),
                UniqueProducerIds(),
                MonotonicQuorum(),
                LastingTopics(),
                *self._groups.all,
            ]
        )
        self.stage = Stage(seed, self._network, trace, checkers, (self.machine.name,), self.plan.version.first)
        self.stage.serving_shard = lambda group, node: self.machine.serving_shard(group)
        self.admin = Admin(
            self.stage, self.plan.admin_pause_s_max, self.plan.scene != "logs", raises_version=self.plan.version.is_raised
        )
        self.auditor = Auditor(self.stage)
        self._cast = Cast(self.plan, self.stage, self.admin)

    async def run(self) -> dict[str, int]:
        self.stage.gate.set()
        self.machine.start()
        for topic in self.plan.topics:
            self.admin.topics.append(await self.admin.make(topic.name, topic.partitions, dict(topic.configs)))
        self._cast.assemble()
        clients = self._cast.clients
        for app in self.plan.apps:
            if app.first_epoch:
                await age(self.machine, self._cast.apps()[0], app.name, app.first_epoch)
        tasks = [self._loop.create_task(client.run(), name=client.name) for client in clients]
        troubles = Troubles(self.plan, self.machine, self._network, self.stage, clients, self.auditor, self.admin)
        lives = self._loop.create_task(troubles.run(), name="troubles")
        await self._first_failure_or(lives, tasks)
        self.stage.is_ending = True
        await self._first_failure_or(asyncio.gather(*tasks), tasks)
        await self.auditor.audit([*self.admin.topics, *self.admin.temporary])
        await self.auditor.ask_topics()
        await close_groups(self._cast, self.auditor, self.admin)
        await self.machine.stop()
        if self.machine.failures:
            raise self.machine.failures[0]
        return self._counts()

    async def _first_failure_or(self, work: asyncio.Future[Any], tasks: list[asyncio.Task[None]]) -> None:
        """Wait for `work`. If one of `tasks` fails before that, raise its exception at once."""
        waiting: set[asyncio.Future[Any]] = {work, *tasks}
        while not work.done():
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for task in [each for each in (work, *tasks) if each in done]:
                task.result()
            if self.machine.failures:
                raise self.machine.failures[0]
        work.result()

    def _counts(self) -> dict[str, int]:
        counts = {
            "lives": self.machine.lives,
            "power losses": self.machine.power_losses,
            "acknowledged": sum(each.acknowledged for each in self._cast.clients if isinstance(each, Producer)),
            "consumed": sum(each.read for each in self._cast.clients if isinstance(each, Consumer)),
            "unknown endings": sum(each.unknown_endings for each in self._cast.apps()),
            "lost to power": self._no_loss.records_lost_to_power,
            "kept by flush.ms": self._flushed.judged,
            **self._groups.counts(),
        }
        counts.update(sorted((self._network.counts + self.machine.disk.counts).items()))
        self._trace.note("run", "end", " ".join(f"{name}={count}" for name, count in counts.items()))
        return counts


async def close_groups(cast: Cast, auditor: Auditor, admin: Admin) -> None:
    """Check the final state of groups and transactions."""
    checkers = auditor.stage.checkers
    if cast.apps():
        await auditor.audit_transactions(admin.places())
    groups: dict[str, GroupClient] = {}
    for client in cast.clients:
        if isinstance(client, GroupClient):
            groups.setdefault(client.group, client)
    for client in groups.values():
        places = client.inputs if isinstance(client, App) else admin.places()
        found = await client.fetch_offsets_until_answered(places)
        if isinstance(client, App):
            checkers.app_ended(client.transactional_id, found)
        elif isinstance(client, Reader):
            checkers.reading_ended(client.group, found)
