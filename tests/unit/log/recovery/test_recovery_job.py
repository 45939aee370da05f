"""Recovery of a large log in a real helper process, as a node does it after a kill."""

import asyncio
from pathlib import Path

from ottla.config.topic import LogConfig
from ottla.env.real import ProcessHelpers, RealClock, RealDisk
from ottla.log.names import LOG_SUFFIX
from ottla.log.partition_log import LogOptions
from ottla.log.recovery.log_loader import MODULE, RecoveredElsewhere, load_log, recovery_job
from ottla.records.builder import build_batch
from ottla.records.record import Record

CONFIG = LogConfig(segment_bytes=4 << 20)
BATCHES = 1200
VALUE = bytes(16 * 1024)


async def _write_and_leave(folder: str) -> int:
    """Write a log of about 20 MB and do not close it; returns its log end offset."""
    log, _ = await load_log(
        RealDisk(), RealClock(), folder, CONFIG, None, recovery_point=0, log_start_offset=0, clean_shutdown=False
    )
    now_ms = RealClock().now_ms()
    for sequence in range(BATCHES):
        batch = build_batch(
            [Record(0, now_ms, b"k", VALUE)], producer_id=5, producer_epoch=0, base_sequence=sequence, leader_epoch=0
        )
        log.append_as_leader(batch, 0)
    return log.log_end_offset


def test_a_helper_recovers_a_log_and_the_owner_opens_it_at_once(tmp_path: Path) -> None:
    folder = tmp_path / "big-0"
    folder.mkdir()
    end = asyncio.run(_write_and_leave(str(folder)))
    last = max(folder.glob(f"*{LOG_SUFFIX}"))
    with last.open("ab") as file:
        file.write(last.read_bytes()[: 8 * 1024])  # half a batch, as a kill in the middle of a write leaves it
    for index in folder.glob("*.index"):
        index.write_bytes(b"rubbish")

    async def recover_and_open() -> None:
        helpers = ProcessHelpers(1)
        job = recovery_job(str(folder), CONFIG, LogOptions(), 0, 0)
        recovered = RecoveredElsewhere.from_json(await helpers.run(MODULE, job))
        assert recovered.recovery_point == end
        assert any(last.name in note for note in recovered.notes), recovered.notes
        log, report = await load_log(
            RealDisk(),
            RealClock(),
            str(folder),
            CONFIG,
            None,
            recovery_point=recovered.recovery_point,
            log_start_offset=recovered.log_start_offset,
            clean_shutdown=True,
        )
        assert (log.log_start_offset, log.log_end_offset) == (0, end)
        assert report.notes == []
        duplicate = build_batch(
            [Record(0, RealClock().now_ms(), b"k", VALUE)], producer_id=5, producer_epoch=0, base_sequence=BATCHES - 5
        )
        answer = log.append_as_leader(duplicate, 0)
        assert answer.is_duplicate
        assert answer.first_offset == BATCHES - 5
        await log.close()

    asyncio.run(recover_and_open())
