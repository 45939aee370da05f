"""Reading an internal topic's partition from its start, into a new shard.

Everything in the log is replayed, also what is not committed yet: the shard's first answer waits for that. What cannot be
decoded was written by a newer release, or is damaged: it is logged and passed over, as Apache does, so that the other groups of
the partition can be served.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from ottla.coordinator.contract import CoordinatorRecord, Producer, Shard
from ottla.errors import CorruptRecords, DecodeError
from ottla.log.read import Isolation
from ottla.records.batch import HEADER_SIZE, BatchView, Buffer
from ottla.records.control import parse_end_marker
from ottla.records.reader import read_records
from ottla.wire.log_records import InternalLog, decode_coordinator_key, decode_coordinator_value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ottla.broker.partitions.cold_reads import ColdReads
    from ottla.broker.partitions.partition import Partition
    from ottla.records.kernels import Record

logger = logging.getLogger("ottla.coordinator")

READ_BYTES = 1 << 20
RECORDS_PER_TURN = 500
"""How many records are replayed before others have their turn: a few milliseconds' worth."""


async def load_shard(
    shard: Shard, log_kind: InternalLog, partition: Partition, cold_reads: ColdReads, read_bytes: int = READ_BYTES
) -> int:
    """Replay the partition into `shard`; how many records that were. `KafkaError` if the log cannot be read.

    Reads `read_bytes` at a time, at least one batch, and lets the loop go on after every few records. Whoever calls it keeps
    others from appending meanwhile.
    """
    count = count_before = 0
    offset = partition.log.log_start_offset
    while offset < partition.log.log_end_offset:
        info = partition.read(offset, read_bytes, Isolation.LOG_END)
        if info.records is None:
            break
        if cold_reads.is_cold(partition.log, info):
            await cold_reads.warm(info.records)
        for batch in _whole_batches(info.records.read()):
            count += await _replay_batch(shard, log_kind, partition, batch, offset)
            offset = batch.next_offset
            if count - count_before >= RECORDS_PER_TURN:
                count_before = count
                await asyncio.sleep(0)
        await asyncio.sleep(0)
    return count


def _whole_batches(data: Buffer) -> Iterator[BatchView]:
    """The batches that were read whole. What is cut off at the end comes first, and whole, with the next read."""
    position = 0
    while position < len(data):
        left_bytes = len(data) - position
        if position and (left_bytes < HEADER_SIZE or BatchView(data, position).size > left_bytes):
            return
        batch = BatchView(data, position)
        batch.check_size()
        yield batch
        position += batch.size


async def _replay_batch(shard: Shard, log_kind: InternalLog, partition: Partition, batch: BatchView, from_offset: int) -> int:
    """Replay the records of one batch from `from_offset` on."""
    producer = Producer(batch.producer_id, batch.producer_epoch) if batch.is_transactional else None
    count = 0
    try:
        for record in read_records(batch):
            if record.offset < from_offset:
                continue
            if batch.is_control:
                if producer is not None:
                    shard.replay_end(producer, parse_end_marker(record).is_commit)
                continue
            decoded = _decoded(log_kind, partition, record)
            if decoded is not None:
                shard.replay(decoded, record.offset, producer)
                count += 1
                if count % RECORDS_PER_TURN == 0:
                    await asyncio.sleep(0)
    except CorruptRecords as damage:
        logger.error("%s: the batch at offset %d is passed over: %s", partition.name, batch.base_offset, damage)
    return count


def _decoded(log_kind: InternalLog, partition: Partition, record: Record) -> CoordinatorRecord | None:
    if record.key is None:
        logger.error("%s: the record at offset %d has no key and is passed over", partition.name, record.offset)
        return None
    try:
        key = decode_coordinator_key(log_kind, record.key)
        value = None if record.value is None else decode_coordinator_value(log_kind, key, record.value)
    except DecodeError as fault:
        logger.warning("%s: the record at offset %d is passed over: %s", partition.name, record.offset, fault)
        return None
    return CoordinatorRecord(key, value)
