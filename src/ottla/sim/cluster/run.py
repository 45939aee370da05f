"""Runs one seed with several nodes: plan, machines, clients, troubles, checks.

The clients and their checkers are those of a run with one node. After the troubles every node must serve again within a bound
of virtual time, the clients must finish what they have begun, and all nodes must have the same metadata.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from random import Random
from typing import Any

from ottla.ids import TopicPartition, Uuid
from ottla.metadata.features import TRANSACTION_VERSION
from ottla.metadata.image.image import MetadataImage
from ottla.registry.records import TOPIC as SCHEMAS_TOPIC
from ottla.sim.checkers.checker import Checker, Checkers, Place, TopicPlan, Violation
from ottla.sim.checkers.logs import InStep, LastingTopics, MonotonicQuorum, NoLoss, Order, RisingWatermarks, UniqueProducerIds
from ottla.sim.clients.admin import Admin
from ottla.sim.clients.auditor import Auditor
from ottla.sim.clients.client import Stage
from ottla.sim.clients.consumer import Consumer
from ottla.sim.clients.producer import Producer
from ottla.sim.clients.registry import Answers, RegistryClient
from ottla.sim.cluster.checkers.checker import ClusterCheckers, HeldPartition, PartitionKey
from ottla.sim.cluster.checkers.partitions import (
    CommittedRecords,
    Coordinators,
    EligibleIsr,
    EqualReplicas,
    PartitionStates,
    Replica,
    SteadyIsr,
)
from ottla.sim.cluster.checkers.quorum import CommittedLog, DurableMajority, Fencing, Images, OneLeader, ProducerBlocks
from ottla.sim.cluster.disks import Safekeeping
from ottla.sim.cluster.machine import METADATA_FOLDER, ClusterFacts, ClusterMachine, Machines, node_name
from ottla.sim.cluster.operator import left_behind
from ottla.sim.cluster.plan import LAG_MAX_MS, NODES, ClusterPlan, make_cluster_plan
from ottla.sim.cluster.troubles import ClusterTroubles, Joins
from ottla.sim.cluster.watch import Watch
from ottla.sim.histories.checks import Report, check
from ottla.sim.histories.history import History, Poll, Send
from ottla.sim.loop import VirtualLoop
from ottla.sim.net import SimNetwork
from ottla.sim.run import TIME_LIMIT_S, Cast, GroupCheckers, Outcome, RunFailed, close_groups
from ottla.sim.trace import Trace, timeline


class RecordedRun(Checker):
    """Knows the topics of a run and which records may be removed. `judge` checks its history."""

    def __init__(self) -> None:
        self._topics: dict[str, list[TopicPlan]] = {}
        self._shrinking: set[TopicPartition] = set()

    def topic_made(self, topic: TopicPlan) -> None:
        self._topics.setdefault(topic.name, []).append(topic)

    def deletion_requested(self, place: Place, offset: int) -> None:
        self._shrinking.add(place.name)

    def judge(self, history: History) -> Report:
        """Check a history in which everything was read in the end; `Violation` with the findings, if there are any."""
        report = check(self._lasting(history), is_read_whole=True, shrinking=self._all_shrinking())
        if report.findings:
            raise Violation("the history of the clients: " + "\n".join(report.lines))
        return report

    def _all_shrinking(self) -> set[TopicPartition]:
        topics = [topic for named in self._topics.values() for topic in named if topic.is_compacted or topic.is_retained]
        return self._shrinking | {TopicPartition(topic.name, number) for topic in topics for number in range(topic.partitions)}

    def _lasting(self, history: History) -> History:
        """The history without topics that were deleted: another topic may have their name and their offsets."""
        gone = {name for name, topics in self._topics.items() if any(topic.is_leaving for topic in topics)}
        lasting = History(history.now_s)
        for event in history.events:
            if isinstance(event, Poll):
                records = [record for record in event.records if record.place.topic not in gone]
                lasting.events.append(
                    Poll(event.process, records, event.at_s, event.group, event.is_committed, event.transaction)
                )
            elif not isinstance(event, Send) or event.place.topic not in gone:
                lasting.events.append(event)
        return lasting


FORMING_S_MAX = 20.0
"""How long a new cluster may take to serve."""
HEALING_S_MAX = 20.0
"""How long it may take, after the troubles, until every node is up, unfenced and has all metadata."""
FINISHING_S_MAX = 60.0
"""How long clients may take after that to finish what they have begun, with transactions that time out."""
LOOK_S = 0.05


def run_cluster_seed(seed: int, nodes: int = NODES, replicas: int = 1, registries: int = 0) -> Outcome:
    """Run one seed to its end; `RunFailed` if an invariant did not hold. With `registries`, as many schema registries register
    schemas all the while.
    """
    loop = VirtualLoop(TIME_LIMIT_S)
    trace = Trace(loop)
    plan = make_cluster_plan(seed, nodes, replicas)
    try:
        counts = loop.run(_run(plan, loop, trace, registries), close_dead=True)
    except Exception as error:
        names = [node_name(number) for number in range(1, plan.nodes_max + 1)]
        raise RunFailed(
            seed, error, trace.lines, _options(nodes, replicas, registries), timeline(trace.lines, names)
        ) from error
    return Outcome(seed, trace.digest(), trace.lines, counts)


def _options(nodes: int, replicas: int, registries: int) -> str:
    more = (f"--replicas {replicas} " if replicas > 1 else "") + (f"--registries {registries} " if registries else "")
    return f"--nodes {nodes} {more}"


async def _run(plan: ClusterPlan, loop: VirtualLoop, trace: Trace, registries: int) -> dict[str, int]:
    return await _Run(plan, loop, trace, registries).run()


class _Run:
    """The state of one run."""

    def __init__(self, plan: ClusterPlan, loop: VirtualLoop, trace: Trace, registries: int) -> None:
        self.plan = plan
        self._registries, self._answers = registries, Answers()
        base, seed = plan.base, plan.seed
        self._loop, self._trace = loop, trace
        self._network = SimNetwork(Random(f"{seed}/network"), base.weather)
        self._fencing, self._blocks = Fencing(), ProducerBlocks()
        self._leaders, self._log = OneLeader(), CommittedLog()
        self._images = Images(self._image_committed)
        self._replicas = EqualReplicas()
        self._durable = DurableMajority(
            lambda: {each.name: each.disk for each in self.machines if each.is_controller}, METADATA_FOLDER
        )
        self._states, self._records = PartitionStates(), CommittedRecords(self._held_by)
        self._steady = SteadyIsr(loop.true_time, LAG_MAX_MS / 1000 / max(plan.rates))
        self._joins, self._safekeeping = Joins(), Safekeeping()
        self._eligible, coordinators = EligibleIsr(), Coordinators(loop.true_time)
        looking_in = [self._fencing, self._blocks, self._states, self._records, self._steady, self._joins, self._safekeeping]
        watch = self._watch = Watch(
            ClusterCheckers([self._leaders, self._log, self._durable, self._images, *looking_in, self._eligible, coordinators]),
            trace,
        )
        watch.delayed = self._joins.delayed
        cluster = ClusterFacts(seed, plan.nodes, plan.is_static, {TRANSACTION_VERSION: base.version.first}, plan.controllers)
        self.machines = Machines(
            ClusterMachine(
                loop, self._network, Random(f"{seed}/machine/{number}"), trace, base.settings, cluster, number, watch
            )
            for number in range(1, plan.nodes + 1)
        )
        for machine, rate in zip(self.machines, plan.rates, strict=True):
            machine.rate = rate
        self._groups = GroupCheckers(base)
        self._recorded, self._report = RecordedRun(), Report([])
        checkers = Checkers(
            [
                NoLoss(),
                Order(),
                InStep(),
                RisingWatermarks(),
                UniqueProducerIds(),
                MonotonicQuorum(),
                LastingTopics(),
                self._records,
                self._recorded,
                *self._groups.all,
            ]
        )
        self.stage = Stage(seed, self._network, trace, checkers, cluster.names, base.version.first)
        self.stage.replication_factor = plan.replication_factor
        self.stage.is_coordinator = coordinators.is_coordinator
        self.stage.serving_shard = self._serving_shard
        self.stage.committed_topic = self._committed_topic
        self.admin = Admin(self.stage, base.admin_pause_s_max, base.scene != "logs", raises_version=base.version.is_raised)
        self.auditor = Auditor(self.stage)
        self._cast = Cast(base, self.stage, self.admin)

    def _image_committed(self, before: MetadataImage, image: MetadataImage) -> None:
        self._watch.checkers.image_committed(before, image)

    def _held_by(self, number: int, key: PartitionKey) -> HeldPartition | None:
        machine = self.machines.by_id(number)
        return None if machine is None else machine.held(key)

    def _serving_shard(self, group: str, number: int) -> object:
        machine = self.machines.by_id(number)
        return None if machine is None else machine.serving_shard(group)

    def _committed_topic(self, name: str) -> Uuid | None:
        topic = self._images.newest.topics.by_name.get(name)
        return None if topic is None else topic.id

    async def run(self) -> dict[str, int]:
        self.stage.gate.set()
        for machine in self.machines:
            machine.start()
        await self._within(FORMING_S_MAX, "the cluster does not serve", self._all_serve())
        await self._within(FORMING_S_MAX, "the topics are not created", self._create_topics())
        self._cast.assemble()
        clients = self._cast.clients
        clients += [RegistryClient(self.stage, f"registry{each}", self._answers) for each in range(self._registries)]
        tasks = [self._loop.create_task(client.run(), name=client.name) for client in clients]
        troubles = ClusterTroubles(
            self.plan,
            self.machines,
            self._network,
            self.stage,
            clients,
            self._joins,
            self._safekeeping,
            lambda: self._log.end_offset,
            lambda: self._images.newest,
        )
        await self._unless_failed(troubles.run(), tasks)
        await self._within(HEALING_S_MAX, "after the troubles", self._all_serve(), tasks)
        self.stage.is_ending = True
        await self._within(FINISHING_S_MAX, "clients have not finished", asyncio.gather(*tasks), tasks)
        await self._within(FINISHING_S_MAX, "the end", self._audit())
        for machine in self.machines:
            await self._unless_failed(machine.stop())
        return self._counts()

    async def _create_topics(self) -> None:
        for topic in self.plan.base.topics:
            self.admin.topics.append(await self.admin.make(topic.name, topic.partitions, dict(topic.configs)))
        if self._registries:
            await self.admin.make(SCHEMAS_TOPIC, 1, {"cleanup.policy": "compact"})

    async def _audit(self) -> None:
        await self.auditor.audit([*self.admin.topics, *self.admin.temporary])
        await self._all_serve()
        await self.auditor.ask_topics()
        await close_groups(self._cast, self.auditor, self.admin)
        await self._all_serve()
        self._watch.tell(self._watch.checkers.ended, {each.name: each.image for each in self.machines})
        by_partition: dict[TopicPartition, dict[str, Replica]] = {}
        for machine in self.machines:
            for partition, replica in machine.replicas().items():
                by_partition.setdefault(partition, {})[machine.name] = replica
        for partition, replicas in by_partition.items():
            self._replicas.replicas_read(partition, replicas)
        self._report = self._recorded.judge(self.stage.history)

    # Waiting

    async def _all_serve(self) -> None:
        """Wait until every node is up and unfenced, knows all committed metadata, and one controller is active."""
        while self._waits_for() is not None:
            await asyncio.sleep(LOOK_S)

    def _waits_for(self) -> str | None:
        """What is missing until all nodes serve."""
        for machine in self.machines:
            if not machine.is_up:
                return f"{machine.name} is not up"
        if not any(machine.leads for machine in self.machines):
            return "no controller is active"
        newest = self._images.newest
        for machine in self.machines:
            if machine.image.provenance.offset != newest.provenance.offset:
                return (
                    f"{machine.name} knows the metadata up to {machine.image.provenance.offset} of {newest.provenance.offset}"
                )
            broker = newest.cluster.brokers.get(machine.number)
            if broker is None or broker.fenced:
                return f"broker {machine.number} is fenced"
            if machine.is_out_of_voters:
                return f"{machine.name} is not a voter"
        for lost in self.machines.lost:
            if any(lost.number in machine.quorum.voters.ids for machine in self.machines):
                return f"{lost.name}, which was lost, is a voter"
            if (missing := left_behind(newest, lost.number)) is not None:
                return missing
        return None

    async def _within(
        self, limit_s: float, what: str, work: Awaitable[Any], tasks: list[asyncio.Task[None]] | None = None
    ) -> None:
        """Await `work`. `Violation` if that takes too long."""
        try:
            async with asyncio.timeout(limit_s):
                await self._unless_failed(work, tasks)
        except TimeoutError:
            waiting = [task.get_name() for task in tasks or () if not task.done()]
            reason = self._waits_for() or (f"these wait: {', '.join(waiting)}" if waiting else "all nodes serve")
            raise Violation(f"{what}: not over within {limit_s:g} s, {reason}") from None

    async def _unless_failed(self, work: Awaitable[Any], tasks: list[asyncio.Task[None]] | None = None) -> None:
        """Await `work`. If a client, a node or a checker fails before, raise that at once."""
        main = asyncio.ensure_future(work)
        try:
            waiting: set[asyncio.Future[Any]] = {main, self._watch.violation, *(tasks or ())}
            while not main.done():
                done, waiting = await asyncio.wait(waiting, timeout=1.0, return_when=asyncio.FIRST_COMPLETED)
                for task in [each for each in (self._watch.violation, main, *(tasks or ())) if each in done]:
                    task.result()
                for machine in self.machines:
                    if machine.failures:
                        raise machine.failures[0]
                if self._loop.failures:
                    raise self._loop.failures[0]
        finally:
            main.cancel()

    def _counts(self) -> dict[str, int]:
        clients = self._cast.clients
        machines = [*self.machines, *self.machines.lost]
        counts = {
            "lives": sum(machine.lives for machine in machines),
            "power losses": sum(machine.power_losses for machine in machines),
            "wipes": sum(machine.wipes for machine in machines),
            **({"replaced": len(self.machines.lost)} if self.machines.lost else {}),
            "epochs": len(self._leaders.leaders),
            "batches": self._log.judged,
            "images": self._images.judged,
            "broker requests": self._fencing.judged,
            "replicas": self._replicas.judged,
            **({"schemas": len(self._answers.versions)} if self._registries else {}),
            "partition states": self._states.judged,
            "committed records": self._records.judged,
            "dropped from ISRs": self._steady.judged,
            "proposed for ISRs": self._eligible.judged,
            "blocks": len(self._blocks.blocks),
            "acknowledged": sum(each.acknowledged for each in clients if isinstance(each, Producer)),
            "consumed": sum(each.read for each in clients if isinstance(each, Consumer)),
            "recorded": self._report.stored,
            "recorded as seen": self._report.seen,
            "recorded transactions": self._report.transactions,
            **self._groups.counts(),
        }
        counts.update(sorted(self._network.counts.items()))
        self._trace.note("run", "end", " ".join(f"{name}={count}" for name, count in counts.items()))
        return counts
