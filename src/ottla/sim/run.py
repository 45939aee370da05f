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

from ottla.broker.node import Node
from ottla.broker.runtime.coordinators.transactions import NoProducerId
from ottla.coordinator.contract import Effects, Instant, Reply
from ottla.coordinator.transactions.shard import TransactionShard
from ottla.coordinator.transactions.transaction import Transaction, TransactionState
from ottla.errors import KafkaError
from ottla.metadata.features import TRANSACTION_VERSION
from ottla.sim.checkers.checker import Checker, Checkers, Place, TopicPlan
from ottla.sim.checkers.groups import CommittedOffsets, Generations, MemberEpochs
from ottla.sim.checkers.logs import (
    FlushedInTime,
    InStep,
    LastingTopics,
    MonotonicQuorum,
    NoLoss,
    NothingSkipped,
    Order,
    RisingWatermarks,
    UniqueProducerIds,
)
from ottla.sim.checkers.transactions import AtomicTransactions, ExactlyOnce, ProducerEpochs, TimelyEndings
from ottla.sim.clients.admin import Admin
from ottla.sim.clients.app import App
from ottla.sim.clients.auditor import Auditor
from ottla.sim.clients.client import BACKOFF_S_MAX, Client, LinkError, Stage
from ottla.sim.clients.consumer import Consumer
from ottla.sim.clients.group_client import TRANSACTION, Cleaner, GroupClient
from ottla.sim.clients.member import SESSION_TIMEOUT_MS, Committer, Member, ReadingMember
from ottla.sim.clients.producer import Producer
from ottla.sim.loop import VirtualLoop
from ottla.sim.machine import Machine
from ottla.sim.net import SimNetwork
from ottla.sim.plan import ABORT_INTERVAL_MS, CLOCK_ERRORS_MS, OFFSETS_RETENTION_S, GroupPlan, Life, Plan, make_plan
from ottla.sim.trace import Trace

SLACK_S = 2.0
"""The time to write markers on a slow disk."""


class GroupCheckers:
    """The checkers of groups and transactions of one run."""

    def __init__(self, plan: Plan) -> None:
        clocks_ms = max(CLOCK_ERRORS_MS) - min(CLOCK_ERRORS_MS)
        bound_s = (plan.transaction_timeout_ms_max + ABORT_INTERVAL_MS + clocks_ms) / 1000 + SLACK_S
        self._offsets = CommittedOffsets(plan.is_flushed, OFFSETS_RETENTION_S if plan.has_expiring_offsets else None)
        self._generations = Generations(plan.is_flushed, SESSION_TIMEOUT_MS / 1000 if plan.has_expiring_offsets else None)
        self._members = MemberEpochs(plan.is_flushed, SESSION_TIMEOUT_MS / 1000)
        self._transactions = AtomicTransactions()
        self._once = ExactlyOnce()
        self._skipped = NothingSkipped(plan.is_flushed)
        self._producers = ProducerEpochs([app.name for app in plan.apps if app.may_change_producer])
        self.all: list[Checker] = [
            self._offsets,
            self._generations,
            self._members,
            self._transactions,
            self._once,
            self._skipped,
            self._producers,
            TimelyEndings(bound_s),
        ]

    def counts(self) -> dict[str, int]:
        """How much each has checked."""
        return {
            "offsets": self._offsets.judged,
            "offsets gone": self._offsets.missed,
            "offsets excused": self._offsets.excused,
            "generations": self._generations.judged,
            "handovers": self._members.handovers,
            "transactions": self._transactions.judged,
            "once": self._once.judged,
            "committed": self._skipped.judged,
            "producers": self._producers.judged,
            "other producers": self._producers.changes,
        }


class Cast:
    """All clients of a run except the auditor."""

    def __init__(self, plan: Plan, stage: Stage, admin: Admin) -> None:
        self._plan, self._stage, self._admin = plan, stage, admin
        self.clients: list[Client] = [admin]
        self._offered: dict[str, None] = {}

    def assemble(self) -> None:
        """Create the clients. The topics of the plan must exist."""
        places = self._admin.places()
        written = [place for place in places if place.topic is self._admin.topics[0]] if self._plan.apps else places
        for index, producer in enumerate(self._plan.producers):
            chosen = Random(f"{self._plan.seed}/places/{index}").sample(written, min(len(written), 3))
            self.clients.append(Producer(self._stage, f"p{index}", producer, chosen))
        self._admin.on_made = self._offer
        for index, consumer in enumerate(self._plan.consumers):
            self.clients.append(Consumer(self._stage, f"c{index}", consumer, places))
        for group in self._plan.groups:
            self.clients += self._members(group)
        self._make_apps(written, [place for place in places if place not in written])

    def apps(self) -> list[App]:
        return [client for client in self.clients if isinstance(client, App)]

    def _members(self, group: GroupPlan) -> list[Client]:
        stage, admin = self._stage, self._admin
        made: list[Client] = []
        for index, instance in enumerate(group.instances):
            name = f"{group.name}.{index}"
            if group.protocol == "simple":
                made.append(Committer(stage, name, group.name, lambda: admin.topics))
            else:
                is_classic, is_mixed = group.speaks_classic(index), group.protocol == "mixed"
                kind = ReadingMember if group.is_reading else Member
                made.append(
                    kind(stage, name, group.name, instance, lambda: admin.topics, is_classic=is_classic, is_mixed=is_mixed)
                )
        if group.is_cleaned:
            cleaner = Cleaner(stage, group.name, admin.places, has_members=group.protocol != "simple")
            cleaner.reports_offsets = not group.is_reading
            made.append(cleaner)
        return made

    def _make_apps(self, inputs: list[Place], outputs: list[Place]) -> None:
        for app in self._plan.apps:
            for index, version in enumerate(app.instances):
                self.clients.append(
                    App(self._stage, f"{app.name}.{index}", app, version, inputs if app.is_transforming else [], outputs)
                )

    def _offer(self, topic: TopicPlan) -> None:
        """A temporary topic was created. Producers write to it until it is deleted, but only to the first of its name.

        They may still hold records for a deleted topic when another gets its name, and then write them there.
        """
        if topic.name in self._offered:
            return
        self._offered[topic.name] = None
        for client in self.clients:
            if isinstance(client, Producer):
                client.add_places([Place(topic, index) for index in range(topic.partitions)])


RETRY_S = 0.05


async def age(machine: Machine, client: GroupClient, transactional_id: str, epoch: int) -> None:
    """Sets the producer epoch of a transactional id close to its maximum, so that a run reaches the end of the epochs.

    This is the only change in a run that does not come over the wire: 32,000 InitProducerId requests would take too long. It is
    still a decision of the coordinator, with a record in its log that every later life replays.

    Give an unused transactional id a producer in `epoch`. `client` first has the coordinator's topic created.
    """
    while True:
        try:
            await client.find_coordinator(TRANSACTION, transactional_id)
            break
        except LinkError:
            await client.pause(BACKOFF_S_MAX)
    await machine.within(lambda node: _age(node, transactional_id, epoch))
    client.note("aged", f"{transactional_id} epoch {epoch}")


async def _age(node: Node, transactional_id: str, epoch: int) -> None:
    def decide(shard: TransactionShard, reply: Reply, now: Instant) -> Effects:
        aged = Transaction(transactional_id, shard.table.new_producer_id(), epoch, TransactionState.EMPTY, timeout_ms=1_000)
        return Effects.answer(reply, None, [shard.table.record(aged._replace(update_ms=now.wall_ms))])

    transactions = node.services.coordinators.transactions
    while True:
        try:
            await transactions.call(transactional_id, decide)
            return
        except NoProducerId:
            await transactions.wait_for_producer_id()
        except KafkaError:
            await asyncio.sleep(RETRY_S)  # the coordinator is still loading


CRASH_WAIT_S_MAX = 1.0
ENDING_WAIT_S_MAX = 0.3
PARTED_S_MAX = 4.0


class Troubles:
    """Runs the lives of the node in a run: ends each as the plan says, with its faults, and starts the next.

    After a power loss the clients are kept from the node until everything was audited. The checkers must know what was lost
    before a client writes again, because later records may get the offsets of lost ones.

    Runs the lives of a plan; the last one is left running.
    """

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
        elif isinstance(client, ReadingMember):
            checkers.reading_ended(client.group, found)
