"""The partitions of one node on a simulated disk, in virtual time, following metadata that a test writes record by record.

async def scenario() -> None:
    held = await HeldPartitions.open()
    await held.make_topic("t", 2)
    held.produce("t", 0, make_batch(b"value"))
virtual(scenario())
"""

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from random import Random
from types import SimpleNamespace
from typing import Any, TypeVar

from tests.support.logs.batches import T0
from tests.support.logs.log_directories import uuids

from ottla.broker.fetch_sessions import FetchSessions
from ottla.broker.handlers.data import fetch, produce
from ottla.broker.metadata_cache import MetadataCache
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.requests.context import ConnectionInfo, Handled, Pending, RequestContext, future_of
from ottla.broker.requests.scheduler import Scheduler
from ottla.broker.requests.throttle import Throttling
from ottla.broker.settings import BrokerSettings
from ottla.env import World
from ottla.ids import DIRECTORY_UNASSIGNED, Uuid
from ottla.log.compaction.compactor import Compactor
from ottla.log.directories.log_directory import DirectoryWorld
from ottla.log.directories.meta_properties import MetaProperties, write_meta_properties
from ottla.log.directories.startup import open_all
from ottla.metadata.image.delta import MetadataDelta
from ottla.metadata.image.image import Provenance, ResourceType
from ottla.sim.disk import Fault, MemoryDisk
from ottla.sim.loop import VirtualLoop
from ottla.sim.world import InPlaceHelpers, LoopClock, SeededRandomness
from ottla.wire.base import Message
from ottla.wire.messages.metadata_records import (
    ConfigRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from ottla.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

T = TypeVar("T")
NODE = 1
LISTENER = "PLAINTEXT"
PATHS = ("/a", "/b")


def virtual(work: Coroutine[Any, Any, T]) -> T:
    """Run in virtual time."""
    return VirtualLoop().run(work)


class HeldPartitions:
    """A node with its log directories. Get it from `open`; `restart` closes it, or lets it crash, and opens it again."""

    def __init__(self, disk: MemoryDisk, settings: Mapping[str, str], paths: tuple[str, ...], node_id: int = NODE) -> None:
        self.disk = disk
        self.node_id = node_id
        self.paths = paths
        self.static = {
            "node.id": str(node_id),
            "process.roles": "broker,controller",
            "controller.listener.names": "CONTROLLER",
            "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
            "controller.quorum.bootstrap.servers": "localhost:9093",
            "log.dirs": ",".join(paths),
            **settings,
        }
        self.metadata = MetadataCache()
        self.records: list[Message] = []
        """All metadata records so far, which a restart reads again."""
        self.is_registered = True
        """Whether the partitions may lead at once; else when `records` have the registration of their incarnation."""
        self.stopped: list[str] = []
        self.new_uuid = uuids()
        self._committing = asyncio.Lock()

    @classmethod
    async def open(
        cls,
        settings: Mapping[str, str] | None = None,
        paths: tuple[str, ...] = PATHS,
        follow: bool = True,
        node_id: int = NODE,
    ) -> "HeldPartitions":
        clock = LoopClock(asyncio.get_running_loop(), T0)
        held = cls(MemoryDisk(clock=clock), settings or {}, paths, node_id)
        for path in paths:
            held.disk.make_directory(path)
            await held.disk.sync_directory("/")
            await write_meta_properties(held.disk, path, MetaProperties("c", node_id, held.new_uuid()), T0)
        await held._start()
        if follow:
            await held.commit()
        return held

    async def _start(self) -> None:
        self.clock = LoopClock(asyncio.get_running_loop(), T0)
        self.settings = BrokerSettings(self.static)
        config = self.settings.current.log
        compactor = Compactor(self.disk, self.clock, InPlaceHelpers(self.disk, self.clock))
        self.directories = await open_all(
            DirectoryWorld(self.disk, self.clock, self.new_uuid),
            config,
            lambda topic: self.settings.topic_config(topic),
            node_id=self.node_id,
            compactor=compactor,
        )
        randomness = SeededRandomness(Random(1))
        network: Any = None
        world = World(self.disk, self.clock, network, randomness, None)
        self.partitions = Partitions(self.node_id, world, self.settings, self.directories, self.metadata)
        self.partitions.may_lead = self.is_registered
        self.partitions.on_must_stop = self.stopped.append
        self.sessions = FetchSessions(self.clock, randomness, self.settings)
        self.services: Any = SimpleNamespace(
            node_id=self.node_id,
            world=world,
            settings=self.settings,
            metadata=self.metadata,
            directories=self.directories,
            partitions=self.partitions,
            fetch_sessions=self.sessions,
            scheduler=Scheduler(),
            throttling=Throttling(),
        )

    async def restart(
        self, crash: bool = False, power_loss: bool = False, before: Sequence[Message] = (), faults: Sequence[Fault] = ()
    ) -> None:
        """Stop and start again. `before`: records committed while the node was down, `faults`: what failed in that time."""
        await self.partitions.stop()
        if crash or power_loss:
            self.disk = self.disk.crash(power_loss)
        else:
            await self.directories.close()
        self.disk.faults += faults
        self.metadata.image = MetadataCache().image
        records, self.records = self.records, []
        await self._start()
        await self.commit(*records, *before)

    # The cluster

    async def commit(self, *records: Message) -> None:
        """Let the node follow `records`, after those that it follows already."""
        async with self._committing:
            await self._commit(records)

    async def _commit(self, records: Sequence[Message]) -> None:
        delta = MetadataDelta(self.metadata.image)
        delta.replay_all(records)
        self.records += records
        image = delta.finish(Provenance(len(self.records), 1, T0))
        self.settings.apply(delta, image)
        await self.partitions.apply(delta, image)
        self.metadata.image = image
        if hasattr(self.services, "moves"):
            self.services.moves.metadata_changed()

    async def make_topic(
        self,
        name: str,
        partitions: int = 1,
        configs: Mapping[str, object] | None = None,
        replicas: tuple[int, ...] = (NODE,),
        leader: int | None = None,
    ) -> Uuid:
        topic_id = self.new_uuid()
        settings = [
            ConfigRecord(resource_type=ResourceType.TOPIC, resource_name=name, name=key, value=str(value))
            for key, value in (configs or {}).items()
        ]
        records = [
            PartitionRecord(
                partition_id=index,
                topic_id=topic_id,
                replicas=list(replicas),
                isr=list(replicas),
                leader=replicas[0] if leader is None else leader,
                leader_epoch=0,
                partition_epoch=0,
                directories=[DIRECTORY_UNASSIGNED] * len(replicas),
            )
            for index in range(partitions)
        ]
        await self.commit(TopicRecord(name=name, topic_id=topic_id), *settings, *records)
        return topic_id

    async def delete_topic(self, name: str) -> None:
        await self.commit(RemoveTopicRecord(topic_id=self.metadata.image.topics.by_name[name].id))

    async def change(self, topic: str, index: int, **changes: Any) -> None:
        topic_id = self.metadata.image.topics.by_name[topic].id
        await self.commit(PartitionChangeRecord(partition_id=index, topic_id=topic_id, **changes))

    async def configure(self, topic: str, **configs: object) -> None:
        await self.commit(
            *(
                ConfigRecord(
                    resource_type=ResourceType.TOPIC, resource_name=topic, name=key.replace("_", "."), value=str(value)
                )
                for key, value in configs.items()
            )
        )

    # Requests

    def partition(self, topic: str, index: int = 0) -> Partition:
        found = self.partitions.find(topic, index)
        assert found is not None, f"{topic}-{index} is not here"
        return found

    def context(self, api_key: int, version: int) -> RequestContext:
        connection = ConnectionInfo(1, LISTENER, ("127.0.0.1", 50000))
        return RequestContext(self.services, connection, api_key, version, 1, "test", 0.0)

    def produce(
        self, topic: str | Uuid, index: int, records: bytes | bytearray | None, acks: int = -1, version: int = 12, **more: Any
    ) -> Handled:
        """The handler's result for one batch."""
        view = None if records is None else memoryview(bytearray(records))
        data = TopicProduceData(partition_data=[PartitionProduceData(index=index, records=view)])
        if isinstance(topic, str):
            data.name = topic
        else:
            data.topic_id = topic
        more = {"timeout_ms": 1000} | more
        return produce.handle(self.context(0, version), ProduceRequest(acks=acks, topic_data=[data], **more))

    def produced(self, *arguments: Any, **more: Any) -> PartitionProduceResponse:
        """The response for one batch, which must not be parked."""
        return only_answer(self.produce(*arguments, **more))

    def fetch(self, request: Any, version: int = 12) -> Handled:
        return fetch.handle(self.context(1, version), request)


def only_answer(handled: Any) -> PartitionProduceResponse:
    assert isinstance(handled, ProduceResponse), handled
    ((answer,),) = [entry.partition_responses for entry in handled.responses]
    return answer


def waiting(handled: Handled) -> "asyncio.Future[Any]":
    """The response that a parked request will get."""
    assert isinstance(handled, Pending), handled
    return future_of(handled)
