"""Compaction in a real helper process, on real files, during appends."""

import asyncio
from pathlib import Path
from random import Random

from tests.support.logs.batches import make_batch
from tests.support.logs.compaction_logs import T0, random_log, visible_state, write_log

from ottla.config.topic import LogConfig
from ottla.env import Helpers
from ottla.env.real import ProcessHelpers, RealDisk, ThreadWorkers
from ottla.log.compaction.compactor import Compactor
from ottla.log.partition_log import PartitionLog
from ottla.log.recovery.log_loader import load_log
from ottla.sim.world import ManualClock

CONFIG = LogConfig(cleanup_policy=("compact",), segment_bytes=20_000)


class CountingHelpers:
    """Real helper processes, counted."""

    def __init__(self) -> None:
        self._inner: Helpers = ProcessHelpers()
        self.reports = 0

    async def run(self, module, job, on_progress=None):  # type: ignore[no-untyped-def]  # the contract's own
        def count(report: dict[str, object]) -> None:
            self.reports += 1
            on_progress(report)

        return await self._inner.run(module, job, count)


async def opened(folder: Path, **how: object) -> PartitionLog:
    log, _ = await load_log(RealDisk(), ManualClock(T0), str(folder), CONFIG, **how)  # type: ignore[arg-type]
    log.update_high_watermark(log.log_end_offset)
    return log


def test_appends_continue_while_a_helper_compacts(tmp_path: Path) -> None:
    folder = tmp_path / "topic-0"
    made = random_log(Random(5), segments=40, keys=30)
    write_log(RealDisk(), str(folder), made)

    async def main() -> None:
        log = await opened(folder)
        expected = visible_state(log)
        helpers = CountingHelpers()
        workers = ThreadWorkers()
        compactor = Compactor(RealDisk(workers), ManualClock(T0 + 10**6), helpers)
        compactor.inline_bytes_max = 0
        segments_before = len(log.segments)
        task = asyncio.create_task(compactor.run_once({log.partition: log}))
        appended = 0
        while not task.done():
            log.append_as_leader(make_batch(b"new", key=b"a new key"), 100)
            appended += 1
            await asyncio.sleep(0.001)
        stats = await task
        assert stats is not None, compactor.uncleanable
        assert appended > 10
        assert helpers.reports >= 1
        assert len(log.segments) < segments_before
        log.update_high_watermark(log.log_end_offset)
        assert visible_state(log) == expected | {b"a new key": b"new"}
        await log.close()
        workers.close()

    asyncio.run(main())
