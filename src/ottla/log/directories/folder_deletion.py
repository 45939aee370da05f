"""Deleting a partition's folder: renamed at once, removed after file.delete.delay.ms.

The rename makes it final: a restart finds a `-delete` folder and removes it. File ranges that readers hold stay readable; every
other call is refused from the moment the rename begins.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import NamedTuple

from ottla.errors import LogDirectoryFailed, OttlaError
from ottla.ids import TopicPartition, Uuid
from ottla.log.directories.log_directory import DirectoryWorld, LogDirectory
from ottla.log.names import delete_folder_name, folder_name, stray_folder_name

logger = logging.getLogger("ottla.log")


class PartitionGone(OttlaError):
    """The log was taken out of its directory: it was deleted or moved, or is a stray."""


class PendingFolder(NamedTuple):
    """A renamed folder that is not yet removed."""

    deadline_s: float
    directory: LogDirectory
    path: str


class FolderDeletions:
    """The renamed folders of one node that wait for their removal."""

    def __init__(self, world: DirectoryWorld) -> None:
        self._world = world
        self._pending: list[PendingFolder] = []

    async def delete(self, directory: LogDirectory, partitions: Iterable[TopicPartition], default_delay_ms: int) -> None:
        """Delete partitions, usable or damaged. Their files are removed after their log's delay, or `default_delay_ms`."""
        for partition in partitions:
            log = directory.logs.get(partition)
            delay_ms = log.config.file_delete_delay_ms if log is not None else default_delay_ms
            path = await self._rename(directory, partition, delete_folder_name)
            self.put_off(directory, path, delay_ms)
            logger.info("%s is deleted; %s is removed in %d ms", partition, path, delay_ms)
            await asyncio.sleep(0)  # let other tasks run
        await directory.sync_names()

    async def delete_future(self, directory: LogDirectory, partition: TopicPartition) -> None:
        """Delete the copy of a log that was being moved to `directory`. It has no readers: its files are removed at once."""
        log = directory.future_logs[partition]
        path = directory.folder(delete_folder_name(partition, self._world.new_uuid()))
        async with log.reshaping, log.flushing:
            log.failure = log.write_barrier = PartitionGone(f"{partition} is not moved to {directory.path} any more")
            for segment in log.segments:
                segment.abandon()
            await directory.guarded(self._world.disk.rename(log.folder, path))
        del directory.future_logs[partition]
        directory.topic_ids.pop(partition, None)
        self.put_off(directory, path, 0)

    def put_off(self, directory: LogDirectory, path: str, delay_ms: int) -> None:
        """Schedule the removal of a `-delete` folder after `delay_ms`."""
        self._pending.append(PendingFolder(self._world.clock.monotonic_s() + delay_ms / 1000, directory, path))

    async def set_stray(self, directory: LogDirectory, partition: TopicPartition) -> None:
        """Rename a partition that the cluster does not place here to `-stray`. Its records stay."""
        if (log := directory.logs.get(partition)) is not None:
            try:
                await log.flush()
            except LogDirectoryFailed as failed:
                raise directory.fail(failed.cause) from failed
        path = await self._rename(directory, partition, stray_folder_name)
        await directory.sync_names()
        directory.stray_folders.append(path.rpartition("/")[2])
        logger.warning("%s is kept as the stray folder %s: the cluster does not place it here", partition, path)

    async def _rename(
        self, directory: LogDirectory, partition: TopicPartition, name_of: Callable[[TopicPartition, Uuid], str]
    ) -> str:
        """Rename a folder; returns its new path. A power loss may undo the rename until the directory's names are synced."""
        old_path = directory.folder(folder_name(partition))
        new_path = directory.folder(name_of(partition, self._world.new_uuid()))
        log = directory.logs.get(partition)
        async with log.reshaping if log is not None else nullcontext():
            directory.check_online()
            if log is not None:
                log.failure = log.write_barrier = PartitionGone(f"{partition} was taken out of {directory.path}")
                for segment in log.segments:
                    segment.abandon()
            try:
                self._world.disk.rename_now(old_path, new_path)
            except OSError as error:
                raise directory.fail(error) from error
        directory.forget(partition)
        return new_path

    @property
    def deadline_s(self) -> float | None:
        """When (monotonic) the next folder may be removed."""
        return min((pending.deadline_s for pending in self._pending), default=None)

    async def remove_due(self) -> int:
        """Remove the folders whose delay is over; returns how many. Folders in failed directories are skipped."""
        now_s = self._world.clock.monotonic_s()
        due = [pending for pending in self._pending if pending.deadline_s <= now_s]
        self._pending = [pending for pending in self._pending if pending.deadline_s > now_s]
        removed = 0
        for pending in due:
            if pending.directory.is_online:
                await pending.directory.guarded(self._world.disk.remove_directory(pending.path))
                removed += 1
        return removed
