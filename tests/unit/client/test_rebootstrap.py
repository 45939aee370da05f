"""A cluster that moves: its old brokers refuse metadata or fall silent, and bootstrap.servers leads to the new ones.

The old brokers still serve everything else, so nothing but the metadata tells the clients to leave them.
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any, Literal

import pytest
from tests.support.logs.batches import make_batch
from tests.support.nodes.fake_node import FakeNetwork, FakeNode
from tests.support.servers.kafka_server import HANG_S

from ottla import Admin, Consumer, Producer, aio
from ottla.client.world import ClientWorld
from ottla.env.real.clock import RealClock
from ottla.env.real.threads import RealThreads
from ottla.errors import RebootstrapRequiredError
from ottla.errors.codes import ErrorCode
from ottla.ids import Uuid
from ottla.sim.world import SeededRandomness
from ottla.wire.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from ottla.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from ottla.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ottla.wire.messages.produce import PartitionProduceResponse, ProduceRequest, ProduceResponse, TopicProduceResponse

BOOTSTRAP = ("cluster", 9092)
TOPIC_ID = Uuid(b"0123456789abcdef")
Leaving = Literal["serves", "requires", "silent"]
QUICK: dict[str, Any] = {
    "retry_backoff_ms": 1,
    "retry_backoff_max_ms": 5,
    "reconnect_backoff_ms": 1,
    "reconnect_backoff_max_ms": 5,
    "metadata_max_age_ms": 20,
}
WAYS = [
    pytest.param("requires", {}, id="required"),
    pytest.param("silent", {"metadata_recovery_rebootstrap_trigger_ms": 100}, id="triggered"),
]
FACES = pytest.mark.parametrize("face", ["sync", "aio"])


class Broker(FakeNode):
    """The only broker of a cluster: the leader of t-0, which begins at the offset `first`."""

    def __init__(self, node_id: int, host: str, first: int) -> None:
        super().__init__(
            {
                MetadataRequest: self.metadata,
                InitProducerIdRequest: lambda *_: InitProducerIdResponse(producer_id=1, producer_epoch=0),
                ProduceRequest: self.produce,
                ListOffsetsRequest: self.list_offsets,
                FetchRequest: self.fetch,
            }
        )
        self.id, self.host, self.first = node_id, host, first
        self.way: Leaving = "serves"

    def metadata(self, request: MetadataRequest, version: int) -> MetadataResponse | None:
        if self.way == "silent":
            return None
        if self.way == "requires":
            return MetadataResponse(error_code=ErrorCode.REBOOTSTRAP_REQUIRED)
        partition = MetadataResponsePartition(partition_index=0, leader_id=self.id, leader_epoch=0)
        return MetadataResponse(
            brokers=[MetadataResponseBroker(node_id=self.id, host=self.host, port=9092)],
            topics=[MetadataResponseTopic(name="t", topic_id=TOPIC_ID, partitions=[partition])],
            cluster_id=self.host,
        )

    def produce(self, request: ProduceRequest, version: int) -> ProduceResponse:
        stored = PartitionProduceResponse(index=0, base_offset=self.first)
        return ProduceResponse(responses=[TopicProduceResponse(name="t", topic_id=TOPIC_ID, partition_responses=[stored])])

    def list_offsets(self, request: ListOffsetsRequest, version: int) -> ListOffsetsResponse:
        found = ListOffsetsPartitionResponse(partition_index=0, offset=self.first, leader_epoch=0)
        return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=[found])])

    def fetch(self, request: FetchRequest, version: int) -> FetchResponse | None:
        if not any(part.fetch_offset == self.first for topic in request.topics for part in topic.partitions):
            return None if request.session_epoch >= 0 else FetchResponse()  # parked, as at the end of a log
        records = bytes(make_batch(self.host.encode(), base_offset=self.first))
        data = PartitionData(partition_index=0, high_watermark=9, last_stable_offset=9, log_start_offset=0, records=records)
        return FetchResponse(responses=[FetchableTopicResponse(topic="t", topic_id=TOPIC_ID, partitions=[data])])


class Moving:
    """The old and the new broker, and the network in which they are."""

    def __init__(self) -> None:
        self.old, self.new = Broker(1, "old", 0), Broker(2, "new", 1)
        self.network = FakeNetwork({BOOTSTRAP: self.old, ("old", 9092): self.old, ("new", 9092): self.new})
        self.world = ClientWorld(RealClock(), self.network, SeededRandomness(Random(1)), RealThreads())

    def move(self, way: Leaving) -> None:
        self.network.nodes[BOOTSTRAP] = self.new
        self.old.way = way


@FACES
@pytest.mark.parametrize(("way", "given"), WAYS)
def test_a_producer_finds_the_cluster_again(way: Leaving, given: dict[str, Any], face: str) -> None:
    place = Moving()
    options = {"world": place.world, **QUICK, **given}

    async def send() -> None:
        async with aio.Producer[bytes, bytes]("cluster:9092", **options) as producer:
            assert (await (await producer.send("t", b"v"))).offset == 0
            place.move(way)
            while (await (await producer.send("t", b"v"))).offset != 1:
                await asyncio.sleep(0.005)

    if face == "aio":
        asyncio.run(asyncio.wait_for(send(), HANG_S))
        return
    with Producer[bytes, bytes]("cluster:9092", **options) as producer:
        assert producer.send("t", b"v").result(HANG_S).offset == 0
        place.move(way)
        ends_s = place.world.clock.monotonic_s() + HANG_S
        while producer.send("t", b"v").result(HANG_S).offset != 1:
            assert place.world.clock.monotonic_s() < ends_s, "it stays with the old broker"


@FACES
@pytest.mark.parametrize(("way", "given"), WAYS)
def test_a_consumer_finds_the_cluster_again(way: Leaving, given: dict[str, Any], face: str) -> None:
    place = Moving()
    options = {"world": place.world, "auto_offset_reset": "earliest", **QUICK, **given}

    async def read() -> list[bytes | None]:
        async with aio.Consumer[bytes, bytes]("cluster:9092", **options) as consumer:
            consumer.assign(("t", 0))
            values = [each.value for each in await consumer.poll(HANG_S)]
            place.move(way)
            return [*values, *(each.value for each in await consumer.poll(HANG_S))]

    if face == "aio":
        assert asyncio.run(asyncio.wait_for(read(), 2 * HANG_S)) == [b"old", b"new"]
        return
    with Consumer[bytes, bytes]("cluster:9092", **options) as consumer:
        consumer.assign(("t", 0))
        assert [each.value for each in consumer.poll(HANG_S)] == [b"old"]
        place.move(way)
        assert [each.value for each in consumer.poll(HANG_S)] == [b"new"]


@FACES
@pytest.mark.parametrize(("way", "given"), WAYS)
def test_an_admin_finds_the_cluster_again(way: Leaving, given: dict[str, Any], face: str) -> None:
    place = Moving()
    options = {"world": place.world, **QUICK, **given}

    async def ask() -> None:
        async with aio.Admin("cluster:9092", **options) as admin:
            await admin.list_topics()
            place.move(way)
            assert list(await admin.list_topics()) == ["t"]

    if face == "aio":
        asyncio.run(asyncio.wait_for(ask(), HANG_S))
    else:
        with Admin("cluster:9092", **options) as admin:
            admin.list_topics()
            place.move(way)
            assert list(admin.list_topics()) == ["t"]
    assert place.new.asked_for(MetadataRequest)


@FACES
@pytest.mark.parametrize("kind", ["producer", "consumer", "admin"])
def test_a_required_rebootstrap_is_fatal_with_strategy_none(kind: str, face: str) -> None:
    place = Moving()
    place.old.way = "requires"
    options = {"world": place.world, "metadata_recovery_strategy": "none", **QUICK}

    async def use() -> None:
        if kind == "producer":
            async with aio.Producer[bytes, bytes]("cluster:9092", **options) as producer:
                await producer.send("t", b"v")
        elif kind == "consumer":
            async with aio.Consumer[bytes, bytes]("cluster:9092", **options) as consumer:
                consumer.assign(("t", 0))
                await consumer.poll(HANG_S)
        else:
            async with aio.Admin("cluster:9092", **options) as admin:
                await admin.list_topics()

    def use_blocking() -> None:
        if kind == "producer":
            with Producer[bytes, bytes]("cluster:9092", **options) as producer:
                producer.send("t", b"v")
        elif kind == "consumer":
            with Consumer[bytes, bytes]("cluster:9092", **options) as consumer:
                consumer.assign(("t", 0))
                consumer.poll(HANG_S)
        else:
            with Admin("cluster:9092", **options) as admin:
                admin.list_topics()

    with pytest.raises(RebootstrapRequiredError, match=r"metadata\.recovery\.strategy=none"):
        asyncio.run(asyncio.wait_for(use(), HANG_S)) if face == "aio" else use_blocking()
    place.network.nodes[BOOTSTRAP] = place.new
    assert not place.new.asked
