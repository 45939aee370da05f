"""Batches for the machine: bytes as producers, coordinators and leaders send them, and the model's view of them."""

from dataclasses import replace
from random import Random

from tests.model.partition_log.model import SEQUENCES, Batch
from tests.model.partition_log.world import FOREVER, LogWorld

from ottla.config.topic import LogConfig
from ottla.records.builder import build_batch
from ottla.records.compression import Codec
from ottla.records.control import build_end_marker
from ottla.records.record import Record


def random_config(random: Random) -> LogConfig:
    """Settings so small that a few appends roll, fill indexes, and make compaction worthwhile."""
    return LogConfig(
        segment_bytes=random.choice((700, 1200, 2500, 6000)),
        index_interval_bytes=random.choice((1, 150, 400)),
        segment_index_bytes=random.choice((60, 120, 10_000)),
        segment_ms=random.choice((5_000, 60_000, FOREVER)),
        file_delete_delay_ms=random.choice((0, 1000, 60_000)),
        message_timestamp_type=random.choice(("CreateTime", "CreateTime", "LogAppendTime")),
        message_timestamp_after_max_ms=FOREVER,
        cleanup_policy=random.choice((("delete",), ("compact",), ("compact",), ("compact", "delete"))),
        delete_retention_ms=random.choice((0, 10_000)),
        retention_ms=random.choice((-1, 20_000, 120_000)),
        retention_bytes=random.choice((-1, 3000)),
        min_cleanable_dirty_ratio=0.0,
        flush_messages=random.choice((20, FOREVER)),
    )


def make_records(world: LogWorld, first_offset: int) -> list[Record]:
    random = world.random
    now_ms = world.clock.now_ms()
    records = []
    for index in range(random.choice((1, 1, 2, 3, 6))):
        timestamp = now_ms - random.choice((0, 0, 1, 50, 3000))
        key: bytes | None = b"key-%d" % random.randrange(10)
        if random.random() < 0.1:
            key = b"a key of more than fifteen bytes %d" % random.randrange(3)
        elif not world.config.compact and random.random() < 0.3:
            key = None
        value = None if random.random() < 0.15 else b"%d:" % next(world.numbers) + b"v" * random.choice((0, 10, 80))
        headers = (("h", b"1"), ("none", None)) if random.random() < 0.1 else ()
        records.append(Record(first_offset + index, timestamp, key, value, headers))
    return records


def odd_timestamps(world: LogWorld, records: list[Record]) -> list[Record]:
    """Times as clients with broken clocks send them."""
    odd = world.random.choice((-1, 0, 5, world.clock.now_ms() + 86_400_000))
    return [Record(record.offset, odd, record.key, record.value, record.headers) for record in records]


def data_batch(
    world: LogWorld,
    records: list[Record],
    leader_epoch: int,
    producer: tuple[int, int, int] = (-1, -1, -1),
    transactional: bool = False,
    gap: int = 0,
) -> tuple[bytearray, Batch]:
    """The bytes of a batch, and the model's view of them."""
    producer_id, producer_epoch, base_sequence = producer
    last_offset = records[-1].offset + gap
    data = build_batch(
        records,
        leader_epoch=leader_epoch,
        codec=world.random.choice(tuple(Codec)),
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        transactional=transactional,
        last_offset_delta=last_offset - records[0].offset,
    )
    batch = Batch(
        records[0].offset,
        last_offset,
        leader_epoch,
        tuple(records),
        max(record.timestamp for record in records),
        producer_id,
        producer_epoch,
        base_sequence,
        transactional,
    )
    return data, batch


def marker_batch(
    world: LogWorld, offset: int, leader_epoch: int, producer: tuple[int, int], commits: bool, coordinator_epoch: int
) -> tuple[bytearray, Batch]:
    now_ms = world.clock.now_ms()
    data = build_end_marker(
        is_commit=commits,
        producer_id=producer[0],
        producer_epoch=producer[1],
        coordinator_epoch=coordinator_epoch,
        timestamp_ms=now_ms,
        base_offset=offset,
        leader_epoch=leader_epoch,
    )
    batch = Batch(
        offset,
        offset,
        leader_epoch,
        (Record(offset, now_ms, b"\0\0\0\1" if commits else b"\0\0\0\0", b"\0\0" + coordinator_epoch.to_bytes(4, "big")),),
        now_ms,
        *producer,
        -1,
        True,
        True,
        commits,
        coordinator_epoch,
    )
    return data, batch


def as_appended(world: LogWorld, batch: Batch) -> Batch:
    """A produced batch as the log stores it: with its offsets, its epoch, perhaps its append time."""
    shift = world.model.log_end - batch.base_offset
    now_ms = world.clock.now_ms()
    is_append_time = world.config.is_append_time
    records = tuple(
        Record(r.offset + shift, now_ms if is_append_time else r.timestamp, r.key, r.value, r.headers) for r in batch.records
    )
    return replace(
        batch,
        base_offset=batch.base_offset + shift,
        last_offset=batch.last_offset + shift,
        leader_epoch=world.leader_epoch,
        records=records,
        max_timestamp=now_ms if is_append_time else batch.max_timestamp,
        append_time=is_append_time,
    )


def follower_fetch(world: LogWorld) -> tuple[bytes, list[Batch]]:
    random, model = world.random, world.model
    producers = {key: known.copy() for key, known in model.producers.items()}
    offset = model.log_end
    if world.has_gaps:
        offset += random.choice((0, 0, 0, 1, 7)) + ((1 << 31) + 5 if random.random() < 0.02 else 0)
    data, batches = b"", []
    for _ in range(random.choice((1, 1, 2, 3))):
        producer, transactional = (-1, -1, -1), False
        known = None
        if random.random() < 0.4:
            producer_id = random.randrange(8)
            known = producers.get(producer_id)
            transactional = producer_id >= 4
            if known is not None and known.transaction_first is not None and not transactional:
                known, transactional = None, False
            elif known is not None:
                last = known.sent[-1].last_sequence if known.sent else -1
                producer = (producer_id, known.epoch, (last + 1) % SEQUENCES)
        if known is not None and transactional and random.random() < 0.4:
            commits, coordinator_epoch = random.random() < 0.5, max(0, known.coordinator_epoch)
            made = marker_batch(world, offset, world.leader_epoch, producer[:2], commits, coordinator_epoch)
        else:
            records = make_records(world, offset)
            if producer[0] < 0:
                transactional = False
            made = data_batch(
                world, records, world.leader_epoch, producer, transactional, 3 * (world.has_gaps and random.random() < 0.3)
            )
        if len(data) + len(made[0]) > world.config.segment_bytes and batches:
            break
        data += bytes(made[0])
        batches.append(made[1])
        if known is not None:
            known.take(made[1])
        offset = made[1].next_offset + 5 * (world.has_gaps and random.random() < 0.3)
    return data, batches
