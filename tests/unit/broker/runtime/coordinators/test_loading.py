"""Loading on the fast path gives the same state as decoding every record, for logs made at random."""

import asyncio
import gc
import sys
from collections.abc import Callable, Sequence
from itertools import count
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.support.nodes.held_partitions import virtual

from ottla.broker.runtime.coordinators import load as loading
from ottla.broker.runtime.coordinators.load import Loading
from ottla.coordinator.contract import CoordinatorRecord, NoFastReplay, Shard, put, tombstone
from ottla.coordinator.groups.settings import GroupSettings
from ottla.coordinator.groups.shard import GroupShard
from ottla.coordinator.transactions.shard import TransactionShard
from ottla.coordinator.transactions.table import TransactionSettings
from ottla.coordinator.transactions.transaction import Transaction, TransactionState, record_of, tombstone_of
from ottla.ids import ZERO_UUID, TopicPartition, Uuid
from ottla.records.builder import build_produce_batch
from ottla.records.compression import Codec
from ottla.records.control import build_end_marker
from ottla.wire.log_records import InternalLog, encode_coordinator_key, encode_coordinator_value
from ottla.wire.messages.classic_group_records import GroupMetadataKey, GroupMetadataValue
from ottla.wire.messages.offset_records import (
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from ottla.wire.messages.transaction_records import PartitionsSchema, TransactionLogKey, TransactionLogValue

NOW_MS = 1_700_000_000_000
AN_ID = Uuid(bytes(range(16)))
Rows = list[tuple[int, bytes | None, bytes | None, tuple[()]]]
Batch = tuple[Rows, int | None]
"""Rows, and the producer whose transaction they belong to. Without rows: its end, committed if the number is even."""

NAMES = ["", "a", "b", "ä" * 3, "n" * 200]
TEXTS = ["", "", "", "m", "ü" * 9, "x" * 16, "x" * 18, "x" * 125, "x" * 126, "x" * 127, "x" * 128, "\0"]
SEEDS = [range(8), pytest.param(range(8, 300), marks=pytest.mark.slow)]


class Story:
    """A random log: few partitions and ids, so that records overwrite each other; all versions, some records damaged."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)

    def seldom(self) -> bool:
        return self.chance.random() < 0.05

    def number(self, bits: int, *frequent: int) -> int:
        """A number of at most `bits` bits, mostly small, or one of `frequent`."""
        if frequent and self.chance.random() < 0.5:
            return self.chance.choice(frequent)
        bits = bits if self.seldom() else 3
        return self.chance.randrange(-(1 << bits - 1), 1 << bits - 1)

    def tagged(self, message: Any, is_flexible: bool) -> Any:
        """The message, seldom with an unknown tag."""
        message.unknown_tags = [(9, b"new")] if is_flexible and self.seldom() else None
        return message

    def offset_record(self) -> CoordinatorRecord:
        choice = self.chance.choice
        where = {"group": choice(NAMES), "topic": choice(NAMES), "partition": self.number(32, 0, 1)}
        told = {"offset": self.number(64), "metadata": choice(TEXTS), "commit_timestamp": self.number(64)}
        kind = choice(["put"] * 7 + ["delete", "delete", "legacy", "group", "no group"])
        if kind == "delete":
            return tombstone(OffsetCommitKey(**where))
        if kind == "legacy":
            return put(LegacyOffsetCommitKey(**where), LegacyOffsetCommitValue(**told))
        if kind == "group":
            return put(GroupMetadataKey(group=where["group"]), GroupMetadataValue(protocol_type="consumer", generation=3), 3)
        if kind == "no group":
            return tombstone(GroupMetadataKey(group=where["group"]))
        version = choice([0, 1, 2, 3, 3, 4, 4, 4, 4])
        expire_ms = self.number(64) if version == 1 else -1
        topic_id = choice([ZERO_UUID, AN_ID])
        value = OffsetCommitValue(leader_epoch=self.number(32), expire_timestamp=expire_ms, topic_id=topic_id, **told)
        return put(OffsetCommitKey(**where), self.tagged(value, version >= 4), version)

    def transaction_record(self) -> CoordinatorRecord:
        choice = self.chance.choice
        key = TransactionLogKey(transactional_id=choice(NAMES))
        if choice(range(6)) == 0:
            return tombstone(key)
        version = choice([0, 1, 1, 1, 1])
        topics = [
            self.tagged(PartitionsSchema(topic=choice(NAMES), partition_ids=list(range(choice([0, 1, 2, 3])))), version > 0)
            for _ in range(choice(range(4)))
        ]
        if topics and self.seldom():
            topics[0].partition_ids = [self.number(32) for _ in range(choice([126, 127, 128]))]
        if topics and self.seldom():
            topics *= choice([30, 126, 127, 128])
        value = TransactionLogValue(
            producer_id=self.number(64),
            producer_epoch=self.number(16),
            transaction_timeout_ms=self.number(32),
            transaction_status=choice(list(TransactionState)),
            transaction_partitions=choice([None, topics, topics]),
            transaction_last_update_timestamp_ms=self.number(64),
            transaction_start_timestamp_ms=self.number(64),
        )
        if version:
            value.previous_producer_id, value.next_producer_id = self.number(64, -1), self.number(64, -1)
            value.client_transaction_version, value.next_producer_epoch = self.number(16, 0, 2), self.number(16, -1)
        return put(key, self.tagged(value, version > 0), version)

    def damaged(self, data: bytes) -> bytes:
        """`data`, now and then with a few of its bytes changed, lost or added."""
        if not self.seldom():
            return data
        at = self.chance.randrange(len(data))
        byte = bytes([self.chance.randrange(256)])
        return self.chance.choice([data[:at], data + byte, data[:at] + byte + data[at + 1 :]])

    def batches(self, record: Callable[[], CoordinatorRecord]) -> list[Batch]:
        made: list[Batch] = []
        for _ in range(20):
            rows: Rows = []
            for _ in range(self.chance.choice([0, 1, 1, 2, 5, 120])):
                key, value = record()
                key_bytes = None if self.chance.random() < 0.01 else self.damaged(encode_coordinator_key(key))
                value_bytes = None if value is None else self.damaged(encode_coordinator_value(*value))
                rows.append((NOW_MS, key_bytes, value_bytes, ()))
            made.append((rows, self.chance.choice([None, None, 0, 1, 2, 3])))
        return made


def written(batches: Sequence[Batch], codec: Codec) -> bytes:
    """The log's bytes."""
    log = bytearray()
    offset = 0
    for rows, producer_id in batches:
        if rows and producer_id is None:
            batch = build_produce_batch(rows, codec=codec)
        elif rows:
            batch = build_produce_batch(rows, producer_id=producer_id or 0, producer_epoch=0, transactional=True)
        else:
            number = producer_id or 0
            batch = build_end_marker(
                is_commit=number % 2 == 0, producer_id=number, producer_epoch=0, coordinator_epoch=0, timestamp_ms=NOW_MS
            )
        batch[:8] = offset.to_bytes(8, "big")
        offset += max(1, len(rows))
        log += batch
    return bytes(log)


def loaded(shard: Any, kind: InternalLog, log: bytes, by_decoding: bool, from_offset: int = 0) -> Any:
    """How many records were replayed, or how that failed."""
    if by_decoding:
        shard = SimpleNamespace(replay=shard.replay, replay_end=shard.replay_end, fast_replay=NoFastReplay)

    async def load() -> Any:
        way = Loading(cast(Shard, shard), kind, cast(Any, SimpleNamespace(name="log")))
        try:
            return await way.take(log, from_offset), way.count
        except ValueError as failure:  # an unknown state
            return str(failure)

    return virtual(load())


def group_state(shard: GroupShard) -> Any:
    offsets, pending = shard.offsets.committed, shard.offsets.pending
    groups = [
        (group_id, vars(group) if hasattr(group, "__dict__") else group.state) for group_id, group in shard.table.by_id.items()
    ]
    return [*offsets], [*pending], repr(pending._producers), groups, offsets.by_group


def new_groups() -> GroupShard:
    return GroupShard(GroupSettings(), cast(Any, None), lambda: AN_ID)


def new_transactions() -> TransactionShard:
    return TransactionShard(TransactionSettings(), lambda: 0)


@pytest.mark.parametrize("seeds", SEEDS)
def test_fast_path_loads_the_same_offsets_as_decoding(seeds: range) -> None:
    for seed in seeds:
        story = Story(seed)
        log = written(story.batches(story.offset_record), Codec.GZIP if seed % 8 == 7 else Codec.NONE)
        fast, decoded = new_groups(), new_groups()
        ways = [loaded(shard, InternalLog.GROUPS, log, shard is decoded, seed % 4) for shard in (fast, decoded)]
        assert ways[0] == ways[1], seed
        assert group_state(fast) == group_state(decoded), seed


@pytest.mark.parametrize("seeds", SEEDS)
def test_fast_path_loads_the_same_transactions_as_decoding(seeds: range) -> None:
    for seed in seeds:
        story = Story(seed)
        log = written(story.batches(story.transaction_record), Codec.NONE)
        fast, decoded = new_transactions(), new_transactions()
        ways = [loaded(shard, InternalLog.TRANSACTIONS, log, shard is decoded, seed % 4) for shard in (fast, decoded)]
        assert ways[0] == ways[1], seed
        assert [*fast.table.by_id.items()] == [*decoded.table.by_id.items()], seed


def log_of(*records: CoordinatorRecord, producer_id: int | None = None) -> bytes:
    rows: Rows = [
        (NOW_MS, encode_coordinator_key(key), None if value is None else encode_coordinator_value(*value), ())
        for key, value in records
    ]
    return written([(rows, producer_id)], Codec.NONE)


def test_records_as_brokers_write_them_are_replayed_undecoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(loading, "decode_coordinator_key")
    key = OffsetCommitKey(group="g", topic="t", partition=1)
    offsets = log_of(
        put(key, OffsetCommitValue(offset=1, topic_id=AN_ID), 4),
        put(key, OffsetCommitValue(offset=2), 4),
        put(key, OffsetCommitValue(offset=3, metadata="ä"), 3),
        tombstone(key),
        put(key, OffsetCommitValue(offset=4, metadata="of a stream", topic_id=AN_ID), 4),
    )
    groups = new_groups()
    assert loaded(groups, InternalLog.GROUPS, offsets, False) == (5, 5)
    assert [committed.offset for _, committed in groups.offsets.committed] == [4]
    assert loaded(groups, InternalLog.GROUPS, log_of(put(key, OffsetCommitValue(), 4), producer_id=7), False) == (1, 1)
    assert [producer_id for producer_id, _, _ in groups.offsets.pending] == [7]
    where = frozenset({TopicPartition("t", 1), TopicPartition("t", 2), TopicPartition("u", 0)})
    begun = Transaction("a", 5, 0, TransactionState.ONGOING, 1000, where, NOW_MS, NOW_MS, 4, 6, 2)
    ended = begun._replace(transactional_id="b", state=TransactionState.COMPLETE_COMMIT, partitions=frozenset())
    empty = Transaction("c", 5, 0, TransactionState.EMPTY, 1000)
    states = log_of(*(record_of(each, 2) for each in (begun, ended, empty)), tombstone_of("d"))
    transactions = new_transactions()
    assert loaded(transactions, InternalLog.TRANSACTIONS, states, False) == (4, 4)
    assert transactions.table.by_id == {"a": begun, "b": ended, "c": empty}


@pytest.mark.parametrize("by_decoding", [False, True])
def test_loaded_offsets_are_untracked_by_the_garbage_collector(by_decoding: bool) -> None:
    """A collection over a million tracked offsets would stop the node for a tenth of a second each time."""
    keys = [OffsetCommitKey(group="g", topic="t", partition=index) for index in range(10)]
    log = log_of(*(put(key, OffsetCommitValue(offset=1000, topic_id=AN_ID), 4) for key in keys))
    groups = new_groups()
    assert loaded(groups, InternalLog.GROUPS, log, by_decoding) == (10, 10)
    gc.collect()
    partitions = groups.offsets.committed.by_group["g"]["t"]
    if sys.version_info < (3, 14):  # later ones track every dict: measured 0.03 s for a million offsets
        assert not gc.is_tracked(partitions)
    assert not any(map(gc.is_tracked, partitions.values()))


def test_loading_yields_to_the_loop_when_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """However few records it took."""
    key = OffsetCommitKey(group="g", topic="t", partition=1)
    log = log_of(*[put(key, OffsetCommitValue(offset=1), 4)] * (3 * loading.RECORDS_PER_LOOK))
    turns: list[float] = []

    async def load(look_s: float) -> list[float]:
        way = Loading(new_groups(), InternalLog.GROUPS, cast(Any, SimpleNamespace(name="log")))
        passed = count(step=look_s)
        way._loop = cast(Any, SimpleNamespace(time=lambda: next(passed)))
        way._turn_began_s = 0.0
        turns.clear()
        other = asyncio.create_task(note_turns())
        await way.take(log, 0)
        other.cancel()
        return turns

    async def note_turns() -> None:
        while True:
            turns.append(1)
            await asyncio.sleep(0)

    assert len(virtual(load(look_s=0.0))) == 0
    assert len(virtual(load(look_s=loading.TURN_S))) >= 2
