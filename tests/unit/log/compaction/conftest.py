"""A log on a simulated disk, with a compactor."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from ottla.config.topic import LogConfig
from ottla.log.compaction.compactor import Compactor
from ottla.log.compaction.plan import CleanerSettings, CompactionStats
from ottla.log.partition_log import LogOptions, PartitionLog
from ottla.log.recovery.log_loader import load_log
from ottla.records.builder import build_batch
from ottla.records.record import Record
from ottla.sim.disk import MemoryDisk
from ottla.sim.world import InPlaceHelpers, ManualClock

FOLDER = "/data/topic-0"
COMPACT = LogConfig(cleanup_policy=("compact",), delete_retention_ms=1000)


class Harness:
    """One log, and what a test does with it. Records get the clock's time."""

    def __init__(self, config: LogConfig = COMPACT, settings: CleanerSettings | None = None, seed: int = 0) -> None:
        self.clock = ManualClock()
        self.disk = MemoryDisk(Random(seed), self.clock)
        self.config = config
        self.settings = settings
        self.disk.make_directory(FOLDER)
        self.run(self.disk.sync_directory("/data"))
        self.run(self.disk.sync_directory("/"))
        self.open()

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run(work)

    def open(self) -> None:
        self.log: PartitionLog
        options = LogOptions(producer_expiration_ms=10**12)
        self.log, _ = self.run(load_log(self.disk, self.clock, FOLDER, self.config, options))
        self.log.update_high_watermark(self.log.log_end_offset)
        self.compactor = Compactor(self.disk, self.clock, InPlaceHelpers(self.disk, self.clock), self.settings)

    def put(self, *pairs: tuple[bytes | None, bytes | None], **how: Any) -> None:
        """Append one batch of keys and values. Records without a key are written under the `delete` policy."""
        if any(key is None for key, _ in pairs):
            self.log.config = replace(self.config, cleanup_policy=("delete",))
        records = [Record(index, self.clock.now_ms(), key, value) for index, (key, value) in enumerate(pairs)]
        self.log.append_as_leader(build_batch(records, **how), 0)
        self.log.config = self.config
        self.log.update_high_watermark(self.log.log_end_offset)

    def roll(self) -> None:
        self.log.roll()

    def compact(self) -> CompactionStats | None:
        return self.run(self.compactor.run_once({self.log.partition: self.log}))  # type: ignore[no-any-return]

    def crash(self, power_loss: bool) -> None:
        self.disk = self.disk.crash(power_loss)
        self.open()


@pytest.fixture
def make_bench() -> Callable[..., Harness]:
    return Harness


@pytest.fixture
def harness() -> Harness:
    return Harness()
