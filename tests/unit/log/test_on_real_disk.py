"""The partition log on the real file system does what it does on the simulated one."""

import asyncio
from pathlib import Path

from tests.support.logs.batches import T0, make_batch, records_of

from ottla.config.topic import LogConfig
from ottla.env.real import RealClock, RealDisk, ThreadWorkers
from ottla.log.names import CLEANED_SUFFIX
from ottla.log.partition_log import PartitionLog
from ottla.log.recovery.log_loader import bytes_to_recover, load_log, recover_folder
from ottla.log.segments.scan import checked_batches
from ottla.log.segments.segment import Segment

CONFIG = LogConfig(segment_bytes=4000, index_interval_bytes=200, file_delete_delay_ms=0)


def fill(log: PartitionLog, batches: int) -> None:
    for _ in range(batches):
        offset = log.log_end_offset
        log.append_as_leader(make_batch(b"%d" % offset, b"x" * 100, timestamp=T0 + offset), leader_epoch=1)


def offsets(log: PartitionLog) -> list[int]:
    found: list[int] = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        info = log.read(offset, 1000)
        if info.records is None:
            break
        found += [record.offset for record in records_of(info.records.read()) if record.offset >= offset]
        offset = found[-1] + 1
    return found


def test_append_truncate_delete_replace_and_reload(tmp_path: Path) -> None:
    folder = tmp_path / "topic-0"

    async def live() -> None:
        disk, clock = RealDisk(ThreadWorkers()), RealClock()
        log, report = await load_log(disk, clock, str(folder), CONFIG)
        assert report.notes == []
        fill(log, 100)
        assert len(log.segments) > 4
        assert await log.flush() == 200
        assert offsets(log) == list(range(200))
        assert await log.truncate_to(150)
        fill(log, 10)
        assert offsets(log) == list(range(170))
        log.update_high_watermark(170)
        await log.delete_segments([log.segments.first])
        old = list(log.segments)[:2]
        await log.replace_segments([compacted(disk, str(folder), old)], old)
        await log.delete_due_files()
        assert not [path for path in folder.iterdir() if path.name.endswith((".deleted", ".cleaned", ".swap"))]
        kept = offsets(log)
        assert kept[-1] == 169
        start = log.log_start_offset
        await log.close()
        log, report = await load_log(
            disk, clock, str(folder), CONFIG, recovery_point=170, log_start_offset=start, clean_shutdown=True
        )
        assert report.notes == []
        assert offsets(log) == kept
        await log.close()

    asyncio.run(live())


def compacted(disk: RealDisk, folder: str, old: list[Segment]) -> Segment:
    new = Segment.create(disk, folder, old[0].base_offset, CONFIG, now_ms=0, state=CLEANED_SUFFIX)
    for segment in old:
        for _, view in checked_batches(segment.file, 0, segment.size):
            if view.base_offset % 8 == 0:
                new.append(bytes(view.data), view.base_offset, view.last_offset, view.max_timestamp)
    new.close()
    return Segment(disk, folder, old[0].base_offset, CONFIG, now_ms=0, state=CLEANED_SUFFIX)


def test_a_torn_tail_is_recovered(tmp_path: Path) -> None:
    folder = tmp_path / "topic-0"

    async def live() -> None:
        disk, clock = RealDisk(ThreadWorkers()), RealClock()
        log, _ = await load_log(disk, clock, str(folder), CONFIG)
        fill(log, 30)
        active = Path(log.segments.active.file.path)
        with active.open("ab") as file:
            file.write(b"\0" * 100)
        assert bytes_to_recover(disk, str(folder), 0) == log.size_bytes + 100
        report = await recover_folder(disk, clock, str(folder), CONFIG)
        assert (report.bytes_cut, report.log_end_offset, report.recovery_point) == (100, 60, 60)
        log, report = await load_log(disk, clock, str(folder), CONFIG, recovery_point=60, clean_shutdown=True)
        assert report.notes == []
        assert offsets(log) == list(range(60))
        await log.close()

    asyncio.run(live())
