"""Ottla's compaction and Apache Kafka's cleaner over the same random logs: both keep the same segments, batches and records."""

import asyncio
import shutil
from collections.abc import Iterable
from pathlib import Path
from random import Random

import pytest
from tests.support.logs.compaction_logs import T0, random_log, write_log
from tests.support.servers.apache_kafka import ApacheKafka

from ottla.config.topic import LogConfig
from ottla.env.real import RealDisk
from ottla.log.compaction.compactor import Compactor, candidate_of
from ottla.log.compaction.plan import CleanerSettings
from ottla.log.partition_log import LogOptions, PartitionLog
from ottla.log.recovery.log_loader import load_log
from ottla.log.segments.segment import Segment
from ottla.records.batch import BatchView, iterate_batches
from ottla.records.compression import Codec
from ottla.records.reader import read_records
from ottla.sim.world import InPlaceHelpers, ManualClock

RETENTION_MS = 10_000
NEVER_MS = 2**31 - 1


def hex_text(data: bytes | None) -> str:
    return "null" if data is None else f"x{data.hex()}"


def printed(log: PartitionLog) -> Iterable[str]:
    """The log as CleanLog.java prints one."""
    for segment in log.segments:
        yield f"segment {segment.base_offset} {segment.size} {segment.max_timestamp}"
        yield from printed_batches(segment)
        for txn in segment.txn_index.all():
            yield f"aborted {txn.producer_id} {txn.first_offset} {txn.last_offset} {txn.last_stable_offset}"


def printed_batches(segment: Segment) -> Iterable[str]:
    for batch in iterate_batches(segment.file.read(0, segment.size)):
        batch.check()
        yield (
            f"batch {batch.base_offset} {batch.last_offset} {batch.leader_epoch} {int(batch.codec)} "
            f"{int(batch.is_append_time)} {text(batch.is_transactional)} {text(batch.is_control)} {horizon(batch)} "
            f"{batch.max_timestamp} {batch.producer_id} {batch.producer_epoch} {batch.base_sequence} {batch.count}"
        )
        for record in read_records(batch):
            yield f"record {record.offset} {record.timestamp} {hex_text(record.key)} {hex_text(record.value)}"


def text(flag: bool) -> str:
    return "true" if flag else "false"


def horizon(batch: BatchView) -> int:
    return -1 if batch.delete_horizon_ms is None else batch.delete_horizon_ms


async def compacted(folder: Path, settings: dict[str, str], map_bytes: int, passes: list[tuple[int, int]]) -> list[str]:
    """Compact the log in `folder`; returns it as CleanLog.java prints one."""
    disk, clock = RealDisk(), ManualClock(T0)
    config = LogConfig().with_settings(settings)
    options = LogOptions(producer_expiration_ms=NEVER_MS)
    log, _ = await load_log(disk, clock, str(folder), config, options)
    compactor = Compactor(
        disk, clock, InPlaceHelpers(disk, clock), CleanerSettings(dedupe_buffer_bytes=map_bytes, dedupe_load_factor=0.9)
    )
    lines = [f"log {folder} {log.log_end_offset}"]
    for now_ms, high_watermark in passes:
        clock.jump(now_ms - clock.now_ms())
        log.update_high_watermark(high_watermark)
        candidate = candidate_of(log, compactor.checkpoint_of(log), now_ms)
        lines.append(
            f"range {candidate.first_dirty_offset} {candidate.first_uncleanable_offset} "
            f"{candidate.clean_bytes} {candidate.cleanable_bytes}"
        )
        if candidate.cleanable_bytes:
            stats = await compactor.compact(candidate)
            assert stats is not None, compactor.uncleanable
            lines.append(f"pass {stats.end_offset}")
    lines.extend(printed(log))
    await log.close()
    return lines


def made_logs(
    folder: Path, seeds: Iterable[int], codecs: tuple[Codec, ...]
) -> list[tuple[Path, str, int, list[tuple[int, int]]]]:
    """Random logs with random passes over them: (folder, settings, map size, passes)."""
    made = []
    for seed in seeds:
        random = Random(seed)
        log = random_log(random, segments=random.randint(3, 9), keys=random.choice((4, 12, 40)), codecs=codecs)
        where = folder / f"seed{seed}-0"
        write_log(RealDisk(), str(where), log)
        settings = (
            f"cleanup.policy=compact,delete.retention.ms={RETENTION_MS},"
            f"internal.segment.bytes={random.choice((1500, 4000, 1 << 20))},"
            f"min.compaction.lag.ms={random.choice((0, 0, 40))},index.interval.bytes={random.choice((0, 300))}"
        )
        watermarks = sorted(random.randint(0, log.next_offset) for _ in range(3))
        now_ms, passes = log.now_ms + 1, []
        for watermark in (*watermarks, log.next_offset, log.next_offset):
            passes.append((now_ms, watermark))
            now_ms += random.choice((10, 10 * RETENTION_MS))
        made.append((where, settings, random.choice((24 * 4, 24 * 9, 24 * 1000)), passes))
    return made


def compare(kafka: ApacheKafka, tmp_path: Path, seeds: Iterable[int], codecs: tuple[Codec, ...]) -> tuple[list[str], list[str]]:
    made = made_logs(tmp_path / "apache", seeds, codecs)
    shutil.copytree(tmp_path / "apache", tmp_path / "ours")
    script = "\n".join(
        f"{where} {map_bytes} {','.join(f'{now}:{watermark}' for now, watermark in passes)} {settings}"
        for where, settings, map_bytes, passes in made
    )
    theirs = kafka.run_java("CleanLog.java", stdin=script).stdout.replace("/apache/", "/ours/").splitlines()
    ours: list[str] = []
    for where, settings, map_bytes, passes in made:
        parsed = dict(setting.split("=") for setting in settings.split(","))
        ours.extend(asyncio.run(compacted(tmp_path / "ours" / where.name, parsed, map_bytes, passes)))
    return theirs, ours


def without_sizes(lines: list[str]) -> list[str]:
    """Remove sizes and what depends on them: compressed batches have the same records but not the same bytes."""
    return [
        " ".join(line.split()[:2])
        if line.startswith("segment")
        else " ".join(line.split()[:3])
        if line.startswith("range")
        else line
        for line in lines
    ]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seeds", [range(10), pytest.param(range(10, 40), marks=pytest.mark.slow)], ids=["few", "more"])
def test_uncompressed_logs_become_the_same_to_the_byte(apache_kafka: ApacheKafka, tmp_path: Path, seeds: range) -> None:
    theirs, ours = compare(apache_kafka, tmp_path, seeds, (Codec.NONE,))
    assert ours == theirs
    text = "\n".join(theirs)
    assert text.count("\npass ") > len(seeds)
    assert "\naborted " in text
    same = 0
    for path in sorted((tmp_path / "apache").glob("*/*")):
        if path.suffix in (".log", ".index", ".timeindex", ".txnindex"):
            assert (tmp_path / "ours" / path.parent.name / path.name).read_bytes() == path.read_bytes(), path
            same += 1
    assert same > 2 * len(seeds)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_logs_of_all_codecs_keep_the_same_records(apache_kafka: ApacheKafka, tmp_path: Path) -> None:
    theirs, ours = compare(apache_kafka, tmp_path, range(1000, 1020), tuple(Codec))
    assert without_sizes(ours) == without_sizes(theirs)


def test_kafkas_dump_tool_finds_nothing_wrong(apache_kafka: ApacheKafka, tmp_path: Path) -> None:
    for where, settings, map_bytes, passes in made_logs(tmp_path, range(2000, 2008), tuple(Codec)):
        asyncio.run(compacted(where, dict(setting.split("=") for setting in settings.split(",")), map_bytes, passes))
    files = [path for suffix in ("log", "index", "timeindex", "txnindex") for path in tmp_path.glob(f"*/*.{suffix}")]
    dump = apache_kafka.dump_log_segments(files)
    assert len(files) > 30
    assert sum(len(file.records) for file in dump.files) > 100
    assert not [line for line in dump.complaints if not is_about_emptied_batch(line)]


def is_about_emptied_batch(complaint: str) -> bool:
    """A batch left as a bare header keeps its largest timestamp, and the time index may name it; the tool looks for a record
    that has it and finds none (-1). It says the same of logs that Apache cleaned: the bytes are the same."""
    return complaint.startswith("Found timestamp mismatch") or complaint.endswith("log timestamp: -1")
