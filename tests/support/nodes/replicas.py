"""Brokers that replicate one partition, in virtual time, and a small controller that a test or a seed steers.

Logs, partitions, the handlers of Fetch, ListOffsets and Produce, replica fetchers and ISR changes are the real ones. Links are
calls of the other broker's handlers, with delays and cuts. The controller elects leaders from the ISR, and answers
AlterPartition.

async def scenario() -> None:
    async with Replicas.open(Random(1)) as world:
        await world.produce(b"value")
virtual(scenario())
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from random import Random
from typing import Any, cast

from tests.support.logs.batches import make_batch, values_of
from tests.support.nodes.held_partitions import LISTENER, HeldPartitions, only_answer
from tests.support.peers.fetching import bytes_of

from ottla.broker.handlers.data import fetch, list_offsets
from ottla.broker.partitions.partition import Partition
from ottla.broker.replication.replication import Replication
from ottla.broker.requests.context import Handled, Pending, future_of
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import DIRECTORY_UNASSIGNED, Uuid
from ottla.link import LinkEnded
from ottla.log.read import Isolation
from ottla.metadata.image.delta import MetadataDelta
from ottla.metadata.image.image import MetadataImage, Provenance
from ottla.metadata.image.topics import PartitionState
from ottla.wire.apis import APIS
from ottla.wire.base import Message
from ottla.wire.codec import decode_all, encode_bytes
from ottla.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionResponsePartitionData,
    AlterPartitionResponseTopicData,
)
from ottla.wire.messages.metadata_records import (
    BrokerEndpoint,
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)

TOPIC = "t"
TOPIC_ID = Uuid(b"t" * 16)
LAG_MS = 2000
SETTINGS = {"replica.lag.time.max.ms": str(LAG_MS), "replica.fetch.wait.max.ms": "200", "replica.fetch.backoff.ms": "400"}
NODES = (1, 2, 3)


class Node:
    """One broker; `held` has its logs."""

    def __init__(self, world: "Replicas", held: HeldPartitions) -> None:
        self.world = world
        self.held = held
        self.id = held.node_id
        self.epoch = -1
        self.is_up = True
        self.lives = 1
        """Changes when it loses its power, not when it is killed: then others hear nothing of its end."""
        self.is_cut_off = False
        self.is_deaf = False
        """Whether the controller's answers and the metadata do not come, though requests go out."""
        self.died: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.replication = self._replication()
        self.following: asyncio.Task[None] | None = None

    def _replication(self) -> Replication:
        partitions, metadata = self.held.partitions, self.held.metadata
        made = Replication(partitions, metadata, self.held.settings, cast(Any, Loopback(self)), self, lambda: self.epoch)
        self.held.services.replication = made
        return made

    @property
    def partition(self) -> Partition:
        return self.held.partition(TOPIC)

    def start(self) -> None:
        self.replication.start()
        self.following = asyncio.get_running_loop().create_task(self._follow())

    async def _follow(self) -> None:
        """Apply the committed metadata, some time after it was committed."""
        while True:
            await asyncio.sleep(self.world.random.random() * self.world.delay_s)
            records = self.world.records[len(self.held.records) :]
            if records and not self.is_cut_off and not self.is_deaf:
                delta = MetadataDelta(self.held.metadata.image)
                delta.replay_all(records)
                await self.held.commit(*records)
                self.replication.metadata_changed(delta)

    async def call(self, request: Message, timeout_ms: int | None = None) -> AlterPartitionResponse:
        """The controller's channel."""
        assert isinstance(request, AlterPartitionRequest), request
        await self.world.travel(self)
        response = self.world.alter_partition(request)
        await self.world.travel(self)
        if self.is_deaf:
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, "the answer got lost")
        return response

    async def forward(self, request: Any, timeout_ms: int | None = None) -> Any:
        raise AssertionError("brokers forward nothing here")

    async def stop(self, *, silently: bool = False) -> None:
        """End the process; `silently` as by a power loss."""
        self.is_up = False
        if silently:
            self.lives += 1
        else:
            self.died.set_result(None)
        if self.following is not None:
            self.following.cancel()
            await asyncio.gather(self.following, return_exceptions=True)
        await self.replication.stop()

    async def restart(self) -> None:
        """Start again after a kill, with all metadata, and register."""
        await self.held.restart(crash=True, before=self.world.records[len(self.held.records) :])
        self.join()

    def join(self) -> None:
        """Register after a start, and serve."""
        self.is_up, self.died = True, asyncio.get_running_loop().create_future()
        self.replication = self._replication()
        self.world.register(self)
        self.start()


class Loopback:
    """Stands in for `NodeLinks` of one node."""

    def __init__(self, caller: Node) -> None:
        self._caller = caller

    async def connect(self, host: str, port: int, options: object) -> "LoopbackLink":
        link = LoopbackLink(self._caller, host, port)
        await link.travel()
        return link


class LoopbackLink:
    """Stands in for `Link`: calls the handlers of the broker behind a port."""

    def __init__(self, caller: Node, host: str, port: int) -> None:
        self.caller, self.host, self.port = caller, host, port
        self.peer_died = caller.world.nodes[port].died
        self.is_over = False
        self._closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def travel(self) -> None:
        try:
            await self.caller.world.travel(self.caller, self.caller.world.nodes[self.port])
        except KafkaError as cut:
            self.is_over = True
            raise LinkEnded(self.host, str(cut)) from None

    async def request(self, message: Message, timeout_ms: int) -> Any:
        if self.is_over:
            raise LinkEnded(self.host, "the link has ended")
        await self.travel()
        lives = self.caller.world.nodes[self.port].lives
        version = APIS[message.KEY].newest
        received = decode_all(type(message), version, encode_bytes(message, version))
        held = self.caller.world.nodes[self.port].held
        handler: Any = fetch if message.KEY == 1 else list_offsets
        handled: Handled = handler.handle(held.context(message.KEY, version), received)
        if isinstance(handled, Pending):
            answer = future_of(handled)
            await asyncio.wait([answer, self.peer_died, self._closed], return_when=asyncio.FIRST_COMPLETED)
            if self.caller.world.nodes[self.port].lives != lives:
                await self._closed  # it has lost its power, and nothing comes any more
            if self._closed.done() or not answer.done():
                self.is_over = True
                raise LinkEnded(self.host, "the peer was killed, or the link closed")
            handled = answer.result()
        if message.KEY == 1:
            for entry in handled.responses:  # type: ignore[union-attr]
                for data in entry.partitions:
                    data.records = bytes_of(data)
        await self.travel()
        return handled

    def close(self) -> None:
        self.is_over = True
        if not self._closed.done():
            self._closed.set_result(None)


class Replicas:
    """Three brokers with one partition, and their controller."""

    def __init__(self, random: Random, delay_s: float) -> None:
        self.random = random
        self.delay_s = delay_s
        self.records: list[Message] = []
        self._image = MetadataImage()
        self.nodes: dict[int, Node] = {}
        self.acknowledged: dict[int, bytes] = {}
        """Offset → value of the records that were acknowledged with acks=all."""
        self.seen: dict[int, bytes | None] = {}
        """Offset → value of the records that a consumer has read."""

    @classmethod
    @asynccontextmanager
    async def open(
        cls, random: Random, delay_s: float = 0.02, configs: Mapping[str, object] | None = None
    ) -> AsyncIterator["Replicas"]:
        world = cls(random, delay_s)
        try:
            for node_id in NODES:
                held = await HeldPartitions.open(SETTINGS, ("/a",), node_id=node_id)
                held.is_registered = held.partitions.may_lead = False
                world.nodes[node_id] = Node(world, held)
                world.register(world.nodes[node_id])
            world.records += [
                TopicRecord(name=TOPIC, topic_id=TOPIC_ID),
                *(
                    ConfigRecord(resource_type=2, resource_name=TOPIC, name=key, value=str(value))
                    for key, value in ({"min.insync.replicas": 2} | dict(configs or {})).items()
                ),
            ]
            world.add_partition(0)
            for node in world.nodes.values():
                await node.held.commit(*world.records)
                node.start()
            yield world
        finally:
            for node in world.nodes.values():
                if node.is_up:
                    await node.stop()

    async def travel(self, one: Node, other: Node | None = None) -> None:
        """A message goes from one node to another, or to the controller; raises a `KafkaError` if it gets lost."""
        await asyncio.sleep(self.random.random() * self.delay_s)
        for each in (one, other):
            if each is not None and (each.is_cut_off or not each.is_up):
                raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, f"node {each.id} cannot be reached")

    # The controller

    @property
    def image(self) -> MetadataImage:
        if self._image.provenance.offset != len(self.records):
            delta = MetadataDelta(self._image)
            delta.replay_all(self.records[max(self._image.provenance.offset, 0) :])
            self._image = delta.finish(Provenance(len(self.records), 1, 0))
        return self._image

    @property
    def state(self) -> PartitionState:
        return self.image.topics.by_id[TOPIC_ID].partitions[0]

    def register(self, node: Node) -> None:
        """A new process of the node registers: what the one before it led and was in sync with ends."""
        has_partition = any(isinstance(each, PartitionRecord) for each in self.records)
        if has_partition and node.id in self.state.isr:
            self._leave(node)
        node.epoch = len(self.records)
        node.held.partitions.incarnation_id = Uuid(node.epoch.to_bytes(16, "big"))
        endpoint = BrokerEndpoint(name=LISTENER, host="node", port=node.id)
        self.records.append(
            RegisterBrokerRecord(
                broker_id=node.id,
                broker_epoch=node.epoch,
                incarnation_id=node.held.partitions.incarnation_id,
                end_points=[endpoint],
                fenced=False,
            )
        )
        if has_partition and self.state.leader == -1:
            self.elect()

    def fence(self, node: Node) -> None:
        """The session of a broker is over: it leads no more, and is in no ISR that has another member."""
        self.records.append(BrokerRegistrationChangeRecord(broker_id=node.id, broker_epoch=node.epoch, fenced=1))
        self._leave(node)

    def _leave(self, node: Node) -> None:
        state = self.state
        isr = [each for each in state.isr if each != node.id] or list(state.isr)
        leader = -2 if state.leader != node.id else next((each for each in isr if each != node.id), -1)
        self.change(isr=isr, leader=leader)

    def unfence(self, node: Node) -> None:
        """A broker that was cut off sends heartbeats again."""
        self.records.append(BrokerRegistrationChangeRecord(broker_id=node.id, broker_epoch=node.epoch, fenced=-1))
        if self.state.leader == -1:
            self.elect()

    def elect(self) -> None:
        """Elect another member of the ISR that is up, if there is one."""
        image, state = self.image, self.state
        eligible = [each for each in state.isr if image.cluster.brokers[each].is_active]
        if eligible and (len(eligible) > 1 or state.leader == -1):
            self.change(leader=self.random.choice([each for each in eligible if each != state.leader] or eligible))

    def add_partition(self, index: int) -> None:
        self.records.append(
            PartitionRecord(
                partition_id=index,
                topic_id=TOPIC_ID,
                replicas=list(NODES),
                isr=list(NODES),
                leader=1,
                leader_epoch=0,
                partition_epoch=0,
                directories=[DIRECTORY_UNASSIGNED] * len(NODES),
            )
        )

    def configure_brokers(self, **configs: object) -> None:
        """Set dynamic settings of all brokers."""
        for key, value in configs.items():
            name = key.replace("_", ".")
            self.records.append(ConfigRecord(resource_type=4, resource_name="", name=name, value=str(value)))

    def change(self, **changes: Any) -> None:
        self.records.append(PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, **changes))

    def alter_partition(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        brokers, state = self.image.cluster.brokers, self.state
        asked = request.topics[0].partitions[0]
        wanted = {each.broker_id: each.broker_epoch for each in asked.new_isr_with_epochs}
        answer = AlterPartitionResponsePartitionData(partition_index=0)
        if request.broker_epoch != brokers[request.broker_id].epoch:
            raise KafkaError(ErrorCode.STALE_BROKER_EPOCH, "an earlier process asks")
        if asked.leader_epoch != state.leader_epoch or state.leader != request.broker_id:
            answer.error_code = ErrorCode.FENCED_LEADER_EPOCH
        elif asked.partition_epoch != state.partition_epoch:
            answer.error_code = ErrorCode.INVALID_UPDATE_VERSION
        elif any(not brokers[each].is_active or epoch not in (-1, brokers[each].epoch) for each, epoch in wanted.items()):
            answer.error_code = ErrorCode.INELIGIBLE_REPLICA
        else:
            self.change(isr=list(wanted))
            state = self.state
            answer.leader_id, answer.leader_epoch, answer.isr = state.leader, state.leader_epoch, list(state.isr)
            answer.partition_epoch = state.partition_epoch
        topic = AlterPartitionResponseTopicData(topic_id=TOPIC_ID, partitions=[answer])
        return AlterPartitionResponse(topics=[topic])

    # Clients

    async def produce(self, value: bytes, node: int | None = None, timeout_ms: int = 1000) -> int:
        """Send one record with acks=all to the leader, or to `node`; returns the error code."""
        held = self.nodes[self.state.leader if node is None else node].held
        handled = held.produce(TOPIC, 0, make_batch(value), timeout_ms=timeout_ms)
        answer = only_answer(await future_of(handled) if isinstance(handled, Pending) else handled)
        if answer.error_code == ErrorCode.NONE:
            known = self.acknowledged.setdefault(answer.base_offset, value)
            assert known == value, f"offset {answer.base_offset} was acknowledged for {known!r} and for {value!r}"
        return answer.error_code

    def consume(self, node: Node) -> None:
        """Read everything that consumers may see at a node that leads."""
        partition = node.partition
        if partition.is_leading and node.is_up:
            for offset, value in enumerate(values(partition, Isolation.HIGH_WATERMARK)):
                known = self.seen.setdefault(offset, value)
                assert known == value, f"a consumer saw {known!r} and {value!r} at offset {offset}"

    async def settle(self, patience_s: float = 60) -> None:
        """Wait until all nodes that are up are in sync, and all have the same high watermark."""
        deadline_s = asyncio.get_running_loop().time() + patience_s
        while not self.is_settled:
            assert asyncio.get_running_loop().time() < deadline_s, f"{self.state}, {[n.partition for n in self.nodes.values()]}"
            await asyncio.sleep(0.05)

    @property
    def is_settled(self) -> bool:
        up = [node for node in self.nodes.values() if node.is_up]
        logs = [node.partition.log for node in up]
        return (
            sorted(self.state.isr) == sorted(node.id for node in up)
            and all(log.high_watermark == log.log_end_offset == logs[0].log_end_offset for log in logs)
            and all(len(node.held.records) == len(self.records) for node in up)
        )

    def check(self) -> None:
        """All replicas are equal, and hold what was acknowledged and what was seen."""
        logs = [log_of(node.partition) for node in self.nodes.values()]
        assert logs[0] == logs[1] == logs[2]
        held = dict(enumerate(values(self.nodes[1].partition, Isolation.LOG_END)))
        for offset, value in {**self.seen, **self.acknowledged}.items():
            assert held.get(offset) == value, (
                f"{value!r} at offset {offset} was acknowledged or seen; it is {held.get(offset)!r}"
            )


def values(partition: Partition, isolation: Isolation) -> list[bytes | None]:
    """All values up to the reader's bound. Each batch has one record."""
    found = partition.read(partition.log.log_start_offset, 1 << 24, isolation)
    return [] if found.records is None else values_of(found.records.read())


def log_of(partition: Partition) -> bytes:
    """The bytes of the log up to its end: offsets, epochs and checksums are among them."""
    found = partition.read(partition.log.log_start_offset, 1 << 24, Isolation.LOG_END)
    return b"" if found.records is None else bytes(found.records.read())
