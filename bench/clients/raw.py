"""The ceiling of the table: the same records over one blocking socket, as batches that are encoded before the clock starts.

Produce: requests with one batch of about 1 MB, five in flight, to each partition in turn, without idempotence. Consume: one
Fetch of each partition in flight, answers received into one buffer; batch headers are read, to know where to go on, and
nothing else. So this is what loopback and broker allow on this machine; a client has to encode or decode besides.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from bench.clients.cases import PARTITIONS
from bench.clients.job import ConsumeJob, ProduceJob, Run
from bench.side_by_side.loads import frames

from ottla.client_core.consumer.fetched import end_of_batches
from ottla.records.builder import build_produce_batch
from ottla.wire.codec import decode
from ottla.wire.headers import read_response_header
from ottla.wire.messages.fetch import FetchRequest, FetchResponse

BATCH_BYTES = 1_000_000
RECORD_OVERHEAD = 25
"""What a record takes beside its value, at most: its numbers and a key."""
WINDOW = 5


def produce(job: ProduceJob) -> Run:
    requests = list(_requests(job))
    connection = frames.connect(job.bootstrap)
    first = frames.produce_frame(job.topic, 0, build_produce_batch([(_now_ms(), None, job.value, ())]))
    frames.write_first(connection, first, job.topic)
    check = frames.produce_check("the broker", job.topic)
    return lambda: frames.pipeline(connection, requests, WINDOW, 1 << 10, check)


def _requests(job: ProduceJob) -> Iterator[bytes]:
    """The requests for all records. Batches of the same size are encoded once for each partition."""
    size = max(1, BATCH_BYTES // (len(job.value) + RECORD_OVERHEAD))
    encoded: dict[tuple[int, int], bytes] = {}
    for number, start in enumerate(range(0, job.count, size)):
        partition, count = number % PARTITIONS, min(size, job.count - start)
        if (partition, count) not in encoded:
            keys = [None] * count if job.keys is None else job.keys[start : start + count]
            batch = build_produce_batch([(_now_ms(), key, job.value, ()) for key in keys])
            encoded[partition, count] = frames.produce_frame(job.topic, partition, batch)
        yield encoded[partition, count]


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def consume(job: ConsumeJob) -> Run:
    connection = frames.connect(job.bootstrap)
    receiver = frames.Receiver(connection, 2 << 20)
    offsets = dict.fromkeys(range(job.partitions), 0)
    waiting: list[int] = []

    def ask(partition: int) -> None:
        connection.sendall(frames.fetch_frame(job.topic, partition, offsets[partition], BATCH_BYTES))
        waiting.append(partition)

    def take() -> int:
        """Take the oldest answer and ask for what follows it; returns the number of records."""
        partition = waiting.pop(0)
        data = _partition_data(receiver.frame())
        _, next_offset, _ = end_of_batches(memoryview(data.records))
        count: int = next_offset - offsets[partition]
        offsets[partition] = next_offset
        if next_offset < data.high_watermark:
            ask(partition)
        return count

    for partition in offsets:
        ask(partition)

    def run() -> None:
        left = job.count
        while left > 0:
            left -= take()

    return run


def _partition_data(frame: memoryview) -> Any:
    _, body = read_response_header(frame, FetchRequest.KEY, frames.FETCH_VERSION)
    response, _ = decode(FetchResponse, frames.FETCH_VERSION, frame, body)
    data = response.responses[0].partitions[0]
    if data.error_code:
        raise SystemExit(f"the broker answers a Fetch with error {data.error_code}")
    return data
