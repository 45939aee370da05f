"""A story of produce requests, told by a seed: the bytes of every reply, and what the partitions hold at the end.

Whether a request takes the fast path or the general one, through either variant of the kernels, the story must end the same.
Run as a program, it prints what became of the stories with the seeds from 0 up to its argument, as JSON.
"""

import asyncio
import json
import random
import sys
from typing import Any

from tests.support.logs.batches import make_batch
from tests.support.nodes.held_partitions import HeldPartitions, virtual
from tests.support.nodes.rules import Denying, Throttling

from ottla.broker.handlers.fast_path.produce_frames import FrameAnswers
from ottla.broker.requests.authorization import Grants
from ottla.broker.requests.context import CloseConnection, ConnectionInfo, Declined, Pending
from ottla.broker.requests.parked import Parked
from ottla.broker.requests.pipeline import RequestPipeline
from ottla.ids import Uuid
from ottla.log.read import Isolation
from ottla.records.compression import Codec
from ottla.sim.disk import Fault
from ottla.wire.base import Message, Part
from ottla.wire.headers import encode_request
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

STEPS = 40
PARTITIONS = 3
CONFIGS: list[dict[str, object]] = [
    {},
    {"segment.bytes": 1_048_576, "index.interval.bytes": 100},
    {"max.message.bytes": 200},
    {"flush.messages": 5},
    {"cleanup.policy": "compact"},
    {"message.timestamp.type": "LogAppendTime"},
    {"compression.type": "gzip"},
]


class Story:
    """Two topics on one node, a few producers, and chance."""

    def __init__(self, seed: int, is_fast: bool = True, is_replicated: bool = False, has_rules: bool = False) -> None:
        self.seed = seed
        self.info = ConnectionInfo(1, "PLAINTEXT", ("peer.example", 5123))
        self.authorizer = Denying() if has_rules else None
        """Denies other things every few requests."""
        self.throttle = Throttling() if has_rules else None
        self.is_replicated = is_replicated
        """Whether partitions have a follower, which fetches by chance."""
        self.chance = random.Random(seed)
        self.is_fast = is_fast
        """Whether requests may go from frame to frame."""
        self.fast = 0
        """How many have."""
        self.ids: dict[str, Uuid] = {}
        self.replies: list[str] = []

    async def begin(self) -> None:
        self.held = held = await HeldPartitions.open()
        for topic in ("one", "two"):
            config = CONFIGS[self.seed % len(CONFIGS)] if topic == "two" else {}
            self.ids[topic] = await held.make_topic(topic, PARTITIONS, config, replicas=(1, 2) if self.is_replicated else (1,))
        self.pipeline = RequestPipeline(held.services)
        self.pipeline.authorization.authorizer = self.authorizer
        self.pipeline.throttling.rule = self.throttle
        assert self.pipeline.route_of(self.info, 0) is not None
        self.answers = FrameAnswers(held.services)

    async def tell(self) -> dict[str, Any]:
        await self.begin()
        for step in range(STEPS):
            if step == STEPS // 2 and self.seed % 5 == 0:
                self.held.disk.faults.append(Fault("append", "*/one-1/*", 5, times=1))
            if self.authorizer is not None and step % 7 == 3:
                self.authorizer.deny_topics(*self.chance.choice([["one"], ["two"], ["one", "two"], [], []]))
            self.send(self.frame(step))
            if self.is_replicated:
                await self.replicate()
        if self.is_replicated:
            await asyncio.sleep(2)  # what still waits times out
        counters = self.pipeline.counters.apis[0]
        return {
            "replies": self.replies,
            "counters": [counters.requests, counters.errors, counters.bytes_in, counters.bytes_out],
            "partitions": [self.content(topic, index) for topic in self.ids for index in range(PARTITIONS)],
        }

    def send(self, frame: bytearray) -> None:
        self.pipeline._fast_paths = {0: self} if self.is_fast else {}
        try:
            reply = self.pipeline.handle(self.info, frame)
        except CloseConnection as ended:
            self.replies.append(f"closed: {ended}")
            return
        if isinstance(reply, Parked):
            self.replies.append("parked")
            place = len(self.replies) - 1
            reply.on_ready = lambda: self.ready(place, reply)
        else:
            self.replies.append("none" if reply is None else b"".join(reply).hex())  # type: ignore[arg-type]

    def ready(self, place: int, parked: Parked) -> None:
        assert parked.parts is not None
        self.replies[place] = b"".join(parked.parts).hex()  # type: ignore[arg-type]

    async def replicate(self) -> None:
        """The follower fetches from some partitions; sometimes time passes, the ISR changes or this node leads no more."""
        for partition in self.held.partitions:
            if partition.is_leading and self.chance.random() < 0.2:
                end = partition.log.log_end_offset
                partition.follower_fetches(2, self.chance.choice([end, end, max(0, end - 1)]), 0, -1)
        topic, index = self.chance.choice(["one", "two"]), self.chance.randrange(PARTITIONS)
        match self.chance.randrange(40):
            case 0 | 1:
                await asyncio.sleep(0.6)
            case 2 if self.held.partitions.find(topic, index) is not None:
                await self.held.change(topic, index, leader=2)
                await self.held.change(topic, index, leader=1)
            case 3 if self.held.partitions.find(topic, index) is not None:
                await self.held.change(topic, index, isr=self.chance.choice([[1], [1, 2]]))
        await asyncio.sleep(0)

    def answer(self, frame: bytearray, grants: Grants | None) -> list[Part] | Message | Pending | Declined:
        """In place of what the pipeline would ask, which is asked and counted here."""
        parts = self.answers.answer(frame, grants)
        self.fast += not isinstance(parts, Declined)
        return parts

    def frame(self, number: int) -> bytearray:
        chance = self.chance
        version = chance.choice([13, 13, 13, 12, 10, 9, 8, 3])
        topics = [self.topic(name, version) for name in chance.sample(["one", "two"], chance.choice([1, 1, 2]))]
        if chance.random() < 0.03:
            topics.append(topics[0])
        request = ProduceRequest(
            acks=chance.choice([-1] * 8 + [1, 1, 0, 7]),
            timeout_ms=1000,
            transactional_id="t" if version < 9 and chance.random() < 0.02 else None,
            topic_data=topics,
        )
        client_id = chance.choice(["perf", None, "", "ä" * 40])
        frame = bytearray(b"".join(encode_request(request, version, number, client_id)))[4:]  # type: ignore[arg-type]
        if chance.random() < 0.05:
            frame[chance.randrange(4, len(frame))] ^= 1 << chance.randrange(8)
        elif chance.random() < 0.03:
            del frame[chance.randrange(4, len(frame)) :]
        return frame

    def topic(self, name: str, version: int) -> TopicProduceData:
        chance = self.chance
        indexes = chance.sample(range(PARTITIONS), chance.randrange(1, PARTITIONS + 1))
        if chance.random() < 0.03:
            indexes.append(chance.choice([indexes[0], PARTITIONS]))
        data = [PartitionProduceData(index=index, records=self.records(name, index)) for index in indexes]
        known = chance.random() > 0.02
        if version >= 13:
            return TopicProduceData(topic_id=self.ids[name] if known else bytes(15) + b"x", partition_data=data)
        return TopicProduceData(name=name if known else "none", partition_data=data)

    def records(self, topic: str, index: int) -> bytes | None:
        chance = self.chance
        if chance.random() < 0.02:
            return chance.choice([None, b"", b"short", bytes(70)])
        values = [bytes(chance.randrange(40)) for _ in range(chance.randrange(1, 4))]
        producer = None
        if chance.random() < 0.7:
            producer_id = chance.randrange(2)
            sequence = self.next_sequence(topic, index, producer_id)
            if chance.random() < 0.05:
                sequence = max(0, sequence + chance.choice([-2, 1]))
            producer = (producer_id, 0, sequence)
        codec = chance.choice([Codec.NONE] * 5 + [Codec.GZIP])
        key_bytes = chance.choice([b"key", None])
        is_transactional = producer is not None and chance.random() < 0.02
        return bytes(make_batch(*values, key=key_bytes, codec=codec, producer=producer, transactional=is_transactional))

    def next_sequence(self, topic: str, index: int, producer_id: int) -> int:
        partition = self.held.partitions.find(topic, index)
        entry = None if partition is None else partition.log.producers.producers.get(producer_id)
        return 0 if entry is None else entry.last_sequence + 1

    def content(self, topic: str, index: int) -> list[Any]:
        partition = self.held.partitions.find(topic, index)
        if partition is None:
            return [topic, index, "not there"]
        log = partition.log
        info = log.read(log.log_start_offset, 1 << 30, Isolation.HIGH_WATERMARK)
        producers = [repr(entry) for entry in log.producers.producers.values()]
        ends = [log.log_end_offset, log.high_watermark, partition.unread_bytes]
        return [topic, index, ends, producers, "" if info.records is None else info.records.read().hex()]


def tell(seed: int) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(json.dumps(virtual(Story(seed).tell())))
    return facts


if __name__ == "__main__":
    print(json.dumps([tell(seed) for seed in range(int(sys.argv[1]))]))
