"""A story of committed offsets, told by a seed: the bytes of every reply, and what log and shards hold at the end.

Whether a request takes the fast path or the general one, through either variant of the kernels, the story must end the same.
Run as a program, it prints what became of the stories with the seeds from 0 up to its argument, as JSON.
"""

import asyncio
import json
import logging
import random
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

from tests.support.nodes.held_partitions import NODE, HeldPartitions, virtual
from tests.support.nodes.rules import Denying, Throttling

from ottla.broker.handlers.fast_path.commit_frames import FrameAnswers
from ottla.broker.requests.authorization import Grants
from ottla.broker.requests.context import CloseConnection, ConnectionInfo, Pending
from ottla.broker.requests.parked import Parked
from ottla.broker.requests.pipeline import RequestPipeline
from ottla.broker.runtime.coordinators.groups import GroupRuntime
from ottla.broker.runtime.coordinators.load import load_shard
from ottla.env.repeated_lines import RepeatedLines
from ottla.ids import OFFSETS_TOPIC, Uuid
from ottla.log.read import Isolation
from ottla.metadata.acls import ResourceType
from ottla.metadata.image.delta import MetadataDelta
from ottla.metadata.image.topics import NO_LEADER
from ottla.records.batch import iterate_batches
from ottla.records.reader import read_records
from ottla.sim.disk import Fault
from ottla.wire.base import Message, Part
from ottla.wire.codec import decode_all
from ottla.wire.headers import encode_request
from ottla.wire.log_records import InternalLog
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from ottla.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from ottla.wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic
from ottla.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

STEPS = 50
PARTITIONS = 3
API_KEY = 8
CONFIGS: list[dict[str, object]] = [
    {},
    {"segment.bytes": 1_048_576, "index.interval.bytes": 100},
    {"max.message.bytes": 500},
    {"flush.messages": 5},
    {"compression.type": "gzip"},
    {"message.timestamp.type": "LogAppendTime"},
]
NO_TOPICS = bytes(6) + b"\xff\xff\xff\xff"


class Story:
    """Topics and groups on one node, some with members, and chance."""

    def __init__(self, seed: int, is_fast: bool = True, is_replicated: bool = False, has_rules: bool = False) -> None:
        self.seed = seed
        self.info = ConnectionInfo(1, "PLAINTEXT", ("peer.example", 5123))
        self.authorizer = Denying() if has_rules else None
        """Denies other things every few requests."""
        self.throttle = Throttling() if has_rules else None
        self.is_replicated = is_replicated
        """Whether the offsets have a follower, which fetches from time to time."""
        self.chance = random.Random(seed)
        self.is_crowded = seed % 2 == 1
        """Whether several requests come in one turn of the loop: then the batches differ by the way, the records do not."""
        self.is_fast = is_fast
        self.fast = 0
        """How many requests went from frame to frame."""
        self.ids: dict[str, Uuid] = {}
        self.replies: list[Any] = []
        self.members: dict[str, tuple[str, str | None, int]] = dict.fromkeys(["a", "b", "ä" * 9], ("", None, -1))
        """Member id, instance id and generation, by group."""
        self.number = 0

    async def begin(self) -> None:
        settings = {"offset.metadata.max.bytes": "40"}
        if self.seed % 7 == 6:
            settings["offsets.topic.compression.codec"] = "1"
        self.held = held = await HeldPartitions.open(settings)
        for topic in ("one", "two"):
            self.ids[topic] = await held.make_topic(topic, PARTITIONS)
        config = CONFIGS[self.seed % len(CONFIGS)]
        replicas = (1, 2) if self.is_replicated else (1,)
        await held.make_topic(OFFSETS_TOPIC, PARTITIONS, {"cleanup.policy": "compact", **config}, replicas=replicas)
        self.following = asyncio.ensure_future(self.follow())
        self.host = GroupRuntime(
            held.services.world,
            held.settings,
            held.partitions,
            held.metadata,
            RepeatedLines(held.services.world.clock, logging.getLogger("ottla.test")),
        )
        held.services.coordinators = SimpleNamespace(groups=self.host)
        self.pipeline = RequestPipeline(held.services)
        self.pipeline.authorization.authorizer = self.authorizer
        self.pipeline.throttling.rule = self.throttle
        assert self.pipeline.route_of(self.info, API_KEY) is not None
        self.answers = FrameAnswers(held.services)
        await self.join("classic", None)
        await self.join("static", "instance")
        joined = await self.ask(
            ConsumerGroupHeartbeatRequest(
                group_id="consumer",
                member_id="consumer-member",
                member_epoch=0,
                rebalance_timeout_ms=1000,
                subscribed_topic_names=["one"],
                topic_partitions=[],
            ),
            1,
            ConsumerGroupHeartbeatResponse,
        )
        self.members["consumer"] = ("consumer-member", None, joined.member_epoch)

    async def follow(self) -> None:
        """The follower has everything, a third of a second later."""
        while self.is_replicated:
            await asyncio.sleep(0.3)
            for partition in self.held.partitions.by_name[OFFSETS_TOPIC].values():
                if partition.is_leading:
                    partition.follower_fetches(2, partition.log.log_end_offset, 0, -1)

    async def join(self, group_id: str, instance_id: str | None) -> None:
        request = JoinGroupRequest(
            group_id=group_id,
            session_timeout_ms=30_000,
            rebalance_timeout_ms=30_000,
            group_instance_id=instance_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=NO_TOPICS)],
        )
        if instance_id is None:
            request.member_id = (await self.ask(request, 9, JoinGroupResponse)).member_id
        joined = await self.ask(request, 9, JoinGroupResponse)
        assignments = [SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"")]
        sync = SyncGroupRequest(
            group_id=group_id,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            group_instance_id=instance_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=assignments,
        )
        self.send(self.framed(sync, 5))
        await asyncio.sleep(1)
        self.members[group_id] = (joined.member_id, instance_id, joined.generation_id)

    async def ask(self, request: Message, version: int, response: type[Any]) -> Any:
        self.send(self.framed(request, version))
        await asyncio.sleep(5)
        return decode_all(response, version, b"".join(self.parts(self.replies[-1]))[9:])

    async def tell(self) -> dict[str, Any]:
        await self.begin()
        for step in range(STEPS):
            if step == STEPS // 2 and self.seed % 5 == 0:
                self.held.disk.faults.append(Fault("append", f"*/{OFFSETS_TOPIC}-1/*", 5, times=1))
            if self.authorizer is not None and step % 7 == 3:
                group = (ResourceType.GROUP, self.chance.choice(list(self.members)))
                topic = (ResourceType.TOPIC, self.chance.choice(["one", "two"]))
                self.authorizer.deny(*self.chance.choice([[group], [topic], [group, topic], [], []]))
            for _ in range(self.chance.randrange(1, 4) if self.is_crowded else 1):
                self.send(self.frame())
            await asyncio.sleep(self.chance.choice([0, 0.001, 0.5]))
            if self.chance.random() < 0.06:
                await self.change_the_cluster()
        await asyncio.sleep(1)
        self.following.cancel()
        counters = self.pipeline.counters.apis[API_KEY]
        return {
            "replies": [self.shown(reply) for reply in self.replies],
            "counters": [counters.requests, counters.errors, counters.bytes_in, counters.bytes_out],
            "log": [self.content(index) for index in range(PARTITIONS)],
            "shards": [await self.state(index) for index in range(PARTITIONS)],
        }

    def send(self, frame: bytearray) -> None:
        self.pipeline._fast_paths = {API_KEY: self} if self.is_fast else {}
        try:
            self.replies.append(self.pipeline.handle(self.info, frame))
        except CloseConnection as ended:
            self.replies.append(f"closed: {ended}")

    def answer(self, frame: bytearray, grants: Grants | None) -> list[Part] | Pending | None:
        """In place of what the pipeline would ask, which is asked and counted here."""
        parts = self.answers.answer(frame, grants)
        self.fast += parts is not None
        return parts

    def parts(self, reply: Any) -> list[bytes]:
        parts: list[bytes] = reply.parts if isinstance(reply, Parked) else reply
        return parts

    def shown(self, reply: Any) -> str:
        if isinstance(reply, str):
            return reply
        if isinstance(reply, Parked) and not reply.is_ready:
            return "parked"
        if isinstance(reply, Parked) and reply.fault is not None:
            return f"closed: {reply.fault}"
        return b"".join(self.parts(reply)).hex()

    # What is asked

    def framed(self, request: Message, version: int) -> bytearray:
        self.number += 1
        client_id = self.chance.choice(["consumer", None, "", "ä" * 40])
        parts = encode_request(request, version, self.number, client_id)
        return bytearray(b"".join(parts))[4:]  # type: ignore[arg-type]  # bytes: there is no range of a file in it

    def frame(self) -> bytearray:
        chance = self.chance
        kind = chance.random()
        group_id = chance.choice(list(self.members))
        if kind < 0.05:
            groups = [OffsetFetchRequestGroup(group_id=group_id, topics=None)]
            return self.framed(OffsetFetchRequest(groups=groups), 9)
        if kind < 0.1:
            partitions = [OffsetDeleteRequestPartition(partition_index=index) for index in range(PARTITIONS)]
            topics = [OffsetDeleteRequestTopic(name="one", partitions=partitions)]
            return self.framed(OffsetDeleteRequest(group_id=group_id, topics=topics), 0)
        if kind < 0.15:
            member_id, instance_id, generation = self.members["classic"]
            request = HeartbeatRequest(
                group_id="classic", generation_id=generation, member_id=member_id, group_instance_id=instance_id
            )
            return self.framed(request, 4)
        version = chance.choice([10] * 5 + [9] * 3 + [8, 7, 5, 2])
        frame = self.framed(self.commit(group_id, version), version)
        if chance.random() < 0.06:
            frame[chance.randrange(4, len(frame))] ^= 1 << chance.randrange(8)
        elif chance.random() < 0.03:
            del frame[chance.randrange(4, len(frame)) :]
        return frame

    def commit(self, group_id: str, version: int) -> OffsetCommitRequest:
        chance = self.chance
        member_id, instance_id, generation = self.members[group_id]
        if chance.random() < 0.15:
            generation += chance.choice([-1, 1])
        if chance.random() < 0.05:
            member_id = "stranger"
        if chance.random() < 0.05:
            instance_id = "nobody"
        topics = [self.topic(name, version) for name in chance.sample(["one", "two"], chance.choice([1, 1, 2]))]
        if chance.random() < 0.03:
            topics.append(topics[0])
        return OffsetCommitRequest(
            group_id=chance.choice([group_id] * 20 + ["", f"new-{self.number}"]),
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            group_instance_id=instance_id if version >= 7 else None,
            retention_time_ms=chance.choice([-1, 5000]) if version < 5 else -1,
            topics=topics,
        )

    def topic(self, name: str, version: int) -> OffsetCommitRequestTopic:
        chance = self.chance
        indexes = chance.sample(range(PARTITIONS), chance.randrange(1, PARTITIONS + 1))
        if chance.random() < 0.05:
            indexes.append(chance.choice([indexes[0], PARTITIONS, -1]))
        if chance.random() < 0.02:
            indexes = []
        partitions = [
            OffsetCommitRequestPartition(
                partition_index=index,
                committed_offset=chance.choice([0, 5, 2**40, -1, 2**63 - 1]),
                committed_leader_epoch=chance.choice([-1, 0, 2**31 - 1]),
                committed_metadata=chance.choice(["", None, "some", "ä" * 20] * 6 + ["x" * 41, "ä" * 41, "\U0001f600" * 20]),
            )
            for index in indexes
        ]
        known = chance.random() > 0.03
        if version >= 10:
            return OffsetCommitRequestTopic(topic_id=self.ids[name] if known else bytes(15) + b"x", partitions=partitions)
        return OffsetCommitRequestTopic(name=name if known else "none", partitions=partitions)

    async def change_the_cluster(self) -> None:
        """What is known of topics and of coordinators is not true any more."""
        if self.chance.random() < 0.5:
            async with self.followed():
                await self.held.delete_topic("two")
                self.ids["two"] = await self.held.make_topic("two", PARTITIONS - 1)
            return
        index = self.chance.randrange(PARTITIONS)
        for leader in (NO_LEADER, NODE):
            async with self.followed():
                await self.held.change(OFFSETS_TOPIC, index, leader=leader)
            self.send(self.frame())
        await asyncio.sleep(1)

    @asynccontextmanager
    async def followed(self) -> AsyncIterator[None]:
        """The coordinator follows what changes within, as a node has it do."""
        old, told = self.held.metadata.image, len(self.held.records)
        yield
        delta = MetadataDelta(old)
        delta.replay_all(self.held.records[told:])
        self.host.metadata_changed(delta, self.held.metadata.image)
        await asyncio.sleep(0)

    # What became of it

    def content(self, index: int) -> list[Any]:
        partition = self.held.partitions.find(OFFSETS_TOPIC, index)
        if partition is None or not partition.is_leading:
            return [index, "not there"]
        log = partition.log
        info = log.read(log.log_start_offset, 1 << 30, Isolation.HIGH_WATERMARK)
        data = b"" if info.records is None else info.records.read()
        shown: Any = data.hex()
        if self.is_crowded:
            shown = [repr(record) for batch in iterate_batches(data) for record in read_records(batch)]
        return [index, log.log_end_offset, log.high_watermark, shown]

    async def state(self, index: int) -> Any:
        """What the shard holds, which must be what loading its log comes to."""
        hosted = self.host.active.get(index)
        if hosted is None:
            return None
        loaded = self.host._new_shard(hosted.partition)
        await load_shard(loaded, InternalLog.GROUPS, hosted.partition, self.held.partitions.cold_reads)
        assert loaded.offsets.committed.by_group == hosted.shard.offsets.committed.by_group
        return [sorted(hosted.shard.table.by_id), repr(sorted(hosted.shard.offsets.committed))]


def tell(seed: int) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(json.dumps(virtual(Story(seed).tell())))
    return facts


if __name__ == "__main__":
    print(json.dumps([tell(seed) for seed in range(int(sys.argv[1]))]))
