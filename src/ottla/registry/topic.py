"""The topic `_schemas`: read to its end for ever, and appended to only where nobody else has appended in between.

All Ottla registries in front of one cluster write as the same idempotent producer. Its sequence number is the fence: a batch
gets the sequence after the last one that the writer has read, and the leader refuses any other. So a registry that did not see
the newest records cannot append, wherever it runs, however long it was paused, and whatever became of the leader; and a batch
that is sent again is stored once. No election is needed for that, and Apache Kafka holds to it as Ottla does. A partition
forgets a producer after `producer.id.expiration.ms` of silence, and then takes any sequence number: two writers may both get
"stored" for the same one, the second as a repetition of the first, or one after the other. Therefore a writer reads back what
is at its offset, and counts only what lies directly behind what it had read when it decided. Every record names the offset
that it is meant for in the header `ottla.offset`, so every reader can tell a stray, a record of ours at another offset; it is
replayed as one (`state.py`).

An unclean election can take away records that were read, and somebody can delete the topic and make it again. `follow` raises
`LogReplaced` then: everything is to be read again.

Belongs to one event loop.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable, Sequence

from ottla.client.admin.configs import ConfigResource, describe_configs
from ottla.client.admin.producers import describe_producers
from ottla.client.admin.topics import NewTopic, create_topics
from ottla.client.cluster import Cluster
from ottla.errors import CorruptRecords, KafkaError, exception_of
from ottla.errors.codes import ErrorCode
from ottla.ids import ZERO_UUID, TopicPartition
from ottla.records.batch import BatchView, iterate_batches, sequence_after
from ottla.records.builder import build_produce_batch
from ottla.records.kernels import Record
from ottla.records.reader import read_records
from ottla.registry.errors import RegistryError
from ottla.registry.records import TOPIC
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from ottla.wire.messages.metadata import MetadataResponseTopic
from ottla.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData

logger = logging.getLogger("ottla.registry")

PRODUCER_ID = 0x6F74_746C_61  # "ottla" in ASCII: brokers give out ids from 0 on, in blocks of 1000, and never get there
PRODUCER_EPOCH = 0
OFFSET_HEADER = "ottla.offset"
PARTITION = TopicPartition(TOPIC, 0)
REPLICAS = 3
FETCH_BYTES = 16 * 1024 * 1024
FETCH_WAIT_MS = 2_000
RETRY_S = 0.1
NO_SESSION = -1
CONSUMER = -1
LOST_RACE = frozenset(
    {ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.DUPLICATE_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID}
)

Records = Sequence[tuple[bytes, bytes | None]]
Replay = Callable[[bytes | None, bytes | None, bool | None], None]
"""Takes key, value, and whether the record counts: None for a record that did not pass our fence, as Confluent's."""


class LogReplaced(Exception):
    """The log does not hold what was read from it: the text says why."""


class SchemasTopic:
    """Reads the topic into `replay`, and appends to it."""

    def __init__(self, reading: Cluster, writing: Cluster, replay: Replay) -> None:
        self._reading = reading
        """A cluster of its own: a fetch that waits must not hold up an append."""
        self._writing = writing
        self._replay = replay
        self._topic_id = ZERO_UUID
        self._leader = self._leader_epoch = -1
        self.next_offset = 0
        """The offset after the last record that was replayed."""
        self._sequence = 0
        """The sequence number that an append must have."""
        self._fingerprints: dict[int, bytes] = {}
        """What the newest batches of our producer hold, by base offset."""
        self._moved = asyncio.Condition()
        self.failure: str | None = None
        """Why the topic cannot be read now."""

    async def open(self) -> None:
        """Make the topic if it is missing, check that it is compacted, and read it to its end."""
        await self._find_or_create()
        await self._check_settings()
        end = (await self._fetch(0, self.next_offset))[1]
        while self.next_offset < end:
            end = max(end, await self._read(0))
        await self._learn_sequence()

    async def reopen(self, replay: Replay) -> None:
        """Read the topic from its begin into another state, after `LogReplaced`."""
        self._replay, self.next_offset, self._sequence = replay, 0, 0
        self._fingerprints.clear()
        await self.open()
        self.failure = None

    async def _find_or_create(self) -> None:
        try:
            topic = await self._reading.topic(TOPIC)
        except KafkaError as error:
            if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            await self._create()
            topic = await self._reading.retrying(lambda: self._existing())
        if len(topic.partitions) != 1:
            text = f"topic {TOPIC} has {len(topic.partitions)} partitions, and a registry needs exactly one: "
            raise RegistryError(500, 50001, f"{text}move its records to a topic with one partition")
        self._topic_id = topic.topic_id
        self._leader, self._leader_epoch = topic.partitions[0].leader_id, topic.partitions[0].leader_epoch

    async def _existing(self) -> MetadataResponseTopic:
        topic = (await self._reading.metadata([TOPIC])).topics[0]
        if topic.error_code:
            raise exception_of(ErrorCode.LEADER_NOT_AVAILABLE, f"topic {TOPIC} was created, and is not there yet")
        return topic

    async def _create(self) -> None:
        await self._writing.metadata([])
        replicas = min(REPLICAS, max(1, len(self._writing.brokers)))
        wanted = NewTopic(TOPIC, 1, replication_factor=replicas, configs={"cleanup.policy": "compact"})
        results = await create_topics(self._writing, [wanted])
        try:
            results[TOPIC]
        except KafkaError as error:
            if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:  # another registry was quicker
                raise

    async def _check_settings(self) -> None:
        """A topic that is not compacted loses schemas when its segments get old."""
        resource = ConfigResource("topic", TOPIC)
        found = next(iter((await describe_configs(self._writing, [resource])).values()))
        policy = found["cleanup.policy"].value
        if policy != "compact":
            raise RegistryError(
                500,
                50001,
                f"topic {TOPIC} has cleanup.policy={policy}, so its schemas would be deleted some day. "
                f"Mend it, then start again: ottla configs alter --topic {TOPIC} --set cleanup.policy=compact",
            )

    async def _learn_sequence(self) -> None:
        """The sequence number behind everything that was read, where the batches themselves do not say it: compaction may have
        removed the last one. The leader remembers it, but also those of batches that cannot be read before all replicas have
        them. So its memory counts only if its log ends where reading has ended.
        """
        results = await describe_producers(self._writing, [PARTITION])
        for producer in results[PARTITION]:
            if producer.producer_id == PRODUCER_ID:
                remembered = sequence_after(producer.last_sequence, 1)
                if remembered != self._sequence and await self._log_end() == self.next_offset:
                    self._sequence = remembered

    async def _log_end(self) -> int:
        """The end of the leader's log, with what is not yet on all replicas."""
        epoch = self._leader_epoch
        asked = OffsetForLeaderPartition(partition=0, current_leader_epoch=epoch, leader_epoch=epoch)
        request = OffsetForLeaderEpochRequest(
            replica_id=CONSUMER, topics=[OffsetForLeaderTopic(topic=TOPIC, partitions=[asked])]
        )
        response: OffsetForLeaderEpochResponse = await self._writing.once(self._leader, request)
        found = response.topics[0].partitions[0]
        if found.error_code:
            raise exception_of(found.error_code)
        return found.end_offset

    # Reading

    async def follow(self) -> None:
        """Read new records for ever, or until `LogReplaced`."""
        while True:
            try:
                await self._read(FETCH_WAIT_MS)
                self.failure = None
            except KafkaError as error:
                if self.failure is None:
                    logger.warning("topic %s cannot be read: %s", TOPIC, error)
                self.failure = str(error)
                await asyncio.sleep(RETRY_S)
                await self._find_leader()

    async def _find_leader(self) -> None:
        try:
            topic = (await self._reading.metadata([TOPIC])).topics[0]
        except KafkaError:
            return
        if topic.error_code:
            return
        if topic.topic_id != self._topic_id:
            raise LogReplaced("it was deleted and made again")
        self._leader, self._leader_epoch = topic.partitions[0].leader_id, topic.partitions[0].leader_epoch

    async def _read(self, wait_ms: int) -> int:
        """Replay what is there, and return the high watermark."""
        data, end = await self._fetch(wait_ms, self.next_offset)
        try:
            for view in iterate_batches(data, allow_cut_end=True):
                if view.next_offset > self.next_offset:
                    self._replay_batch(view)
        except CorruptRecords as problem:
            raise exception_of(ErrorCode.CORRUPT_MESSAGE, f"{PARTITION} at offset {self.next_offset}: {problem}") from None
        async with self._moved:
            self._moved.notify_all()
        return end

    async def _fetch(self, wait_ms: int, offset: int) -> tuple[bytes, int]:
        asked = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=FETCH_BYTES)
        request = FetchRequest(max_wait_ms=wait_ms, min_bytes=1, max_bytes=FETCH_BYTES, session_epoch=NO_SESSION)
        request.topics = [FetchTopic(topic=TOPIC, topic_id=self._topic_id, partitions=[asked])]
        response: FetchResponse = await self._reading.once(self._leader, request)
        if response.error_code:
            raise exception_of(response.error_code)
        data = response.responses[0].partitions[0]
        if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE and offset < data.log_start_offset:
            self.next_offset = data.log_start_offset  # the records before were deleted
            return b"", data.high_watermark
        if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            raise LogReplaced(
                f"it ends before offset {offset}, up to which it was read: records were lost in an unclean election"
            )
        if data.error_code:
            raise exception_of(data.error_code)
        return bytes(data.records or b""), data.high_watermark  # type: ignore[arg-type]

    def _replay_batch(self, view: BatchView) -> None:
        view.check()
        if not view.is_control:
            records = [each for each in read_records(view) if each.offset >= self.next_offset]
            for record in records:
                self._replay(record.key, record.value, _counts(record) if view.producer_id == PRODUCER_ID else None)
            if view.producer_id == PRODUCER_ID:
                self._fingerprints[view.base_offset] = _fingerprint([(each.key, each.value) for each in records])
                if len(self._fingerprints) > 1000:
                    del self._fingerprints[next(iter(self._fingerprints))]
        if view.producer_id == PRODUCER_ID:
            self._sequence = sequence_after(view.last_sequence, 1)
        self.next_offset = view.next_offset

    async def _read_until(self, offset: int) -> None:
        """Wait until everything before `offset` is replayed; `follow` does it."""
        await self.until(lambda: self.next_offset >= offset)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until the records that `follow` replays have made a condition true."""
        async with self._moved:
            await self._moved.wait_for(condition)

    # Appending

    async def append(self, records: Records, timeout_s: float) -> bool:
        """Store records as one batch after all that was read, and read them back. False if another registry was quicker: its
        records are replayed then, and the caller decides again.
        """
        try:
            async with asyncio.timeout(timeout_s):
                return await self._append(records)
        except TimeoutError:
            why = f": {self.failure}" if self.failure else ""
            raise RegistryError(
                500,
                50002,
                f"the records were not stored within {timeout_s:g} s{why}. They may be stored later: look before a retry",
            ) from None
        except LogReplaced as problem:  # `follow` finds it, too
            raise RegistryError(500, 50001, f"topic {TOPIC} is read again, because {problem}: try again in a moment") from None

    async def _append(self, records: Records) -> bool:
        expected, batch = self.next_offset, self._batch(records)
        while True:
            try:
                offset = await self._produce(batch)
                break
            except KafkaError as error:
                if error.code in LOST_RACE:
                    await self._catch_up()
                    return False
                if error.code == ErrorCode.MESSAGE_TOO_LARGE:
                    raise RegistryError(422, 42209, f"Schema too large: the broker refuses it: {error}") from None
                if not error.is_retriable:
                    raise RegistryError(500, 50001, f"topic {TOPIC} cannot be written: {error}") from None
                await asyncio.sleep(RETRY_S)
                await self._find_leader()
        await self._read_until(offset + len(records))
        return offset == expected and self._fingerprints.get(offset) == _fingerprint(records)

    def _batch(self, records: Records) -> bytes:
        """Records as one batch for the place after all that was read."""
        now_ms = self._writing.world.clock.now_ms()
        rows = [
            (now_ms, key, value, ((OFFSET_HEADER, b"%d" % offset),))
            for offset, (key, value) in enumerate(records, self.next_offset)
        ]
        sequence = self._sequence
        return bytes(build_produce_batch(rows, producer_id=PRODUCER_ID, producer_epoch=PRODUCER_EPOCH, base_sequence=sequence))

    async def _produce(self, batch: bytes) -> int:
        data = PartitionProduceData(index=0, records=batch)
        topic = TopicProduceData(name=TOPIC, topic_id=self._topic_id, partition_data=[data])
        request = ProduceRequest(acks=-1, timeout_ms=self._writing.settings.request_timeout_ms, topic_data=[topic])
        response: ProduceResponse = await self._writing.once(self._leader, request)
        answer = response.responses[0].partition_responses[0]
        if answer.error_code:
            raise exception_of(answer.error_code, answer.error_message)
        return answer.base_offset

    async def _catch_up(self) -> None:
        """Replay what others have stored. Their batches may still be on their way to the other replicas: wait for them."""
        before = (self.next_offset, self._sequence)
        while True:
            try:
                await self._read_until((await self._fetch(0, self.next_offset))[1])
                await self._learn_sequence()
            except KafkaError as error:
                if not error.is_retriable:
                    raise
                await self._find_leader()
            if (self.next_offset, self._sequence) != before:
                return
            await asyncio.sleep(RETRY_S)


def _counts(record: Record) -> bool | None:
    """Whether a record of our producer is where its writer meant it to be. None if it does not say: others copy records."""
    for name, value in record.headers:
        if name == OFFSET_HEADER:
            return value == b"%d" % record.offset
    return None


def _fingerprint(records: Sequence[tuple[bytes | None, bytes | None]]) -> bytes:
    digest = hashlib.sha256()
    for key, value in records:
        for part in (key, value):
            digest.update(b"-" if part is None else len(part).to_bytes(4, "big") + part)
    return digest.digest()
