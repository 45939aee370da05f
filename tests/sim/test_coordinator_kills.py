"""A coordinator is killed at each step of its load, of a commit and of a transaction's end: every call of its clients ends.

Calls have their default timeouts, far longer than an election and a load take: one that takes half as long has lost its answer.
"""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from random import Random
from typing import Any

import pytest

from ottla.broker.runtime.coordinators import runtime
from ottla.broker.runtime.coordinators.hosted_shard import HostedShard
from ottla.broker.runtime.coordinators.runtime import CoordinatorRuntime
from ottla.broker.runtime.coordinators.transaction_endings import Endings
from ottla.broker.runtime.coordinators.transaction_markers import MarkerWriter
from ottla.broker.runtime.coordinators.transactions import TransactionRuntime
from ottla.client.admin.aio import Admin
from ottla.client.admin.topics import NewTopic
from ottla.client.consumer.asynchronous import Consumer
from ottla.client.producer.asynchronous import Producer
from ottla.client_core.offsets import ConsumerGroupMetadata
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, TopicPartition
from ottla.sim.checkers.checker import Checkers
from ottla.sim.clients.client import Stage
from ottla.sim.clients.group_client import GroupClient
from ottla.sim.cluster.checkers.checker import ClusterCheckers
from ottla.sim.cluster.machine import ClusterFacts, ClusterMachine
from ottla.sim.cluster.plan import QUORUM_SETTINGS
from ottla.sim.cluster.watch import Watch
from ottla.sim.loop import VirtualLoop
from ottla.sim.net import SimNetwork
from ottla.sim.trace import Trace

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

CALL_S_MAX = 25.0
"""Less than request.timeout.ms, half of default.api.timeout.ms and max.block.ms."""
LOAD_S = 0.4
PLACE = TopicPartition("t", 0)
SETTINGS = {
    **QUORUM_SETTINGS,
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "1",
    "replica.lag.time.max.ms": "1500",
}
STEPS: dict[str, tuple[type[Any], str]] = {
    "load begins": (CoordinatorRuntime, "_load"),
    "client is refused during the load": (CoordinatorRuntime, "shard_at"),
    "load is over": (CoordinatorRuntime, "_begin"),
    "request is decided": (HostedShard, "submit"),
    "records are appended": (HostedShard, "_append"),
    "records are committed": (HostedShard, "_settle"),
    "markers are sent": (Endings, "_send"),
    "marker is written": (MarkerWriter, "write"),
    "partition is verified": (TransactionRuntime, "begin_verification"),
}
LOADING = frozenset({"load begins", "client is refused during the load", "load is over"})
"""Steps that come only after another coordinator has gone."""
OF_TRANSACTIONS = frozenset({"markers are sent", "marker is written", "partition is verified"})


class Steps:
    """Says when a node gets to a step."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.wanted: str | None = None
        self.topic = ""
        self.reached: asyncio.Future[int] | None = None
        for step, (owner, method) in STEPS.items():
            patch.setattr(owner, method, self._watched(step, getattr(owner, method)))
        load = runtime.load_shard

        async def load_slowly(*arguments: Any) -> int:
            await asyncio.sleep(LOAD_S / 2)
            count = await load(*arguments)
            await asyncio.sleep(LOAD_S / 2)
            return count

        patch.setattr(runtime, "load_shard", load_slowly)

    def _watched(self, step: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(this: Any, *arguments: Any, **more: Any) -> Any:
            is_due = step == self.wanted
            try:
                return method(this, *arguments, **more)
            except KafkaError as error:
                is_due = is_due and error.code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
                raise
            else:
                is_due = is_due and step != "client is refused during the load"
            finally:
                if is_due and self._topic_of(this) in (self.topic, None):
                    self._is_reached(this)

        return call

    @staticmethod
    def _topic_of(this: Any) -> str | None:
        return this.partition.topic if isinstance(this, HostedShard) else getattr(this, "topic", None)

    def _is_reached(self, this: Any) -> None:
        node_id = this.partition.node_id if isinstance(this, HostedShard) else getattr(this, "_node_id", None)
        if node_id is None:
            node_id = this._partitions.node_id
        if self.reached is not None and not self.reached.done():
            self.reached.set_result(node_id)

    async def reach(self, step: str, topic: str) -> int:
        """Wait until a node gets to a step of the coordinator of `topic`; returns the node."""
        self.wanted, self.topic, self.reached = step, topic, asyncio.get_running_loop().create_future()
        try:
            return await self.reached
        finally:
            self.wanted = None


class World:
    """Three nodes, and clients that go on until `is_over`."""

    def __init__(self, loop: VirtualLoop) -> None:
        self.loop = loop
        network, trace, cluster = SimNetwork(Random(1)), Trace(loop), ClusterFacts(1, 3, False, {})
        watch = Watch(ClusterCheckers([]), trace)
        self.machines = {
            number: ClusterMachine(loop, network, Random(number), trace, SETTINGS, cluster, number, watch)
            for number in (1, 2, 3)
        }
        self._stage = Stage(1, network, trace, Checkers([]), ("n1", "n2", "n3"))
        self._stage.gate.set()
        self.is_over = False
        self.calls: dict[str, int] = {"committer": 0, "app": 0}

    def client(self, make: Callable[..., Any], name: str, **settings: Any) -> Any:
        world = GroupClient(self._stage, name, name).world()
        return make(self._stage.bootstrap_servers, world=world, client_id=name, enable_metrics_push=False, **settings)

    def leader(self, topic: str) -> tuple[int, int]:
        """The leader of an internal topic, and how many of its replicas are in sync, as a node knows it."""
        for machine in self.machines.values():
            if machine.is_up and (known := machine.image.topics.by_name.get(topic)) is not None:
                return known.partitions[0].leader, len(known.partitions[0].isr)
        return -1, 0

    async def until(self, condition: Callable[[], bool], what: str) -> None:
        deadline_s = self.loop.time() + 60
        while not condition():
            assert self.loop.time() < deadline_s, f"waited for {what}"
            await asyncio.sleep(0.02)

    async def until_whole(self) -> None:
        await self.until(
            lambda: (
                all(each.is_up for each in self.machines.values())
                and all(self.leader(topic)[1] == 3 for topic in (OFFSETS_TOPIC, TRANSACTIONS_TOPIC))
            ),
            "all replicas to be in sync",
        )

    async def start(self) -> None:
        for machine in self.machines.values():
            machine.start()
        await self.until(lambda: all(each.is_up for each in self.machines.values()), "all nodes")
        admin = self.client(Admin, "admin")
        (await admin.create_topics([NewTopic("t", 1, 3)])).raise_first()
        await admin.close()

    async def timed(self, who: str, what: str, call: Coroutine[Any, Any, Any]) -> None:
        began_s = self.loop.time()
        await call
        took_s = self.loop.time() - began_s
        assert took_s < CALL_S_MAX, f"{what} took {took_s:.1f} s"
        self.calls[who] += 1

    async def commit(self) -> None:
        consumer: Consumer[bytes, bytes] = self.client(Consumer, "committer", group_id="g", enable_auto_commit=False)
        consumer.assign([PLACE])
        timed, number = partial(self.timed, "committer"), 0
        while not self.is_over:
            number += 1
            await timed("commit", consumer.commit({PLACE: number}))
            found = await consumer.committed([PLACE])
            assert found[PLACE] is not None
            assert found[PLACE].offset == number
            await asyncio.sleep(0.05)
        await consumer.close()

    async def run_transactions(self) -> None:
        producer: Producer[bytes, bytes] = self.client(Producer, "app", transactional_id="app", linger_ms=0)
        timed, number = partial(self.timed, "app"), 0
        await timed("init_transactions", producer.init_transactions())
        while not self.is_over:
            number += 1
            await producer.begin_transaction()
            await producer.send(*PLACE[:1], b"%d" % number, partition=0)
            offsets = producer.send_offsets_to_transaction({PLACE: number}, ConsumerGroupMetadata("app"))
            await timed("send_offsets_to_transaction", offsets)
            await timed("commit_transaction", producer.commit_transaction())
            await asyncio.sleep(0.05)
        await producer.close()


@pytest.mark.parametrize("topic", [OFFSETS_TOPIC, TRANSACTIONS_TOPIC])
def test_every_call_ends_wherever_its_coordinator_is_killed(topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    steps, loop = Steps(monkeypatch), VirtualLoop(3000)

    async def kill_at(world: World, step: str) -> None:
        await world.until_whole()
        reached = asyncio.ensure_future(steps.reach(step, topic))
        if step in LOADING:
            first = world.machines[world.leader(topic)[0]]
            first.kill()
            first.start()
        victim = world.machines[await asyncio.wait_for(reached, 60)]
        victim.kill()
        await asyncio.sleep(0.5)
        victim.start()
        before = dict(world.calls)
        await world.until(lambda: all(world.calls[who] >= before[who] + 4 for who in before), f"calls after: {step}")

    async def scenario() -> None:
        world = World(loop)
        await world.start()
        clients = [asyncio.ensure_future(work) for work in (world.commit(), world.run_transactions())]
        try:
            for step in [each for each in STEPS if topic == TRANSACTIONS_TOPIC or each not in OF_TRANSACTIONS]:
                killing = asyncio.ensure_future(kill_at(world, step))
                await asyncio.wait([killing, *clients], return_when=asyncio.FIRST_COMPLETED)
                for client in clients:
                    if client.done():
                        client.result()
                await killing
        finally:
            world.is_over = True
        await asyncio.wait_for(asyncio.gather(*clients), 120)

    loop.run(scenario(), close_dead=True)
