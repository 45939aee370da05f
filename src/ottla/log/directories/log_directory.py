"""One log directory: the lock on it, whose it is, the logs in it, and the checkpoints beside them.

Owns the files of the directory itself; the folders in it are their logs'. Every failure of the device found here or reported by
a log ends the whole directory: from then on its logs refuse everything, and nothing more is written to it, so that what a
restart finds is what was there when it failed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

from ottla.env import Clock, DirectoryLock, Disk, Helpers
from ottla.errors import LogDirectoryFailed, OttlaError
from ottla.ids import TopicPartition, Uuid
from ottla.log.directories.checkpoint import OffsetCheckpoint
from ottla.log.directories.clean_shutdown import CleanShutdown, write_clean_shutdown
from ottla.log.names import HIGH_WATERMARK_CHECKPOINT, LOG_START_CHECKPOINT, RECOVERY_POINT_CHECKPOINT
from ottla.log.partition_log import PartitionLog

logger = logging.getLogger("ottla.log")


class LogWorld(NamedTuple):
    """What log directories need of the world."""

    disk: Disk
    clock: Clock
    new_uuid: Callable[[], Uuid]
    """A random id, for directories and for folders on their way out."""
    helpers: Helpers | None = None
    """Where large logs are recovered; without them it is done in place."""


class Checkpoints(NamedTuple):
    """What the three offset checkpoints of a directory say."""

    recovery_points: dict[TopicPartition, int]
    high_watermarks: dict[TopicPartition, int]
    log_starts: dict[TopicPartition, int]

    @property
    def partitions(self) -> set[TopicPartition]:
        return self.recovery_points.keys() | self.high_watermarks.keys() | self.log_starts.keys()


class LogDirectory:
    """One log directory that is open. `LogDirectories` makes them."""

    def __init__(self, world: LogWorld, path: str, directory_id: Uuid | None, lock: DirectoryLock | None) -> None:
        self._world = world
        self._lock = lock
        self._writing = asyncio.Lock()
        self._syncing_names = asyncio.Lock()
        self._names_changed = self._names_synced = 0
        self._recovery_points = OffsetCheckpoint(world.disk, f"{path}/{RECOVERY_POINT_CHECKPOINT}")
        self._high_watermarks = OffsetCheckpoint(world.disk, f"{path}/{HIGH_WATERMARK_CHECKPOINT}")
        self._log_starts = OffsetCheckpoint(world.disk, f"{path}/{LOG_START_CHECKPOINT}")
        self.path = path
        self.directory_id = directory_id
        self.cluster_id = ""
        self.logs: dict[TopicPartition, PartitionLog] = {}
        self.future_logs: dict[TopicPartition, PartitionLog] = {}
        """Replicas on their way here from another directory of this node."""
        self.topic_ids: dict[TopicPartition, Uuid] = {}
        self.damaged: dict[TopicPartition, OttlaError] = {}
        """Partitions that could not be opened, and why. They are left alone, and never made anew over what is there."""
        self.stray_folders: list[str] = []
        self.carried = Checkpoints({}, {}, {})
        """The entries of damaged partitions, kept for the day they are repaired."""
        self.found: CleanShutdown | None = None
        """How the directory was left by whoever had it before; None: not in good order."""
        self.failure: LogDirectoryFailed | None = None
        self.arriving = 0
        """Partitions that are being made here."""

    def __repr__(self) -> str:
        state = "failed" if self.failure else "online"
        return f"LogDirectory({self.path}, {state}, {len(self.logs)} partitions)"

    @property
    def is_online(self) -> bool:
        return self.failure is None

    @property
    def partitions(self) -> set[TopicPartition]:
        """Everything that lies here as a partition, usable or not."""
        return self.logs.keys() | self.future_logs.keys() | self.damaged.keys()

    @property
    def partition_count(self) -> int:
        """What new partitions are placed by."""
        return len(self.logs) + len(self.future_logs) + len(self.damaged) + self.arriving

    def forget(self, partition: TopicPartition) -> None:
        """The folder of `partition` is no longer here under that name."""
        for entries in (self.logs, self.topic_ids, self.damaged):
            entries.pop(partition, None)
        for kept in (self.carried.recovery_points, self.carried.high_watermarks, self.carried.log_starts):
            kept.pop(partition, None)

    def folder(self, name: str) -> str:
        return f"{self.path}/{name}"

    async def sync_names(self) -> None:
        """Make the names of the folders here safe from a power loss. Who asks while that is under way shares the next.

        `LogDirectoryFailed` if the device fails it.
        """
        self._names_changed += 1
        wanted = self._names_changed
        async with self._syncing_names:
            if self._names_synced < wanted:
                covered = self._names_changed
                await self.guarded(self._world.disk.sync_directory(self.path))
                self._names_synced = covered

    # Checkpoints

    def read_checkpoints(self) -> Checkpoints:
        """What the checkpoints say; a damaged one is reported and counts as empty, which costs time and nothing else."""
        read = []
        for checkpoint, consequence in (
            (self._recovery_points, "all logs are recovered from their start"),
            (self._high_watermarks, "high watermarks begin at the logs' starts"),
            (self._log_starts, "logs begin at their first segment, records deleted by hand may show again"),
        ):
            offsets, damage = checkpoint.read_or_forget()
            if damage is not None:
                logger.warning("%s. Going on without it: %s", damage, consequence)
            read.append(offsets)
        return Checkpoints(*read)

    async def write_recovery_points(self) -> None:
        """Write down how far each log is durable."""
        await self._write(self._recovery_points, lambda: self._entries(self.carried.recovery_points, _recovery_point))

    async def write_high_watermarks(self) -> None:
        """Write down how far each log is replicated."""
        await self._write(self._high_watermarks, lambda: self._entries(self.carried.high_watermarks, _high_watermark))

    async def write_log_starts(self) -> None:
        """Write down where logs begin, of those that do not begin where their first segment does."""
        await self._write(self._log_starts, lambda: self._entries(self.carried.log_starts, _log_start))

    async def write_checkpoints(self) -> None:
        """All three."""
        await self.write_recovery_points()
        await self.write_log_starts()
        await self.write_high_watermarks()

    def _entries(
        self, carried: Mapping[TopicPartition, int], offset_of: Callable[[PartitionLog], int | None]
    ) -> dict[TopicPartition, int]:
        entries = dict(carried)
        for logs in (self.future_logs, self.logs):
            for partition, log in logs.items():
                if (offset := offset_of(log)) is not None:
                    entries[partition] = offset
        return entries

    async def _write(self, checkpoint: OffsetCheckpoint, entries: Callable[[], Mapping[TopicPartition, int]]) -> None:
        async with self._writing:  # the newest state wins: it is looked up once it is our turn
            self.check_online()
            await self.guarded(checkpoint.write(entries()))

    # Failing

    async def guarded(self, work: Awaitable[None]) -> None:
        """Await work on the directory's own files; `LogDirectoryFailed` if the device fails it."""
        try:
            await work
        except OSError as error:
            raise self.fail(error) from error

    def check_online(self) -> None:
        if self.failure is not None:
            raise self.failure

    def fail(self, cause: OSError) -> LogDirectoryFailed:
        """Take the directory and all its logs offline; returns what to raise."""
        if self.failure is None:
            self.failure = LogDirectoryFailed(self.path, cause)
            logger.error("%s", self.failure)
            for logs in (self.logs, self.future_logs):
                for log in logs.values():
                    log.fail(cause)
        return self.failure

    # Ending

    async def close(self, broker_epoch: int, at_once: int) -> None:
        """Close all logs, `at_once` at a time, write everything down, and say that the directory was left in good order.

        A failed directory is only given back. `LogDirectoryFailed` if it fails now.
        """
        try:
            if self.is_online:
                await self._close_logs(at_once)
                await self.write_checkpoints()
                if not self.damaged or self.found is not None:
                    # A partition that was found unrecovered and could not be opened still needs its recovery.
                    await self.guarded(write_clean_shutdown(self._world.disk, self.path, broker_epoch))
        finally:
            self.release()

    async def _close_logs(self, at_once: int) -> None:
        turns = asyncio.Semaphore(at_once)

        async def close(log: PartitionLog) -> None:
            async with turns:
                await log.close()

        logs = [*self.logs.values(), *self.future_logs.values()]
        for result in await asyncio.gather(*map(close, logs), return_exceptions=True):
            if isinstance(result, LogDirectoryFailed):
                raise self.fail(result.cause)
            if isinstance(result, BaseException):
                raise result

    def release(self) -> None:
        """Give the lock back."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None


def _recovery_point(log: PartitionLog) -> int | None:
    return log.recovery_point


def _high_watermark(log: PartitionLog) -> int | None:
    return log.high_watermark


def _log_start(log: PartitionLog) -> int | None:
    return log.log_start_offset if log.log_start_offset > log.segments.first.base_offset else None
