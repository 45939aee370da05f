"""CPU cost of offset commits and fetches: a node in this process gets requests on its connections in memory.

    python -m bench.commit_bench [--rounds 100] [--folder /dev/shm] [--json]

Eight connections, each with its own group and one request in flight, as in the row of committed offsets of `make bench`: all
eight send, then the loop runs until all are answered. Measured in short slices as in `produce_bench.py`; the best slice counts.
Sockets are not included; the write to the file is.

    simple × 10       ten partitions of one topic, by a consumer with manual assignment
    by name × 10      the same in version 9, which identifies topics by name
    simple × 1        one partition
    member × 10       ten partitions, by the member of a classic group
    fetch × 10        OffsetFetch of the ten
    heartbeat         of the member
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any, cast

from bench.in_memory import REQUEST_BYTES_MAX, FakeStream, main

from ottla.broker.net.connection import Connection
from ottla.broker.node import Node
from ottla.broker.requests.context import ConnectionInfo
from ottla.env import Stream
from ottla.ids import Uuid
from ottla.wire.base import Message
from ottla.wire.codec import decode_all
from ottla.wire.framing import READ_AHEAD_BYTES
from ottla.wire.headers import encode_request
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from ottla.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse

TOPIC = "bench"
PARTITIONS = 10
CONSUMERS = 8
SLICE_TURNS = 10
REPLY_HEAD_BYTES = 9
NO_TOPICS = bytes(6) + b"\xff\xff\xff\xff"
"""An empty subscription."""
TURNS_MAX = 1000


class Consumer:
    """One consumer and its connection, at first without a member id."""

    def __init__(self, node: Node, number: int) -> None:
        self.group_id = f"bench-group-{number}"
        self.member_id = ""
        self.generation = -1
        self.stream = FakeStream()
        self._correlation_id = 0
        self._connection = Connection(
            cast(Stream, self.stream),
            ConnectionInfo(number, "PLAINTEXT", ("127.0.0.1", 1)),
            node.pipeline,
            node.listeners.memory,
            REQUEST_BYTES_MAX,
            bytearray(READ_AHEAD_BYTES),
            lambda connection: None,
        )

    def frame(self, request: Message, version: int) -> bytes:
        self._correlation_id += 1
        return b"".join(cast("list[bytes]", encode_request(request, version, self._correlation_id, "consumer-bench-1")))

    def send(self, frame: bytes) -> None:
        """Pass a request to the connection as a socket would."""
        target = self._connection.buffer()
        target[: len(frame)] = frame
        del target
        self._connection.received(len(frame))

    async def ask(self, request: Message, version: int, response: type[Any]) -> Any:
        before = self.stream.sent_bytes
        self.send(self.frame(request, version))
        for _ in range(TURNS_MAX):
            if self.stream.sent_bytes > before:
                return decode_all(response, version, self.stream.last[REPLY_HEAD_BYTES:])
            await asyncio.sleep(0.01)
        raise TimeoutError(f"no answer to {request}")

    async def join(self) -> None:
        """Become the only member of the group."""
        protocols = [JoinGroupRequestProtocol(name="range", metadata=NO_TOPICS)]
        request = JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=45_000,
            rebalance_timeout_ms=45_000,
            protocol_type="consumer",
            protocols=protocols,
        )
        request.member_id = (await self.ask(request, 9, JoinGroupResponse)).member_id
        joined = await self.ask(request, 9, JoinGroupResponse)
        self.member_id, self.generation = joined.member_id, joined.generation_id
        assignment = [SyncGroupRequestAssignment(member_id=self.member_id, assignment=b"")]
        synced = await self.ask(
            SyncGroupRequest(
                group_id=self.group_id,
                generation_id=self.generation,
                member_id=self.member_id,
                protocol_type="consumer",
                protocol_name="range",
                assignments=assignment,
            ),
            5,
            SyncGroupResponse,
        )
        assert not synced.error_code, synced


def commit(consumer: Consumer, topic_id: Uuid, partitions: int) -> OffsetCommitRequest:
    committed = [
        OffsetCommitRequestPartition(partition_index=index, committed_offset=123_456, committed_metadata="")
        for index in range(partitions)
    ]
    return OffsetCommitRequest(
        group_id=consumer.group_id,
        generation_id_or_member_epoch=consumer.generation,
        member_id=consumer.member_id,
        topics=[OffsetCommitRequestTopic(name=TOPIC, topic_id=topic_id, partitions=committed)],
    )


def fetch(consumer: Consumer, topic_id: Uuid) -> OffsetFetchRequest:
    topic = OffsetFetchRequestTopics(name=TOPIC, topic_id=topic_id, partition_indexes=list(range(PARTITIONS)))
    return OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=consumer.group_id, topics=[topic])], require_stable=True)


def heartbeat(consumer: Consumer) -> HeartbeatRequest:
    return HeartbeatRequest(
        group_id=consumer.group_id, generation_id=consumer.generation, member_id=consumer.member_id, group_instance_id=None
    )


Row = tuple[Callable[[Consumer], Message], int, type[Any], list[Consumer]]


async def prepared(node: Node) -> dict[str, Row]:
    """Create a topic, load the coordinator, and return the rows with their consumers."""
    admin = Consumer(node, 0)
    topic = CreatableTopic(name=TOPIC, num_partitions=PARTITIONS, replication_factor=1)
    await admin.ask(CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 7, CreateTopicsResponse)
    while len(node.services.partitions.by_name.get(TOPIC, {})) < PARTITIONS:
        await asyncio.sleep(0.01)
    topic_id = node.services.partitions.by_name[TOPIC][0].topic_id
    while True:
        request = FindCoordinatorRequest(coordinator_keys=[admin.group_id])
        found = (await admin.ask(request, 6, FindCoordinatorResponse)).coordinators[0]
        if not found.error_code and len(node.services.coordinators.groups.active) > 1:
            break
        await asyncio.sleep(0.05)
    simple = [Consumer(node, 100 + number) for number in range(CONSUMERS)]
    members = [Consumer(node, 200 + number) for number in range(CONSUMERS)]
    for member in members:
        await member.join()
    return {
        f"simple × {PARTITIONS}": (lambda each: commit(each, topic_id, PARTITIONS), 10, OffsetCommitResponse, simple),
        f"by name × {PARTITIONS}": (lambda each: commit(each, topic_id, PARTITIONS), 9, OffsetCommitResponse, simple),
        "simple × 1": (lambda each: commit(each, topic_id, 1), 10, OffsetCommitResponse, simple),
        f"member × {PARTITIONS}": (lambda each: commit(each, topic_id, PARTITIONS), 10, OffsetCommitResponse, members),
        f"fetch × {PARTITIONS}": (lambda each: fetch(each, topic_id), 10, OffsetFetchResponse, simple),
        "heartbeat": (heartbeat, 4, HeartbeatResponse, members),
    }


async def measure(row: Row) -> float:
    """Seconds of CPU per request in one slice."""
    make, version, _, consumers = row
    turns = [[(each, each.frame(make(each), version)) for each in consumers] for _ in range(SLICE_TURNS)]
    streams = [each.stream for each in consumers]
    taken = 0
    for turn in turns:
        for stream in streams:
            stream.sent_bytes = 0
        start = time.process_time_ns()
        for consumer, frame in turn:
            consumer.send(frame)
        while not all(stream.sent_bytes for stream in streams):
            await asyncio.sleep(0)
        taken += time.process_time_ns() - start
    return taken / (len(consumers) * len(turns)) / 1e9


def check(name: str, row: Row) -> None:
    _, version, response, consumers = row
    for consumer in consumers:
        reply = decode_all(response, version, consumer.stream.last[REPLY_HEAD_BYTES:])
        parts = [partition for topic in getattr(reply, "topics", ()) for partition in topic.partitions] or [reply]
        assert not any(getattr(each, "error_code", 0) for each in parts), f"{name}: {reply}"


async def run(node: Node, rounds: int) -> dict[str, float]:
    rows = await prepared(node)
    best: dict[str, float] = {}
    for _ in range(rounds):
        for name, row in rows.items():
            best[name] = min(best.get(name, 1.0), await measure(row))
            check(name, row)
    return best


if __name__ == "__main__":
    main("CPU of committed offsets, without sockets", 100, run)
