"""A partition log on a simulated disk, with the checkpoint entries that its owner would write."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from tests.support.logs.batches import T0, make_batch, records_of

from ottla.config.topic import LogConfig
from ottla.log.partition_log import LogOptions, PartitionLog
from ottla.log.producers.append_checks import AppendOrigin
from ottla.log.read import Isolation
from ottla.log.recovery.log_loader import LoadReport, load_log
from ottla.records.control import build_end_marker
from ottla.records.record import Record
from ottla.sim.disk import MemoryDisk
from ottla.sim.world import ManualClock

FOLDER = "/data/topic-0"
SMALL = LogConfig(segment_bytes=2000, index_interval_bytes=200, file_delete_delay_ms=1000)

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


class LogOnDisk:
    """`log` on `disk`; `recovery_point` and `log_start_offset` are the checkpoint entries."""

    def __init__(self, config: LogConfig = SMALL, options: LogOptions | None = None) -> None:
        self.clock = ManualClock(T0)
        self.disk = MemoryDisk(clock=self.clock)
        self.config = config
        self.options = options
        self.recovery_point = 0
        self.log_start_offset = 0
        self.disk.make_directory(FOLDER)
        run(self.disk.sync_directory("/"))
        run(self.disk.sync_directory("/data"))
        self.load()

    def load(self, clean: bool = False) -> LoadReport:
        self.log, report = run(self.load_async(clean))
        return report

    async def load_async(self, clean: bool = False) -> tuple[PartitionLog, LoadReport]:
        return await load_log(
            self.disk,
            self.clock,
            FOLDER,
            self.config,
            self.options,
            recovery_point=self.recovery_point,
            log_start_offset=self.log_start_offset,
            clean_shutdown=clean,
        )

    def close(self) -> None:
        run(self.log.close())
        self.checkpoint()

    def reopen(self) -> LoadReport:
        """A clean restart."""
        self.close()
        return self.load(clean=True)

    def crash(self, power_loss: bool = False) -> LoadReport:
        """Kill the process, and start again."""
        self.disk = self.disk.crash(power_loss)
        return self.load()

    def flush(self) -> None:
        run(self.log.flush())
        self.checkpoint()

    def checkpoint(self) -> None:
        self.recovery_point = self.log.recovery_point
        self.log_start_offset = self.log.log_start_offset

    def append(self, *values: bytes, epoch: int = 0, **batch: Any) -> int:
        """Append one batch as leader; returns its first offset."""
        return self.log.append_as_leader(make_batch(*values, **batch), epoch).first_offset

    def fill(self, batches: int, value_bytes: int = 60, epoch: int = 0) -> None:
        """Append batches of two records; value and timestamp follow from the offset."""
        for _ in range(batches):
            offset = self.log.log_end_offset
            values = [b"%d " % (offset + index) + b"x" * value_bytes for index in range(2)]
            self.append(*values, epoch=epoch, timestamp=T0 + 10 * offset)

    def end_transaction(self, producer_id: int, producer_epoch: int = 0, commit: bool = True, epoch: int = 0) -> int:
        marker = build_end_marker(
            is_commit=commit,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            coordinator_epoch=0,
            timestamp_ms=T0,
        )
        return self.log.append_as_leader(marker, epoch, AppendOrigin.COORDINATOR).first_offset

    def records(self, start: int | None = None, isolation: Isolation = Isolation.LOG_END, max_bytes: int = 700) -> list[Record]:
        """All records, fetched as a consumer would."""
        offset = self.log.log_start_offset if start is None else start
        found: list[Record] = []
        while True:
            info = self.log.read(offset, max_bytes, isolation)
            if info.records is None:
                return found
            got = [record for record in records_of(info.records.read()) if record.offset >= offset]
            if not got:
                return found
            found += got
            offset = got[-1].offset + 1

    def offsets(self) -> list[int]:
        return [record.offset for record in self.records()]

    def files(self) -> list[str]:
        return self.disk.list_directory(FOLDER)
