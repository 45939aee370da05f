"""Periodic work on the logs of a node: retention, flushes, removal of files, producer expiry, checkpoints.

Each method does one kind of work once, over all directories. The owner decides when to call it (`next_deadline_s`, and the
log.* intervals of the settings). A directory that fails during the work is taken offline and queued for
`LogDirectories.take_losses`; the work continues with the others.
"""

from collections.abc import Awaitable, Callable

from ottla.env import Clock
from ottla.errors import LogDirectoryFailed
from ottla.ids import TopicPartition
from ottla.log.directories.folder_deletion import PartitionGone
from ottla.log.directories.log_directories import LogDirectories
from ottla.log.directories.log_directory import LogDirectory
from ottla.log.partition_log import PartitionLog
from ottla.log.retention import Expired, apply_retention, expired_segments


class Upkeep:
    """The upkeep of `directories`."""

    def __init__(self, directories: LogDirectories, clock: Clock, producer_expiration_ms: int) -> None:
        self._directories = directories
        self._clock = clock
        self._producer_expiration_ms = producer_expiration_ms

    async def run_retention(self) -> dict[TopicPartition, list[Expired]]:
        """Apply retention to every log (each log.retention.check.interval.ms); returns the deleted segments."""
        gone: dict[TopicPartition, list[Expired]] = {}

        async def retain(log: PartitionLog) -> bool:
            now_ms = self._clock.now_ms()
            if expired_segments(log, now_ms):  # checked first: else every log's compaction would be paused
                compactor = self._directories.compactor
                if compactor is not None and log.config.compact:
                    async with compactor.paused(log.partition):
                        gone[log.partition] = await apply_retention(log, now_ms)
                else:
                    gone[log.partition] = await apply_retention(log, now_ms)
            return True

        await self._each_log(retain)
        counters = self._directories.counters
        for expired in gone.values():
            counters.segments_expired += len(expired)
            counters.bytes_expired += sum(each.segment.size for each in expired)
        return gone

    def remove_expired_producers(self) -> int:
        """Remove the producers that have not written for producer.id.expiration.ms; returns how many."""
        now_ms = self._clock.now_ms()
        logs = self._directories.logs.values()
        return sum(log.producers.remove_expired(now_ms, self._producer_expiration_ms) for log in logs)

    async def flush_due(self) -> int:
        """Flush the logs whose flush.ms is over or that have rolled; returns how many logs."""
        now_s = self._clock.monotonic_s()

        async def flush(log: PartitionLog) -> bool:
            deadline_s = log.flush_deadline_s
            if deadline_s is not None and deadline_s <= now_s:
                await log.flush()
            elif log.flush_wanted_up_to is not None:
                await log.flush(log.flush_wanted_up_to)
            else:
                return False
            return True

        return await self._each_log(flush)

    async def delete_due(self) -> int:
        """Remove the files and folders whose file.delete.delay.ms is over; returns how many logs and folders."""

        async def delete(log: PartitionLog) -> bool:
            return await log.delete_due_files() > 0

        try:
            folders = await self._directories.deletions.remove_due()
        except LogDirectoryFailed as failed:
            folders = 0
            self._directories.note_loss(failed)
        return folders + await self._each_log(delete)

    @property
    def next_deadline_s(self) -> float | None:
        """When (monotonic) `flush_due` or `delete_due` has work next; None if there is none."""
        deadlines = [self._directories.deletions.deadline_s]
        for log in self._directories.logs.values():
            deadlines += (log.flush_deadline_s, log.deletion_deadline_s)
            if log.flush_wanted_up_to is not None:
                deadlines.append(self._clock.monotonic_s())
        return min((deadline_s for deadline_s in deadlines if deadline_s is not None), default=None)

    async def write_recovery_points(self) -> None:
        """Each log.flush.offset.checkpoint.interval.ms."""
        await self._each_directory(LogDirectory.write_recovery_points)

    async def write_log_starts(self) -> None:
        """Each log.flush.start.offset.checkpoint.interval.ms."""
        await self._each_directory(LogDirectory.write_log_starts)

    async def write_high_watermarks(self) -> None:
        """Each replica.high.watermark.checkpoint.interval.ms."""
        await self._each_directory(LogDirectory.write_high_watermarks)

    async def _each_directory(self, work: Callable[[LogDirectory], Awaitable[None]]) -> None:
        for directory in list(self._directories.online()):
            try:
                await work(directory)
            except LogDirectoryFailed as failed:
                self._directories.note_loss(failed)

    async def _each_log(self, work: Callable[[PartitionLog], Awaitable[bool]]) -> int:
        done = 0
        for log in list(self._directories.logs.values()):
            try:
                if log.failure is None and await work(log):
                    done += 1
            except LogDirectoryFailed as failed:
                self._directories.note_loss(failed, log)
            except PartitionGone:
                pass  # deleted or moved during an await
        return done
