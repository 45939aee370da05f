"""The limit on producers: those idle the longest are forgotten, none that may still retry, and the rest are refused."""

import asyncio
from typing import Any

import pytest

from ottla.config.topic import LogConfig
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.log.partition_log import LogOptions, PartitionLog
from ottla.log.producers.append_checks import AppendOrigin
from ottla.log.producers.producer_limit import COUNT_MS, PROTECTED_MS, ProducerLimit
from ottla.log.recovery.log_loader import load_log
from ottla.records.builder import build_batch
from ottla.records.control import build_end_marker
from ottla.records.kernels import Record
from ottla.sim.disk import MemoryDisk
from ottla.sim.world import ManualClock

LIMIT = 20


class Node:
    """Two logs with one limit."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.disk = MemoryDisk()
        self.limit = ProducerLimit(LIMIT, self.clock, lambda: (log.producers for log in self.logs))
        self.logs: list[PartitionLog] = []
        self.logs = [self.open(f"/data/topic-{index}") for index in range(2)]

    def open(self, folder: str) -> PartitionLog:
        self.disk.make_directory(folder)
        options = LogOptions(producer_expiration_ms=10**12, producer_limit=self.limit)
        log, _ = asyncio.run(load_log(self.disk, self.clock, folder, LogConfig(), options))
        return log

    def write(self, producer_id: int, sequence: int = 0, log: int = 0, timestamp: int | None = None, **how: Any) -> Any:
        time_ms = self.clock.now_ms() if timestamp is None else timestamp
        batch = build_batch(
            [Record(0, time_ms, None, b"v", ())], producer_id=producer_id, producer_epoch=0, base_sequence=sequence, **how
        )
        return self.logs[log].append_as_leader(batch, 0)

    def known(self, log: int = 0) -> set[int]:
        return set(self.logs[log].producers.producers)


def test_those_idle_the_longest_are_forgotten_in_all_logs(caplog: pytest.LogCaptureFixture) -> None:
    node = Node()
    for number in range(LIMIT):
        node.write(number, log=number % 2)
        node.clock.advance(1000)
    node.clock.advance(PROTECTED_MS)
    for log in range(2):
        node.write(log, sequence=1, log=log)  # the oldest, but in use: on the fast path
    node.write(100)
    assert node.known() | node.known(1) == set(range(LIMIT)) - {2, 3} | {100}
    (line,) = [record.message for record in caplog.records if "ottla.max.producer.ids is 20" in record.message]
    assert line.startswith("2 producers, idle for 31")
    node.write(101)
    assert len(node.known() | node.known(1)) == LIMIT


def test_a_new_producer_is_refused_if_all_others_may_still_retry(caplog: pytest.LogCaptureFixture) -> None:
    node = Node()
    for number in range(LIMIT):
        node.write(number, timestamp=1)  # old by their own timestamps: those do not count
    node.clock.advance(PROTECTED_MS - 1)
    for stranger in range(100, 200):
        with pytest.raises(
            KafkaError, match=r"1\d\d, new to topic-1, .* 20 producers .* ottla\.max\.producer\.ids is 20"
        ) as refused:
            node.write(stranger, log=1)
        assert refused.value.code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert node.logs[1].log_end_offset == 0
    assert len([record for record in caplog.records if "is refused" in record.message]) == 1
    first = node.write(3)
    assert first.is_duplicate, "a retry is still recognised"
    assert node.write(3, sequence=1).first_offset == LIMIT
    node.clock.advance(COUNT_MS)
    node.write(100, log=1)
    assert node.known() >= {3}


def test_open_transactions_are_kept_however_idle() -> None:
    node = Node()
    for number in range(LIMIT):
        node.write(number, transactional=True)
    node.clock.advance(10 * PROTECTED_MS)
    with pytest.raises(KafkaError, match="is refused"):
        node.write(100)
    marker = build_end_marker(
        is_commit=True, producer_id=7, producer_epoch=0, coordinator_epoch=0, timestamp_ms=node.clock.now_ms()
    )
    node.logs[0].append_as_leader(marker, 0, AppendOrigin.COORDINATOR)
    node.clock.advance(PROTECTED_MS - 1)
    with pytest.raises(KafkaError, match="is refused"):
        node.write(100)
    node.clock.advance(COUNT_MS)
    node.write(100)
    assert 7 not in node.known()


def test_producers_of_a_loaded_log_are_protected_at_first() -> None:
    node = Node()
    for number in range(LIMIT):
        node.write(number)
    node.clock.advance(10 * PROTECTED_MS)
    node.logs[0] = node.open("/data/topic-0")
    assert len(node.known()) == LIMIT
    with pytest.raises(KafkaError, match="is refused"):
        node.write(100)
    node.clock.advance(PROTECTED_MS)
    node.write(100)
    assert 100 in node.known()


def test_expired_producers_make_room() -> None:
    node = Node()
    for number in range(LIMIT):
        node.write(number)
    node.clock.advance(1000)
    node.logs[0].producers.remove_expired(node.clock.now_ms(), 1000)
    for number in range(100, 100 + LIMIT):
        node.write(number)
    assert node.known() == set(range(100, 100 + LIMIT))
