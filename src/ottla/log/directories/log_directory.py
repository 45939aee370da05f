"""One log directory: its lock, its id, the logs in it, and their checkpoints.

Owns the files of the directory itself; the folders in it belong to their logs. Any failure of the device, found here or
reported by a log, takes the whole directory offline: its logs refuse every call, and nothing more is written to it, so that a
restart finds the files as they were when it failed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

from ottla.env import Clock, DirectoryLock, Disk, Helpers
from ottla.errors import CorruptFile, LogDirectoryFailed, OttlaError
from ottla.ids import TopicPartition, Uuid
from ottla.log.directories.checkpoint import OffsetCheckpoint
from ottla.log.directories.clean_shutdown import CleanShutdown, write_clean_shutdown
from ottla.log.names import HIGH_WATERMARK_CHECKPOINT, LOG_START_CHECKPOINT, RECOVERY_POINT_CHECKPOINT
from ottla.log.partition_log import PartitionLog, close_all

logger = logging.getLogger("ottla.log")

PIECE = 64
"""How many logs are closed together."""
PIECES_AT_ONCE = 4
"""As many as there are worker threads: while those wait, the loop collects what another piece has to sync."""


class DirectoryWorld(NamedTuple):
    """The parts of the world that log directories use: disk, clock, random ids, helper processes."""

    disk: Disk
    clock: Clock
    new_uuid: Callable[[], Uuid]
    """Makes a random id, for directories and for the names of `-delete`, `-stray` and `-future` folders."""
    helpers: Helpers | None = None
    """Helper processes that recover large logs; None: recover on the event loop."""


class Checkpoints(NamedTuple):
    """The entries of the three offset checkpoints of a directory."""

    recovery_points: dict[TopicPartition, int]
    high_watermarks: dict[TopicPartition, int]
    log_starts: dict[TopicPartition, int]

    @property
    def partitions(self) -> set[TopicPartition]:
        return self.recovery_points.keys() | self.high_watermarks.keys() | self.log_starts.keys()


class LogDirectory:
    """One open log directory."""

    def __init__(self, world: DirectoryWorld, path: str, directory_id: Uuid | None, lock: DirectoryLock | None) -> None:
        self._world = world
        self._lock = lock
        self._writing = asyncio.Lock()
        self._syncing_names = asyncio.Lock()
        self._names_changed = self._names_synced = 0
        self._recovery_points = OffsetCheckpoint(world.disk, f"{path}/{RECOVERY_POINT_CHECKPOINT}")
        self._high_watermarks = OffsetCheckpoint(world.disk, f"{path}/{HIGH_WATERMARK_CHECKPOINT}")
        self._log_starts = OffsetCheckpoint(world.disk, f"{path}/{LOG_START_CHECKPOINT}")
        self._written: dict[OffsetCheckpoint, Mapping[TopicPartition, int]] = {}
        """The entries in the checkpoint files, as far as they were read or written."""
        self.path = path
        self.directory_id = directory_id
        self.cluster_id = ""
        self.logs: dict[TopicPartition, PartitionLog] = {}
        self.future_logs: dict[TopicPartition, PartitionLog] = {}
        """Copies of logs that are being moved here from another directory of this node."""
        self.topic_ids: dict[TopicPartition, Uuid] = {}
        self.damaged: dict[TopicPartition, OttlaError] = {}
        """Partitions that could not be opened, and why. Their files are not touched, and they are never created again."""
        self.stray_folders: list[str] = []
        self.carried = Checkpoints({}, {}, {})
        """The checkpoint entries of damaged partitions, kept until an operator has repaired them."""
        self.found: CleanShutdown | None = None
        """The clean shutdown file found at start; None: the shutdown was unclean."""
        self.failure: LogDirectoryFailed | None = None
        self.arriving = 0
        """How many partitions are being created here."""

    def __repr__(self) -> str:
        state = "failed" if self.failure else "online"
        return f"LogDirectory({self.path}, {state}, {len(self.logs)} partitions)"

    @property
    def is_online(self) -> bool:
        return self.failure is None

    @property
    def partitions(self) -> set[TopicPartition]:
        """All partitions with a folder here, usable or not."""
        return self.logs.keys() | self.future_logs.keys() | self.damaged.keys()

    @property
    def partition_count(self) -> int:
        """The number that placement compares: partitions here and being created here."""
        return len(self.logs) + len(self.future_logs) + len(self.damaged) + self.arriving

    def forget(self, partition: TopicPartition) -> None:
        """Note that the folder of `partition` was renamed or moved away."""
        for entries in (self.logs, self.topic_ids, self.damaged):
            entries.pop(partition, None)
        for kept in (self.carried.recovery_points, self.carried.high_watermarks, self.carried.log_starts):
            kept.pop(partition, None)

    def folder(self, name: str) -> str:
        return f"{self.path}/{name}"

    async def sync_names(self) -> None:
        """Make the names of the folders here durable. Callers that come during one sync share the next one.

        `LogDirectoryFailed` if the device fails.
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
        """Read the checkpoints. A damaged one is logged and counts as empty; `checkpoint.py` lists what that costs."""
        read = []
        for checkpoint, consequence in (
            (self._recovery_points, "all logs are recovered from their start"),
            (self._high_watermarks, "high watermarks begin at the logs' starts"),
            (self._log_starts, "logs begin at their first segment, records deleted on request may reappear"),
        ):
            offsets, damage = checkpoint.read_or_forget()
            if damage is not None:
                logger.warning("%s. Continuing without it: %s", damage, consequence)
            read.append(offsets)
            self._written[checkpoint] = offsets
        return Checkpoints(*read)

    async def write_recovery_points(self) -> None:
        """Checkpoint the recovery point of each log."""
        await self._write(self._recovery_points, lambda: self._entries(self.carried.recovery_points, _recovery_point))

    async def write_high_watermarks(self) -> None:
        """Checkpoint the high watermark of each log."""
        await self._write(self._high_watermarks, lambda: self._entries(self.carried.high_watermarks, _high_watermark))

    async def write_log_starts(self) -> None:
        """Checkpoint the log start offset of each log that does not begin with its first segment."""
        await self._write(self._log_starts, lambda: self._entries(self.carried.log_starts, _log_start))

    async def write_checkpoints(self) -> None:
        """Write all three checkpoints."""
        await self.write_recovery_points()
        await self.write_log_starts()
        await self.write_high_watermarks()

    async def write_lowered(self, log: PartitionLog) -> None:
        """Checkpoint the offsets of `log` that a truncation has lowered below what the files say, before the next append.

        A stale recovery point hides torn records. A stale log start hides the records that come next, and a start with a log
        that ends below it drops them all. Compared with the files: the offsets may have risen while the truncation waited.
        """
        for checkpoint, offset, write in (
            (self._recovery_points, log.recovery_point, self.write_recovery_points),
            (self._log_starts, log.log_start_offset, self.write_log_starts),
            (self._high_watermarks, log.high_watermark, self.write_high_watermarks),
        ):
            if self._written.get(checkpoint, {}).get(log.partition, 0) > offset:
                await write()

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
        async with self._writing:  # entries are read inside the lock: the last write has the newest state
            self.check_online()
            self._written[checkpoint] = written = entries()  # before the await: what is under way may reach the file
            await self.guarded(checkpoint.write(written))

    # Failing

    async def guarded(self, work: Awaitable[None]) -> None:
        """Await work on the directory's own files; `LogDirectoryFailed` on an OSError."""
        try:
            await work
        except OSError as error:
            raise self.fail(error) from error

    def check_online(self) -> None:
        if self.failure is not None:
            raise self.failure

    def fail(self, cause: OSError) -> LogDirectoryFailed:
        """Take the directory and all its logs offline; returns the error to raise."""
        if self.failure is None:
            self.failure = LogDirectoryFailed(self.path, cause)
            logger.error("%s", self.failure)
            for logs in (self.logs, self.future_logs):
                for log in logs.values():
                    log.fail(cause)
        return self.failure

    # Closing

    async def close(self, broker_epoch: int) -> None:
        """Close all logs, write the checkpoints, mark a clean shutdown, and release the lock.

        For a failed directory only the lock is released. `LogDirectoryFailed` if it fails now.
        """
        try:
            if self.is_online:
                await self._close_logs()
                await self.write_checkpoints()
                if self._is_recovered:
                    await self.guarded(write_clean_shutdown(self._world.disk, self.path, broker_epoch))
        finally:
            self.release()

    @property
    def _is_recovered(self) -> bool:
        """Whether no log needs the recovery of an unclean shutdown any more.

        A damaged partition still does, and one with an open gap: its broker must be out of the ISR when it comes back.
        """
        is_damaged = bool(self.damaged) and self.found is None
        logs = self.logs.values()
        return not is_damaged and all(log.gap_offset is None and not isinstance(log.failure, CorruptFile) for log in logs)

    async def _close_logs(self) -> None:
        turns = asyncio.Semaphore(PIECES_AT_ONCE)

        async def close(piece: list[PartitionLog]) -> None:
            async with turns:
                await close_all(piece)

        logs = [log for log in (*self.logs.values(), *self.future_logs.values()) if not isinstance(log.failure, CorruptFile)]
        pieces = [logs[first : first + PIECE] for first in range(0, len(logs), PIECE)]
        for result in await asyncio.gather(*map(close, pieces), return_exceptions=True):
            if isinstance(result, LogDirectoryFailed):
                raise self.fail(result.cause)
            if isinstance(result, BaseException):
                raise result

    def release(self) -> None:
        """Release the lock."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None


def _recovery_point(log: PartitionLog) -> int | None:
    # With an open gap the next recovery begins at it, and finds it again.
    return log.recovery_point if log.gap_offset is None else min(log.recovery_point, log.gap_offset)


def _high_watermark(log: PartitionLog) -> int | None:
    return log.high_watermark


def _log_start(log: PartitionLog) -> int | None:
    return log.log_start_offset if log.log_start_offset > log.segments.first.base_offset else None
