"""Loads a shard: replays its partition of the internal topic from the log's start.

Everything in the log is replayed, including records above the high watermark: the shard's first response waits until they are
committed. A record that cannot be decoded was written by a newer release, or is damaged: it is logged and skipped, as in Apache
Kafka, so that the other groups of the partition can be served.

A fast path replays the most frequent records from their bytes (`FastReplay`); all others are decoded first. Other tasks run
every few milliseconds, because a log of a million records takes seconds.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from ottla.coordinator.contract import CoordinatorRecord, Producer, Shard
from ottla.errors import CorruptRecords, DecodeError
from ottla.log.read import Isolation
from ottla.records.batch import BatchView, iterate_batches
from ottla.records.control import parse_end_marker
from ottla.records.kernels import RecordIterator
from ottla.records.layout import CODEC_MASK, CONTROL, HEADER_SIZE, LOG_OVERHEAD, TRANSACTIONAL
from ottla.records.reader import read_records
from ottla.wire.log_records import InternalLog, decode_coordinator_key, decode_coordinator_value

if TYPE_CHECKING:
    from ottla.broker.partitions.cold_reads import ColdReads
    from ottla.broker.partitions.partition import Partition
    from ottla.records.kernels import Record

logger = logging.getLogger("ottla.coordinator")

READ_BYTES = 1 << 20
TURN_S = 0.004
"""How long records are replayed before other tasks run."""
RECORDS_PER_TURN = 2000
"""How many records are replayed at most before other tasks run; in the simulator the clock does not move during a replay."""
RECORDS_PER_LOOK = 50
"""How many records are replayed between two looks at the clock: about a millisecond, if they have to be decoded."""


async def load_shard(
    shard: Shard, log_kind: InternalLog, partition: Partition, cold_reads: ColdReads, read_bytes: int = READ_BYTES
) -> int:
    """Replay the partition into `shard`; returns the number of records. Raises a `KafkaError` if the log cannot be read.

    Reads `read_bytes` at a time, at least one batch. Other tasks run in between; the caller must make sure that none of them
    appends to the partition.
    """
    loading = Loading(shard, log_kind, partition)
    offset = partition.log.log_start_offset
    while offset < partition.log.log_end_offset:
        info = partition.read(offset, read_bytes, Isolation.LOG_END)
        if info.records is None:
            break
        if cold_reads.is_cold(partition.log, info):
            await cold_reads.warm(info.records)
        offset = await loading.take(info.records.read(), offset)
        await loading.let_others_go_on()
    return loading.count


class Loading:
    """The loading of one shard, and how long it has kept the loop."""

    __slots__ = ("_log_kind", "_loop", "_partition", "_replay_fast", "_shard", "_turn_began_s", "_turn_records", "count")

    def __init__(self, shard: Shard, log_kind: InternalLog, partition: Partition) -> None:
        self._shard = shard
        self._replay_fast = shard.fast_replay().replay
        self._log_kind = log_kind
        self._partition = partition
        self._loop = asyncio.get_running_loop()
        self._turn_began_s = self._loop.time()
        self._turn_records = 0
        self.count = 0
        """How many records were replayed."""

    async def take(self, data: bytes, from_offset: int) -> int:
        """Replay the whole batches in `data`, from `from_offset` on; returns the offset behind them."""
        gathered: list[Record] = []  # of batches without a producer: most have one or two records and are replayed together
        start = from_offset
        for batch in iterate_batches(data, allow_cut_end=True):
            attributes = batch.attributes
            records = self._records_of(batch, data, from_offset)
            from_offset = batch.base_offset + batch.last_offset_delta + 1
            if not attributes & (TRANSACTIONAL | CONTROL):
                gathered += records
                if len(gathered) >= RECORDS_PER_LOOK:
                    await self._replay_in_turns(gathered, None)
                    gathered = []
                continue
            await self._replay_in_turns(gathered, None)
            gathered = []
            producer = Producer(batch.producer_id, batch.producer_epoch) if attributes & TRANSACTIONAL else None
            if attributes & CONTROL:
                self._replay_ends(batch, records, producer)
                await self._look(len(records))
            else:
                await self._replay_in_turns(records, producer)
        await self._replay_in_turns(gathered, None)
        if from_offset == start:
            BatchView(data).check_size()  # a read begins with a whole batch: this one is damaged
        return from_offset

    async def _replay_in_turns(self, records: list[Record], producer: Producer | None) -> None:
        while len(records) > RECORDS_PER_LOOK:
            self._replay(records[:RECORDS_PER_LOOK], producer)
            del records[:RECORDS_PER_LOOK]
            await self._look(RECORDS_PER_LOOK)
        if records:
            self._replay(records, producer)
            await self._look(len(records))

    async def _look(self, records: int) -> None:
        """Count replayed records; let other tasks run if it is time."""
        self._turn_records += records
        if self._turn_records >= RECORDS_PER_TURN or self._loop.time() - self._turn_began_s >= TURN_S:
            await self.let_others_go_on()

    async def let_others_go_on(self) -> None:
        await asyncio.sleep(0)
        self._turn_records = 0
        self._turn_began_s = self._loop.time()

    def _records_of(self, batch: BatchView, data: bytes, from_offset: int) -> list[Record]:
        """The records of one batch in `data`, from `from_offset` on; none if the batch is damaged."""
        try:
            if batch.attributes & CODEC_MASK:
                records = read_records(batch)
            else:  # cheaper for uncompressed batches of one or two records, and there may be very many
                start, end = batch.position + HEADER_SIZE, batch.position + LOG_OVERHEAD + batch.batch_length
                records = list(RecordIterator(data, start, end, batch.count, batch.base_offset, batch.base_timestamp, None))
        except CorruptRecords as damage:
            self._passed_over(batch, damage)
            return []
        if batch.base_offset < from_offset:
            return [record for record in records if record.offset >= from_offset]
        return records

    def _replay_ends(self, batch: BatchView, records: list[Record], producer: Producer | None) -> None:
        if producer is None:
            return
        try:
            for record in records:
                self._shard.replay_end(producer, parse_end_marker(record).is_commit)
        except CorruptRecords as damage:
            self._passed_over(batch, damage)

    def _passed_over(self, batch: BatchView, damage: CorruptRecords) -> None:
        logger.error("%s: the batch at offset %d is skipped: %s", self._partition.name, batch.base_offset, damage)

    def _replay(self, records: list[Record], producer: Producer | None) -> None:
        """Replay records of one producer in their order, each on the fast path if possible, else decoded."""
        at, end = 0, len(records)
        self.count += end
        while (at := self._replay_fast(records, at, producer)) < end:
            decoded = self._decoded(records[at])
            if decoded is None:
                self.count -= 1
            else:
                self._shard.replay(decoded, records[at].offset, producer)
            at += 1

    def _decoded(self, record: Record) -> CoordinatorRecord | None:
        name = self._partition.name
        if record.key is None:
            logger.error("%s: the record at offset %d has no key and is skipped", name, record.offset)
            return None
        try:
            key = decode_coordinator_key(self._log_kind, record.key)
            value = None if record.value is None else decode_coordinator_value(self._log_kind, key, record.value)
        except DecodeError as fault:
            logger.warning("%s: the record at offset %d is skipped: %s", name, record.offset, fault)
            return None
        return CoordinatorRecord(key, value)
