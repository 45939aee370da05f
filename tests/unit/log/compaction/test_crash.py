"""Compaction killed, or the power cut, before every step it takes on the disk: the log opens with the same last values."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from random import Random

import pytest
from tests.support.logs.compaction_logs import T0, batches_of, random_log, visible_state, write_log

from ottla.config.topic import LogConfig
from ottla.errors import OttlaError
from ottla.log.compaction.compactor import Compactor
from ottla.log.compaction.plan import CleanerSettings
from ottla.log.partition_log import LogOptions, PartitionLog
from ottla.log.recovery.log_loader import load_log
from ottla.sim.disk import MemoryDisk
from ottla.sim.world import InPlaceHelpers, ManualClock

FOLDER = "/data/topic-0"
CONFIG = LogConfig(
    cleanup_policy=("compact",),
    segment_bytes=2500,
    delete_retention_ms=10,
    index_interval_bytes=200,
    min_cleanable_dirty_ratio=0.0,
)
OPTIONS = LogOptions(producer_expiration_ms=10**12)


async def opened(disk: MemoryDisk, recovery_point: int = 0) -> PartitionLog:
    log, _ = await load_log(disk, disk.clock, FOLDER, CONFIG, OPTIONS, recovery_point=recovery_point)
    log.update_high_watermark(log.log_end_offset)
    return log


def compactor_on(disk: MemoryDisk, helper: bool) -> Compactor:
    compactor = Compactor(disk, disk.clock, InPlaceHelpers(disk, disk.clock), CleanerSettings(dedupe_buffer_bytes=24 * 40))
    compactor.inline_bytes_max = 0 if helper else 1 << 30
    return compactor


async def flushed_log(seed: int) -> tuple[MemoryDisk, PartitionLog]:
    """A random log, flushed up to its end."""
    clock = ManualClock(T0 + 10_000)
    disk = MemoryDisk(Random(seed), clock)
    write_log(disk, FOLDER, random_log(Random(seed), segments=6, keys=10))
    log = await opened(disk)
    await log.flush()
    for folder in ("/", "/data", FOLDER):
        await disk.sync_directory(folder)
    return disk, log


def steps_until_done(seed: int, helper: bool) -> Iterator[tuple[int, MemoryDisk, PartitionLog, bool]]:
    """The same compaction repeated, each time stopped one step later."""
    steps = 0
    done = False
    while not done:
        disk, log = asyncio.run(flushed_log(seed))
        disk.crash_before(steps)
        try:
            done = asyncio.run(compactor_on(disk, helper).run_once({log.partition: log})) is not None
        except (OSError, OttlaError):
            assert disk.crashed
        yield steps, disk, log, done
        steps += 1


@pytest.mark.parametrize("power_loss", [False, True])
@pytest.mark.parametrize(
    ("seed", "helper"),
    [(1, False), pytest.param(2, True, marks=pytest.mark.slow), pytest.param(3, False, marks=pytest.mark.slow)],
)
def test_stopped_at_every_step(seed: int, helper: bool, power_loss: bool) -> None:
    found: Counter[str] = Counter()
    expected = asyncio.run(expectations(seed))
    for _, disk, _, _ in steps_until_done(seed, helper):
        asyncio.run(check_after_crash(disk.crash(power_loss), expected, found))
    assert found["steps"] > 60
    assert found["leftover .cleaned"] > 5
    assert found["leftover .swap"] > 5
    assert found["leftover .deleted"] > 5
    assert found["shorter"] > 5


async def expectations(seed: int) -> tuple[dict[bytes, bytes], int, int]:
    _, log = await flushed_log(seed)
    return visible_state(log), log.log_end_offset, sum(segment.size for segment in log.segments)


async def check_after_crash(disk: MemoryDisk, expected: tuple[dict[bytes, bytes], int, int], found: Counter[str]) -> None:
    state, end_offset, size_bytes = expected
    found["steps"] += 1
    for name in disk.list_directory(FOLDER):
        for suffix in (".cleaned", ".swap", ".deleted"):
            found[f"leftover {suffix}"] += name.endswith(suffix)
    log = await opened(disk, recovery_point=end_offset)
    assert visible_state(log) == state
    assert log.log_end_offset == end_offset
    found["shorter"] += sum(segment.size for segment in log.segments) < size_bytes
    offsets = [batch.base_offset for batch in batches_of(log)]
    assert offsets == sorted(set(offsets))
    names = disk.list_directory(FOLDER)
    assert not [name for name in names if name.endswith((".cleaned", ".swap", ".deleted"))]
    # The interrupted compaction can be repeated.
    compactor = compactor_on(disk, helper=False)
    while await compactor.run_once({log.partition: log}) is not None:
        assert visible_state(log) == state
    await log.close()
