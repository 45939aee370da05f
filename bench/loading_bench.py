"""CPU cost of loading a coordinator's partition: a node in this process fills its internal topics and reads them back.

    python -m bench.loading_bench [--rounds 5] [--folder /dev/shm] [--json]

Each row has its own log of `RECORDS` records. It is loaded as at a start, without sockets, and also with every record decoded
("decoded"), in turns; the best round of each counts. Replaying from bytes must be `RATIO_MIN` times as fast as decoding.

    commits × 10      offsets of 20 groups for 2,500 partitions each, ten to a batch, each committed twice
    commits × 1       the same, one to a batch
    tombstones        the same, every other batch deletes
    in transactions   offsets in batches of ten, each ended by its marker
    transactions      the states of transactional ids, one to a batch
"""

import asyncio
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from bench.in_memory import main

from ottla.broker.node import Node
from ottla.broker.partitions.cold_reads import ColdReads
from ottla.broker.partitions.partition import Partition
from ottla.broker.runtime.coordinators.internal_topics import ensure_internal_topic
from ottla.broker.runtime.coordinators.load import load_shard
from ottla.broker.runtime.coordinators.runtime import CoordinatorRuntime
from ottla.coordinator.contract import CoordinatorRecord, NoFastReplay, Producer, put, tombstone
from ottla.coordinator.transactions.transaction import Transaction, TransactionState, record_of
from ottla.ids import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, TopicPartition, Uuid
from ottla.log.producers.append_checks import AppendOrigin
from ottla.records.builder import build_produce_batch
from ottla.records.control import build_end_marker
from ottla.wire.log_records import InternalLog, encode_coordinator_key, encode_coordinator_value
from ottla.wire.messages.offset_records import OffsetCommitKey, OffsetCommitValue

RECORDS = 100_000
GROUPS = 20
PARTITIONS = 2_500
PARTITIONS_PER_TOPIC = 100
IDS = 10_000
RATIO_MIN = 2.0
DECODED = "{}, decoded"
NOW_MS = 1_700_000_000_000

Batch = tuple[list[CoordinatorRecord], Producer | None]


def offset_record(number: int) -> CoordinatorRecord:
    """The commit with this number. Each group in turn commits all its partitions, then the first begins again."""
    group, place = number // PARTITIONS % GROUPS, number % PARTITIONS
    topic, partition = divmod(place, PARTITIONS_PER_TOPIC)
    key = OffsetCommitKey(group=f"bench-group-{group}", topic=f"bench-topic-{topic}", partition=partition)
    value = OffsetCommitValue(
        offset=123_456 + number, leader_epoch=3, commit_timestamp=NOW_MS + number, topic_id=Uuid(bytes(15) + bytes([topic + 1]))
    )
    return put(key, value, 4)


def commits(per_batch: int) -> Iterator[Batch]:
    for first in range(0, RECORDS, per_batch):
        yield [offset_record(number) for number in range(first, first + per_batch)], None


def tombstones() -> Iterator[Batch]:
    for first in range(0, RECORDS, 10):
        records = [offset_record(number) for number in range(first, first + 10)]
        yield (records if first // 10 % 2 else [tombstone(record.key) for record in records]), None


def in_transactions() -> Iterator[Batch]:
    for first in range(0, RECORDS, 10):
        yield [offset_record(number) for number in range(first, first + 10)], Producer(first // 10, 0)


def transactions() -> Iterator[Batch]:
    steps = (TransactionState.ONGOING, TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT)
    where = frozenset(TopicPartition("bench", index) for index in range(3))
    for number in range(RECORDS):
        round_, name = divmod(number, IDS)
        state = steps[round_ % len(steps)]
        partitions = frozenset() if state == TransactionState.COMPLETE_COMMIT else where
        known = Transaction(
            f"bench-id-{name}", name, round_, state, 60_000, partitions, NOW_MS, NOW_MS + number, name, client_version=2
        )
        yield [record_of(known, 2)], None


def fill(partition: Partition, batches: Iterator[Batch]) -> None:
    for records, producer in batches:
        rows = [
            (NOW_MS, encode_coordinator_key(key), None if value is None else encode_coordinator_value(*value), ())
            for key, value in records
        ]
        if producer is None:
            partition.append(build_produce_batch(rows), -1, origin=AppendOrigin.COORDINATOR)
            continue
        data = build_produce_batch(rows, producer_id=producer.id, producer_epoch=producer.epoch, transactional=True)
        verified = partition.log.producers.begin_verification(producer.id, -1, 0, False, 0)
        partition.append(data, -1, origin=AppendOrigin.COORDINATOR, verified_by=verified)
        marker = build_end_marker(
            is_commit=True, producer_id=producer.id, producer_epoch=producer.epoch, coordinator_epoch=0, timestamp_ms=NOW_MS
        )
        partition.append(marker, -1, origin=AppendOrigin.COORDINATOR)


Row = tuple[CoordinatorRuntime[Any], InternalLog, Partition]


async def prepared(node: Node) -> dict[str, Row]:
    """Fill the logs of all rows."""
    services = node.services
    logs: dict[str, tuple[str, Iterator[Batch]]] = {
        "commits × 10": (OFFSETS_TOPIC, commits(10)),
        "commits × 1": (OFFSETS_TOPIC, commits(1)),
        "tombstones": (OFFSETS_TOPIC, tombstones()),
        "in transactions": (OFFSETS_TOPIC, in_transactions()),
        "transactions": (TRANSACTIONS_TOPIC, transactions()),
    }
    rows: dict[str, Row] = {}
    for index, (name, (topic, batches)) in enumerate(logs.items()):
        await ensure_internal_topic(services, topic)
        while index not in services.partitions.by_name.get(topic, {}):
            await asyncio.sleep(0.01)
        partition = services.partitions.by_name[topic][index]
        fill(partition, batches)
        if topic == OFFSETS_TOPIC:
            rows[name] = (services.coordinators.groups, InternalLog.GROUPS, partition)
        else:
            rows[name] = (services.coordinators.transactions, InternalLog.TRANSACTIONS, partition)
    return rows


async def measure(row: Row, cold_reads: ColdReads, is_decoded: bool) -> float:
    """Seconds of CPU per record."""
    host, log_kind, partition = row
    shard = host._make(partition)
    if is_decoded:
        shard = SimpleNamespace(replay=shard.replay, replay_end=shard.replay_end, fast_replay=NoFastReplay)
    start = time.process_time_ns()
    count = await load_shard(shard, log_kind, partition, cold_reads, host.read_bytes)
    taken = time.process_time_ns() - start
    assert count == RECORDS, count
    return taken / count / 1e9


async def run(node: Node, rounds: int) -> dict[str, float]:
    rows = await prepared(node)
    best: dict[str, float] = {}
    for _ in range(rounds):
        for name, row in rows.items():
            for label, is_decoded in ((name, False), (DECODED.format(name), True)):
                taken = await measure(row, node.services.partitions.cold_reads, is_decoded)
                best[label] = min(best.get(label, 1.0), taken)
    for name in rows:
        ratio = best[DECODED.format(name)] / best[name]
        assert ratio >= RATIO_MIN, f"{name}: decoding every record takes only {ratio:.1f} times as long"
    return best


if __name__ == "__main__":
    main("CPU of loading a coordinator, per record", 5, run, "record")
