"""CPU cost of fetch requests: a node in this process gets requests on a connection in memory, and reads real files.

    python -m bench.fetch_bench [--rounds 10] [--folder /dev/shm] [--json]

A consumer reads six partitions from their beginning, in a fetch session, up to 1 MB of each in every request, as Kafka's own
consumer does. The batches have 16 KB, as Kafka's producer sends them. The best round counts: the machine may be shared. Event
loop, sockets and `sendfile` are not included; finding and checking the ranges is.

To compare two source trees, run it with each of them in PYTHONPATH, in turns.
"""

import asyncio
import time
from types import SimpleNamespace
from typing import Any, cast

from bench.in_memory import REQUEST_BYTES_MAX, FakeStream, main
from bench.produce_bench import PARTITIONS, TOPIC, Producer, Shape, make_topic

from ottla.broker.net.connection import Connection
from ottla.broker.node import Node
from ottla.broker.requests.context import ConnectionInfo
from ottla.env import Stream
from ottla.ids import Uuid
from ottla.wire.codec import join_parts
from ottla.wire.framing import READ_AHEAD_BYTES
from ottla.wire.headers import encode_request
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic

VERSION = 17
BATCHES = 1000
RANGE_BYTES = 1 << 20
MAX_BYTES = 50 << 20
SHAPE = Shape(PARTITIONS, 15, 1000)
SESSION_ID_AT = 15
"""Size and correlation id (4 each), tags (1), throttle time (4), error code (2)."""


class Consumer:
    """Reads all partitions from their beginning."""

    def __init__(self, node: Node, topic_id: Uuid) -> None:
        self.stream = FakeStream()
        connection = Connection(
            cast(Stream, self.stream),
            ConnectionInfo(1, "PLAINTEXT", ("127.0.0.1", 1)),
            node.pipeline,
            node.listeners.memory,
            REQUEST_BYTES_MAX,
            bytearray(READ_AHEAD_BYTES),
            lambda connection: None,
        )
        self._sender: Any = SimpleNamespace(connection=connection)
        self._topic_id = topic_id
        self._session_id = 0
        self._epoch = 0

    async def fetch(self, offset: int) -> int | None:
        """Fetch from `offset` on; returns nanoseconds of CPU, None if the request had to wait for its turn."""
        wanted = [
            FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=RANGE_BYTES) for index in range(PARTITIONS)
        ]
        request = FetchRequest(
            max_wait_ms=500,
            min_bytes=1,
            max_bytes=MAX_BYTES,
            session_id=self._session_id,
            session_epoch=self._epoch,
            topics=[FetchTopic(topic_id=self._topic_id, partitions=wanted)],
        )
        frame = join_parts(encode_request(request, VERSION, 1, "consumer"))
        sent_before = self.stream.sent_bytes
        began = time.process_time_ns()
        Producer.send(self._sender, frame)
        spent = time.process_time_ns() - began
        is_answered = self.stream.sent_bytes > sent_before
        while self.stream.sent_bytes == sent_before:
            await asyncio.sleep(0)
        assert self.stream.sent_bytes - sent_before > PARTITIONS * RANGE_BYTES, "a partition is missing"
        if not self._session_id:
            self._session_id = int.from_bytes(self.stream.last[SESSION_ID_AT : SESSION_ID_AT + 4], "big")
        self._epoch += 1
        return spent if is_answered else None


async def run(node: Node, rounds: int) -> dict[str, float]:
    topic_id = await make_topic(node)
    producer = Producer(node, topic_id, 1, SHAPE)
    logs = [each.log for each in node.services.partitions.by_name[TOPIC].values()]
    for number in range(1, BATCHES + 1):
        producer.send(producer.request())
        while min(log.high_watermark for log in logs) < number * SHAPE.records:
            await asyncio.sleep(0)
    batches_per_fetch = RANGE_BYTES // producer.batch_bytes
    best = float("inf")
    for _ in range(rounds):
        consumer = Consumer(node, topic_id)
        await consumer.fetch(0)  # makes the session
        offsets = range(0, (BATCHES - batches_per_fetch) * SHAPE.records, batches_per_fetch * SHAPE.records)
        spent = [taken for offset in offsets if (taken := await consumer.fetch(offset)) is not None]
        if spent:
            best = min(best, sum(spent) / len(spent) / 1e9)
    return {f"{PARTITIONS} × 1 MB": best}


if __name__ == "__main__":
    main("CPU cost of fetch requests", 10, run)
