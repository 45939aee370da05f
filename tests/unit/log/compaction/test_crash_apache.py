"""Ottla's compaction is killed at any step, and Apache Kafka opens the folder: it completes or undoes the compaction."""

import asyncio
from pathlib import Path
from random import Random

import pytest
from tests.support.logs.compaction_logs import T0, random_log, visible_state, write_log
from tests.support.servers.apache_kafka import ApacheKafka

from ottla.config.topic import LogConfig
from ottla.env.real import RealDisk
from ottla.errors import OttlaError
from ottla.log.compaction.compactor import Compactor
from ottla.log.partition_log import LogOptions, PartitionLog
from ottla.log.recovery.log_loader import load_log
from ottla.sim.disk import MemoryDisk, copy_tree
from ottla.sim.world import InPlaceHelpers, ManualClock

FOLDER = "/data/topic-0"
CONFIG = LogConfig(cleanup_policy=("compact",), segment_bytes=2500, index_interval_bytes=200)


async def loaded() -> tuple[MemoryDisk, PartitionLog]:
    clock = ManualClock(T0 + 10_000)
    disk = MemoryDisk(Random(0), clock)
    write_log(disk, FOLDER, random_log(Random(11), segments=6, keys=10))
    log, _ = await load_log(disk, clock, FOLDER, CONFIG, LogOptions(producer_expiration_ms=10**12))
    log.update_high_watermark(log.log_end_offset)
    await log.flush()
    return disk, log


async def stopped_after(steps: int) -> tuple[MemoryDisk, bool]:
    disk, log = await loaded()
    disk.crash_before(steps)
    compactor = Compactor(disk, disk.clock, InPlaceHelpers(disk, disk.clock))
    try:
        done = await compactor.run_once({log.partition: log}) is not None
    except (OSError, OttlaError):
        done = False
    return disk.crash(power_loss=False), done


def printed_states(lines: list[str], last_stable_offset: int) -> dict[str, dict[str, str]]:
    """The last committed value of each key, per folder, from what CleanLog.java prints."""
    states: dict[str, dict[str, str]] = {}
    for log_text in "\n".join(lines).split("log ")[1:]:
        folder, *rest = log_text.splitlines()
        aborted = [tuple(map(int, line.split()[1:4])) for line in rest if line.startswith("aborted ")]
        state = states[folder.split()[0]] = {}
        counts = False
        for line in rest:
            words = line.split()
            if words[0] == "batch":
                base, producer_id = int(words[1]), int(words[10])
                ended = any(txn[0] == producer_id and txn[1] <= base <= txn[2] for txn in aborted)
                is_data = words[7] == "false" and base < last_stable_offset
                counts = is_data and not (words[6] == "true" and ended)
            elif words[0] == "record" and counts and words[3] != "null":
                state.pop(words[3], None)
                if words[4] != "null":
                    state[words[3]] = words[4]
    return states


@pytest.mark.slow
def test_apache_opens_what_a_killed_compaction_left(apache_kafka: ApacheKafka, tmp_path: Path) -> None:
    leftovers: set[str] = set()
    steps, done = 0, False
    while not done:
        disk, done = asyncio.run(stopped_after(steps))
        names = disk.list_directory(FOLDER)
        leftovers.update(name.rpartition(".")[2] for name in names)
        copy_tree(disk, FOLDER, RealDisk(), f"{tmp_path}/step{steps}-0")
        steps += 1
    assert steps > 60
    assert {"cleaned", "swap", "deleted"} <= leftovers
    folders = [f"{tmp_path}/step{step}-0" for step in range(steps)]
    script = "\n".join(f"{folder} 4096 {T0}:0 cleanup.policy=compact" for folder in folders)
    _, whole = asyncio.run(loaded())
    expected = {f"x{key.hex()}": f"x{value.hex()}" for key, value in visible_state(whole).items()}
    printed = apache_kafka.run_java("CleanLog.java", stdin=script).stdout.splitlines()
    states = printed_states(printed, whole.last_stable_offset)
    assert set(states) == set(folders)
    for folder in folders:
        assert states[folder] == expected, folder
