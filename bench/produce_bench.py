"""CPU cost of produce requests: a node in this process gets requests on its connections in memory.

    python -m bench.produce_bench [--rounds 200] [--folder /dev/shm] [--json]

Every row is measured in many short slices, the rows taking turns, and the best slice counts: the machine may be shared. Sockets
and event loop are not included; the write to the file is. Requests look like those of Kafka's own producer: idempotent,
acks=all, version 13, uncompressed batches of about 16 KB.

    1 × 1 KB          one batch of 1 KB records
    6 × 1 KB          six batches, each for another partition
    1 × 100 B         one batch of 100 B records
    6 × 100 B         six batches, each for another partition
    tiny              one batch of a single record of 100 B: mostly the cost of the request itself
    cold, 1 × 1 KB    the first row, with the processor's caches overwritten before each request, as other processes would do

To compare two source trees, run it with each of them in PYTHONPATH, in turns.
"""

import asyncio
import os
import time
from types import SimpleNamespace
from typing import NamedTuple, cast

from bench.in_memory import REQUEST_BYTES_MAX, FakeStream, main

from ottla.broker.net.connection import Connection
from ottla.broker.node import Node
from ottla.broker.requests.context import ConnectionInfo
from ottla.env import Stream
from ottla.ids import Uuid
from ottla.records.builder import build_batch
from ottla.records.checksum import crc32c
from ottla.records.layout import CRC_AT, CRC_START
from ottla.records.record import Record
from ottla.wire.codec import decode_all
from ottla.wire.framing import READ_AHEAD_BYTES
from ottla.wire.headers import encode_request
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData

TOPIC = "bench"
PARTITIONS = 6
VERSION = 13
SLICE_REQUESTS = 20
CACHE_BYTES = 4 << 20
SEQUENCE_AT = 53
REPLY_HEAD_BYTES = 9


class Shape(NamedTuple):
    """The requests of a row."""

    batches: int
    records: int
    record_bytes: int
    is_cold: bool = False


SHAPES = {
    "1 × 1 KB": Shape(1, 15, 1000),
    "6 × 1 KB": Shape(6, 15, 1000),
    "1 × 100 B": Shape(1, 150, 100),
    "6 × 100 B": Shape(6, 150, 100),
    "tiny": Shape(1, 1, 100),
    "cold, 1 × 1 KB": Shape(1, 15, 1000, is_cold=True),
}


class Producer:
    """One idempotent producer and its connection. Its requests are built outside the measured time."""

    def __init__(self, node: Node, topic_id: Uuid, producer_id: int, shape: Shape) -> None:
        self.shape = shape
        self.stream = FakeStream()
        self.connection = Connection(
            cast(Stream, self.stream),
            ConnectionInfo(producer_id, "PLAINTEXT", ("127.0.0.1", 1)),
            node.pipeline,
            node.listeners.memory,
            REQUEST_BYTES_MAX,
            bytearray(READ_AHEAD_BYTES),
            lambda connection: None,
        )
        self._topic_id = topic_id
        now_ms = time.time_ns() // 1_000_000
        value = os.urandom(shape.record_bytes)
        records = [Record(index, now_ms, None, value, ()) for index in range(shape.records)]
        self._batch = build_batch(records, producer_id=producer_id, producer_epoch=0, base_sequence=0)
        self.batch_bytes = len(self._batch)
        self._sequence = 0
        self._correlation_id = 0

    def request(self) -> bytes:
        batch = bytearray(self._batch)
        batch[SEQUENCE_AT : SEQUENCE_AT + 4] = self._sequence.to_bytes(4, "big")
        batch[CRC_AT : CRC_AT + 4] = crc32c(memoryview(batch)[CRC_START:]).to_bytes(4, "big")
        self._sequence += self.shape.records
        data = [PartitionProduceData(index=index, records=bytes(batch)) for index in range(self.shape.batches)]
        topic = TopicProduceData(topic_id=self._topic_id, partition_data=data)
        self._correlation_id += 1
        request = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic])
        return b"".join(cast("list[bytes]", encode_request(request, VERSION, self._correlation_id, "perf-producer-client")))

    def send(self, frame: bytes) -> None:
        """Pass a request to the connection as a socket would."""
        connection, rest = self.connection, memoryview(frame)
        while rest:
            target = connection.buffer()
            count = min(len(target), len(rest))
            target[:count] = rest[:count]
            del target
            connection.received(count)
            rest = rest[count:]


async def make_topic(node: Node) -> Uuid:
    request = CreateTopicsRequest(
        topics=[CreatableTopic(name=TOPIC, num_partitions=PARTITIONS, replication_factor=1)], timeout_ms=30_000
    )
    stream = FakeStream()
    connection = Connection(
        cast(Stream, stream),
        ConnectionInfo(0, "PLAINTEXT", ("127.0.0.1", 1)),
        node.pipeline,
        node.listeners.memory,
        REQUEST_BYTES_MAX,
        bytearray(READ_AHEAD_BYTES),
        lambda connection: None,
    )
    sender = SimpleNamespace(connection=connection)
    Producer.send(cast(Producer, sender), b"".join(cast("list[bytes]", encode_request(request, 7, 1, "bench"))))
    while len(node.services.partitions.by_name.get(TOPIC, {})) < PARTITIONS:
        await asyncio.sleep(0.01)
    return next(iter(node.services.partitions.by_name[TOPIC].values())).topic_id


def measure(producer: Producer, cache: bytearray) -> float:
    """Seconds of CPU per request in one slice."""
    clock = time.process_time_ns
    frames = [producer.request() for _ in range(SLICE_REQUESTS)]
    sent_before = producer.stream.sent_bytes
    if producer.shape.is_cold:
        taken = []
        for frame in frames:
            cache[:] = bytes(len(cache))
            start = clock()
            producer.send(frame)
            taken.append(clock() - start)
        result = sorted(taken)[len(taken) // 2]
    else:
        start = clock()
        for frame in frames:
            producer.send(frame)
        result = (clock() - start) // len(frames)
    assert producer.stream.sent_bytes > sent_before, "no request was answered"
    return result / 1e9


async def run(node: Node, rounds: int) -> dict[str, float]:
    topic_id = await make_topic(node)
    producers = {name: Producer(node, topic_id, 1000 + number, shape) for number, (name, shape) in enumerate(SHAPES.items())}
    cache = bytearray(CACHE_BYTES)
    best: dict[str, float] = {}
    for _ in range(rounds):
        for name, producer in producers.items():
            best[name] = min(best.get(name, 1.0), measure(producer, cache))
    for name, producer in producers.items():
        reply = decode_all(ProduceResponse, VERSION, producer.stream.last[REPLY_HEAD_BYTES:])
        assert all(not answer.error_code for answer in reply.responses[0].partition_responses), f"{name}: {reply}"
    return best


if __name__ == "__main__":
    main("CPU of produce requests, without sockets", 200, run)
