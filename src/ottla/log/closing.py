"""Closing logs for a clean shutdown: when it returns, everything that a clean start needs is durable.

Logs are closed in pieces. What has to be synced of all logs of a piece is collected on the loop and synced in one call of a
worker thread: the first sync writes out much of what the others wait for, and most logs of a large node have nothing to sync.
A log that never had a record needs no sync at all: if a power loss takes its empty files, the next start makes them again.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from ottla.errors import OttlaError

if TYPE_CHECKING:
    from ottla.env import File
    from ottla.log.partition_log import PartitionLog


class LogClosed(OttlaError):
    """The log was closed by its owner."""


class _Unsynced:
    """What has to be synced before logs count as closed."""

    def __init__(self) -> None:
        self.files: list[File] = []
        self.folders: list[str] = []
        self.epochs: dict[str, bytes] = {}
        self.snapshots: list[File] = []

    def add(self, log: PartitionLog) -> None:
        """Write what is still in memory, and note what is not durable yet."""
        end_offset = log.log_end_offset
        active = log.segments.active
        if not active.is_dormant:
            active.finish()
        if log.snapshots.write(log.producers) is not None:
            log.snapshots_unsynced.append(log.producers.map_end_offset)
        if end_offset == 0:
            return
        # Minus 1: if the recovery point is a segment's end, that segment's indexes were completed by the roll.
        for segment in log.segments.between(max(0, log.recovery_point - 1), end_offset):
            if segment is not active:
                self.files += segment.written_files()
        self.files += active.written_files()
        is_name_unsynced = log.names_unsynced
        for offset in log.snapshots_unsynced:
            if offset in log.snapshots.offsets:
                self.snapshots.append(log.snapshots.open(offset))
                is_name_unsynced = True
        if log.epochs.is_dirty_below(end_offset):
            self.epochs[log.epochs.path] = log.epochs.file_content()  # syncs the folder too
        elif is_name_unsynced:
            self.folders.append(log.folder)


async def close_all(logs: Sequence[PartitionLog]) -> None:
    """Close logs on one disk. Every later call on them raises `LogClosed`. `LogDirectoryFailed` if the disk fails."""
    if not logs:
        return
    disk, unsynced = logs[0].disk, _Unsynced()
    async with AsyncExitStack() as held:
        for log in logs:
            await held.enter_async_context(log.reshaping)
            await held.enter_async_context(log.flushing)
        try:
            for log in logs:
                log.check_usable()
                log.write_barrier = _closed(log)
                unsynced.add(log)
            await disk.sync_all(unsynced.files + unsynced.snapshots, unsynced.folders)
            if unsynced.epochs:
                await disk.replace_files(unsynced.epochs)
            for log in logs:
                log.check_usable()
                log.recovery_point = log.log_end_offset
                for segment in log.segments:
                    segment.close()
        except OSError as error:
            failures = [log.fail(error) for log in logs]
            raise failures[0] from error
        finally:
            for snapshot in unsynced.snapshots:
                snapshot.close()
        for log in logs:
            log.failure = log.write_barrier


def _closed(log: PartitionLog) -> LogClosed:
    return LogClosed(f"the log of {log.partition} is closed: load it again before writing to it")
