"""Removing partitions from the log directories: deleting them, marking them as strays, or cancelling their move.

Works on `LogDirectories`; the caller holds its `changing` lock. Many partitions are deleted together: the folders are renamed
one after the other, then the directory is synced once and its checkpoints are written once.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from ottla.errors import LogDirectoryFailed
from ottla.ids import TopicPartition

if TYPE_CHECKING:
    from ottla.log.directories.log_directories import LogDirectories
    from ottla.log.directories.log_directory import LogDirectory


async def delete_all(home: LogDirectories, partitions: Iterable[TopicPartition]) -> list[LogDirectoryFailed]:
    """Rename the folders of `partitions`, damaged or not, to be removed later. Those not on this node are skipped.

    Partitions in a directory that has failed, or fails now, stay; returns those failures.
    """
    by_directory: dict[str, list[TopicPartition]] = {}
    failures = []
    for partition in partitions:
        directory = home.directory_with(partition)
        try:
            if directory is not None:
                directory.check_online()
            await drop_future(home, partition)  # first: at a restart, a copy without its log would become the partition
        except LogDirectoryFailed as failed:
            failures.append(failed)
            continue
        if directory is not None:
            by_directory.setdefault(directory.path, []).append(partition)
    for directory in home.directories:
        if (together := by_directory.get(directory.path)) is not None:
            try:
                await _delete_in(home, directory, together)
            except LogDirectoryFailed as failed:
                failures.append(failed)
    return failures


async def _delete_in(home: LogDirectories, directory: LogDirectory, partitions: list[TopicPartition]) -> None:
    async with AsyncExitStack() as pauses:
        for partition in partitions:
            await pauses.enter_async_context(home.compaction_paused(partition))
        await home.deletions.delete(directory, partitions, home.topic_defaults.file_delete_delay_ms)
    await _forget(home, directory, partitions)


async def set_stray(home: LogDirectories, partition: TopicPartition) -> bool:
    """Rename the folder of a partition that the cluster does not place here to `-stray`; False if it has none here."""
    directory = home.directory_with(partition)
    if directory is None:
        return False
    directory.check_online()
    await drop_future(home, partition)
    async with home.compaction_paused(partition):
        await home.deletions.set_stray(directory, partition)
    await _forget(home, directory, [partition])
    return True


async def _forget(home: LogDirectories, directory: LogDirectory, partitions: list[TopicPartition]) -> None:
    for partition in partitions:
        home.displace(partition)
    if home.compactor is not None:
        await directory.guarded(home.compactor.forget(directory.path, partitions))
    # Their entries must go: a new partition of the same name must not get the old log start or recovery point.
    await directory.write_checkpoints()


async def drop_future(home: LogDirectories, partition: TopicPartition) -> None:
    """Cancel a move: delete the copy of `partition` in the other directory, and keep the log."""
    directory = home.future_of(partition)
    if directory is not None and directory.is_online:
        await home.deletions.delete_future(directory, partition)
        home.copied_at.pop(partition, None)
        await directory.write_checkpoints()
