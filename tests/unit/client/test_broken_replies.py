"""Brokers whose replies are cut, garbage or empty: a client of either kind logs it, tries again and goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from random import Random
from typing import Any

import pytest
from tests.support.logs.batches import make_batch
from tests.support.nodes.fake_node import FakeNetwork, FakeNode, Handler
from tests.support.servers.kafka_server import HANG_S

from ottla import Consumer, Producer, aio
from ottla.client.world import ClientWorld
from ottla.env.real.clock import RealClock
from ottla.env.real.threads import RealThreads
from ottla.errors import UnknownServerError
from ottla.ids import Uuid
from ottla.sim.world import SeededRandomness
from ottla.wire.base import Message
from ottla.wire.codec import join_parts
from ottla.wire.headers import encode_response, parse_request
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

WHERE = ("only", 9092)
TOPIC_ID = Uuid(b"0123456789abcdef")
QUICK: dict[str, Any] = {
    "retry_backoff_ms": 1,
    "retry_backoff_max_ms": 5,
    "reconnect_backoff_ms": 1,
    "reconnect_backoff_max_ms": 5,
    "request_timeout_ms": 2_000,
}


def metadata(request: MetadataRequest, version: int) -> MetadataResponse:
    partition = MetadataResponsePartition(partition_index=0, leader_id=1, leader_epoch=0, replica_nodes=[1], isr_nodes=[1])
    return MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=1, host=WHERE[0], port=WHERE[1])],
        cluster_id="c",
        topics=[MetadataResponseTopic(name="t", topic_id=TOPIC_ID, partitions=[partition])],
    )


def init_producer_id(request: InitProducerIdRequest, version: int) -> InitProducerIdResponse:
    return InitProducerIdResponse(producer_id=1, producer_epoch=0)


def produce(request: ProduceRequest, version: int) -> ProduceResponse:
    stored = PartitionProduceResponse(index=0, base_offset=7)
    return ProduceResponse(responses=[TopicProduceResponse(name="t", topic_id=TOPIC_ID, partition_responses=[stored])])


def list_offsets(request: ListOffsetsRequest, version: int) -> ListOffsetsResponse:
    found = ListOffsetsPartitionResponse(partition_index=0, offset=0, leader_epoch=0)
    return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=[found])])


def fetch(request: FetchRequest, version: int) -> FetchResponse | None:
    if not any(part.fetch_offset == 0 for topic in request.topics for part in topic.partitions):
        return None if request.session_epoch >= 0 else FetchResponse()  # parked, as at the end of a log
    records = bytes(make_batch(b"v"))
    data = PartitionData(partition_index=0, high_watermark=1, last_stable_offset=1, log_start_offset=0, records=records)
    return FetchResponse(responses=[FetchableTopicResponse(topic="t", topic_id=TOPIC_ID, partitions=[data])])


class BreakingNode(FakeNode):
    """Spoils the first replies to one API."""

    def __init__(self, handlers: Mapping[type[Message], Handler], kind: type[Message], way: str) -> None:
        super().__init__(handlers)
        self._kind = kind
        self._way = way
        self.left = 2

    def answer(self, frame: bytearray) -> object:
        header, message = parse_request(bytearray(frame))
        reply = super().answer(frame)
        if not isinstance(message, self._kind) or not isinstance(reply, bytes) or not self.left:
            return reply
        self.left -= 1
        if self._way == "empty":
            response = type(self.handlers[self._kind](message, header.request_api_version))()
            return join_parts(encode_response(response, header.request_api_version, header.correlation_id))
        body = reply[8:]
        body = body[: len(body) // 2] if self._way == "cut" else Random(self.left).randbytes(len(body))
        return (4 + len(body)).to_bytes(4, "big") + reply[4:8] + body


def world(node: FakeNode) -> ClientWorld:
    return ClientWorld(RealClock(), FakeNetwork({WHERE: node}), SeededRandomness(Random(1)), RealThreads())


WAYS = ["cut", "garbage", "empty"]
SENDING: dict[type[Message], Handler] = {
    MetadataRequest: metadata,
    InitProducerIdRequest: init_producer_id,
    ProduceRequest: produce,
}
READING: dict[type[Message], Handler] = {MetadataRequest: metadata, ListOffsetsRequest: list_offsets, FetchRequest: fetch}


@pytest.mark.parametrize("face", ["sync", "aio"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", [MetadataRequest, InitProducerIdRequest, ProduceRequest])
def test_a_producer_survives_broken_replies(kind: type[Message], way: str, face: str) -> None:
    node = BreakingNode(SENDING, kind, way)
    # A reply without the partition does not say whether the record is stored: it fails, and the producer goes on.
    lost = 2 if (kind, way) == (ProduceRequest, "empty") else 0

    async def send() -> int:
        async with aio.Producer[bytes, bytes]("only:9092", world=world(node), **QUICK) as producer:
            for _ in range(lost):
                with pytest.raises(UnknownServerError, match="leaves out t-0"):
                    await (await producer.send("t", b"lost"))
            return (await (await producer.send("t", b"v"))).offset

    if face == "aio":
        assert asyncio.run(asyncio.wait_for(send(), HANG_S)) == 7
    else:
        with Producer[bytes, bytes]("only:9092", world=world(node), **QUICK) as producer:
            for _ in range(lost):
                with pytest.raises(UnknownServerError, match="leaves out t-0"):
                    producer.send("t", b"lost").result(HANG_S)
            assert producer.send("t", b"v").result(HANG_S).offset == 7
    assert node.left == 0


@pytest.mark.parametrize("face", ["sync", "aio"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", [MetadataRequest, ListOffsetsRequest, FetchRequest])
def test_a_consumer_survives_broken_replies(kind: type[Message], way: str, face: str) -> None:
    node = BreakingNode(READING, kind, way)
    given = {"auto_offset_reset": "earliest", "world": world(node), **QUICK}

    async def read() -> list[Any]:
        async with aio.Consumer[bytes, bytes]("only:9092", **given) as consumer:
            consumer.assign(("t", 0))
            return await consumer.poll(HANG_S)

    if face == "aio":
        records = asyncio.run(asyncio.wait_for(read(), 2 * HANG_S))
    else:
        with Consumer[bytes, bytes]("only:9092", **given) as consumer:
            consumer.assign(("t", 0))
            records = list(consumer.poll(HANG_S))
    assert [(record.offset, record.value) for record in records] == [(0, b"v")]
    assert node.left == 0
