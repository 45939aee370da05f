"""Requests that are encoded before the measurement, and connections that send them; used by the raw load programs."""

import os
import socket
import time
from collections.abc import Callable, Iterable

from bench.side_by_side.errors import BadReply

from ottla.records.builder import build_produce_batch
from ottla.wire.codec import join_parts
from ottla.wire.headers import encode_request
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

PRODUCE_VERSION, FETCH_VERSION = 12, 12
"""The newest versions that identify topics by name."""

CLIENT_ID = "bench"
TIMEOUT_S = 60
RETRY_S = 0.02
NOT_YET = (3, 6)
"""Unknown topic or partition, not leader: a new partition may answer these at first."""

Reply = bytes | memoryview
CheckReply = Callable[[Reply], None]
"""Raises `BadReply` if a reply (without its size) is not what the load expects."""


def batch(records: int, value_bytes: int, first_key: int | None = None) -> bytearray:
    """A batch of records with one random value and the current time; keys count from `first_key`, or are null."""
    now_ms = time.time_ns() // 1_000_000
    value = os.urandom(value_bytes)
    keys: Iterable[bytes | None] = [None] * records
    if first_key is not None:
        keys = (b"key-%09d" % number for number in range(first_key, first_key + records))
    return build_produce_batch([(now_ms, key, value, ()) for key in keys])


def produce_frame(topic: str, partition: int, records: bytearray, correlation_id: int = 1) -> bytes:
    """A Produce request with acks=all, with the size in front."""
    data = PartitionProduceData(index=partition, records=records)
    topics = [TopicProduceData(name=topic, partition_data=[data])]
    request = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=topics)
    return join_parts(encode_request(request, PRODUCE_VERSION, correlation_id, CLIENT_ID))


def fetch_frame(topic: str, partition: int, offset: int, max_bytes: int) -> bytes:
    """A Fetch request outside any session, with the size in front."""
    wanted = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes)
    topics = [FetchTopic(topic=topic, partitions=[wanted])]
    request = FetchRequest(max_wait_ms=500, min_bytes=1, max_bytes=max_bytes, session_epoch=-1, topics=topics)
    return join_parts(encode_request(request, FETCH_VERSION, 1, CLIENT_ID))


def no_check(reply: Reply) -> None:
    """Accept any reply."""


def produce_check(label: str, topic: str) -> CheckReply:
    """A check that refuses replies to `produce_frame` with an error: a load of refused requests would be very fast."""

    def check(reply: Reply) -> None:
        if code := produce_error(reply, topic):
            raise BadReply(f"{label} answers a load on {topic} with error {code}")

    return check


def produce_error(reply: Reply, topic: str) -> int:
    """The error code in a reply (without its size) to `produce_frame`.

    correlation id (4) | tags (1) | topics (1) | name (1 + its length) | partitions (1) | index (4) | error code (2)
    """
    position = 4 + 1 + 1 + 1 + len(topic) + 1 + 4
    return int.from_bytes(reply[position : position + 2], "big", signed=True)


def connect(bootstrap: str) -> socket.socket:
    host, _, port = bootstrap.rpartition(":")
    connection = socket.create_connection((host, int(port)), timeout=TIMEOUT_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def receive_into(connection: socket.socket, view: memoryview) -> None:
    """Fill `view`."""
    while view:
        count = connection.recv_into(view)
        if not count:
            raise BadReply("the server closed the connection in the middle of a load")
        view = view[count:]


class Receiver:
    """Frames of one connection, each received into the same buffer: contents are not kept."""

    def __init__(self, connection: socket.socket, buffer_bytes: int) -> None:
        self._connection = connection
        self._size = bytearray(4)
        self._buffer = bytearray(buffer_bytes)

    def frame(self) -> memoryview:
        """The next frame without its size; valid until the next call."""
        receive_into(self._connection, memoryview(self._size))
        size = int.from_bytes(self._size, "big")
        if size > len(self._buffer):
            self._buffer = bytearray(size)
        view = memoryview(self._buffer)[:size]
        receive_into(self._connection, view)
        return view


def write_first(connection: socket.socket, frame: bytes, topic: str) -> None:
    """Repeat a Produce request until it is accepted: a leader may be elected before its log exists. Other errors are final."""
    receiver = Receiver(connection, 1 << 10)
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        connection.sendall(frame)
        code = produce_error(receiver.frame(), topic)
        if not code:
            return
        if code not in NOT_YET or time.monotonic() > deadline:
            raise BadReply(f"the first request to {topic} was refused with error {code}")
        time.sleep(RETRY_S)


def pipeline(
    connection: socket.socket, frames: Iterable[bytes], window: int, buffer_bytes: int, check: CheckReply = no_check
) -> None:
    """Send all `frames` with at most `window` of them unanswered."""
    receiver = Receiver(connection, buffer_bytes)
    waiting = 0
    for frame in frames:
        if waiting == window:
            check(receiver.frame())
            waiting -= 1
        connection.sendall(frame)
        waiting += 1
    for _ in range(waiting):
        check(receiver.frame())
