"""All log directories of a node: finds, creates and deletes partitions, and handles failed disks.

One event loop; starts no task and sets no timer. Opening is in `startup.py`, creation in `creation.py`, periodic work
(retention, flushes, removals, checkpoints) in `upkeep.py`.

When a directory fails, only its partitions go offline. `lose` says which, and whether the node must stop: it must if the
metadata log was there or no directory is left. A caller that catches `LogDirectoryFailed` from a log passes it to `lose`. Work
that continues with another directory queues the loss instead, for `take_losses`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from ottla.config.broker_log import BrokerLogConfig
from ottla.config.topic import LogConfig
from ottla.errors import KafkaError, LogDirectoryFailed, OttlaError
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition, Uuid
from ottla.log.compaction.compactor import Compactor
from ottla.log.directories.creation import Made, NewPartition, make_all
from ottla.log.directories.folder_deletion import FolderDeletions
from ottla.log.directories.log_directory import DirectoryWorld, LogDirectory
from ottla.log.partition_log import LogOptions, PartitionLog

if TYPE_CHECKING:
    from ottla.log.directories.log_directory import LogDirectory


class DirectoryLoss(NamedTuple):
    """The consequences of a failed directory."""

    directory: str
    directory_id: Uuid | None
    partitions: tuple[TopicPartition, ...]
    """The partitions that went offline."""
    must_stop: str | None
    """Why the node must stop; None if it can continue."""


@dataclass(slots=True)
class LogCounters:
    """Counters over all logs of a node since it started."""

    segments_expired: int = 0
    bytes_expired: int = 0
    """Bytes deleted by retention."""


class LogDirectories:
    """The log directories of one node. Get it from `startup.py`."""

    def __init__(
        self,
        world: DirectoryWorld,
        config: BrokerLogConfig,
        options: LogOptions,
        directories: list[LogDirectory],
        compactor: Compactor | None = None,
    ) -> None:
        self.world = world
        self._config = config
        self.options = options
        self._directories = directories
        self._placeable = [directory for directory in directories if directory.path in config.log_dirs]
        self.compactor = compactor
        self.counters = LogCounters()
        self.deletions = FolderDeletions(world)
        self.changing = asyncio.Lock()
        """Held while partitions are created, deleted, or moved: one such change at a time."""
        self.wanted_in: dict[TopicPartition, str] = {}
        """Directories that operators requested (AlterReplicaLogDirs) for partitions that did not exist yet."""
        self.copied_at: dict[TopicPartition, tuple[int, int]] = {}
        """The `history` of each log that is being moved when its copy last matched it. Absent: not known in this process."""
        self._cordoned: frozenset[str] = frozenset()
        self._lost = {directory.path for directory in directories if not directory.is_online}
        self._losses = [self._loss(directory) for directory in directories if not directory.is_online]
        self._partitions: dict[TopicPartition, LogDirectory] = {}
        for directory in directories:
            self._partitions.update(dict.fromkeys(directory.logs, directory))

    # Queries

    @property
    def directories(self) -> tuple[LogDirectory, ...]:
        return tuple(self._directories)

    @property
    def logs(self) -> dict[TopicPartition, PartitionLog]:
        """The logs that are online."""
        return {partition: log for directory in self.online() for partition, log in directory.logs.items()}

    def online(self) -> Iterator[LogDirectory]:
        return (directory for directory in self._directories if directory.is_online)

    def find(self, partition: TopicPartition) -> PartitionLog | None:
        """The log of `partition`; None if it is not on this node. `KafkaError` KAFKA_STORAGE_ERROR if it is offline."""
        directory = self._partitions.get(partition)
        if directory is not None and directory.is_online:
            return directory.logs[partition]
        reason = self.reason_offline(partition)
        if reason is not None:
            why = reason.brief if isinstance(reason, LogDirectoryFailed) else reason
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{partition} is offline: {why}")
        return None

    def directory_of(self, partition: TopicPartition) -> LogDirectory | None:
        """The directory of the log of `partition`, also a failed one; None if it is not on this node."""
        return self._partitions.get(partition)

    def directory_with(self, partition: TopicPartition) -> LogDirectory | None:
        """The directory that has the folder of `partition`, usable or damaged."""
        return self._partitions.get(partition) or self._directory_with_damaged(partition)

    @property
    def topic_defaults(self) -> LogConfig:
        """The settings of logs whose topic has none of its own."""
        return self._config.topic_defaults

    @property
    def placeable(self) -> tuple[LogDirectory, ...]:
        """The directories for partitions: those of log.dirs, without a separate metadata.log.dir."""
        return tuple(self._placeable)

    def cordon(self, paths: Iterable[str]) -> None:
        """Set cordoned.log.dirs: no new partitions in exactly these directories. `*` means all of them."""
        self._cordoned = frozenset(path if path == "*" else self.world.disk.absolute(path) for path in paths)

    def is_cordoned(self, directory: LogDirectory) -> bool:
        return "*" in self._cordoned or directory.path in self._cordoned

    @property
    def cordoned_ids(self) -> list[Uuid]:
        """The ids of the cordoned directories, in the order of log.dirs."""
        cordoned = (directory.directory_id for directory in self._placeable if self.is_cordoned(directory))
        return [directory_id for directory_id in cordoned if directory_id is not None]

    def directory_at(self, path: str) -> LogDirectory | None:
        """The directory at `path`; None if it is not one for partitions."""
        return next((directory for directory in self._placeable if directory.path == path), None)

    def future_of(self, partition: TopicPartition) -> LogDirectory | None:
        """The directory that the partition is being moved to, if any."""
        return next((directory for directory in self._directories if partition in directory.future_logs), None)

    def copy_matches(self, partition: TopicPartition) -> bool:
        """Whether the copy of a partition that is being moved has the records of its log, as far as it goes.

        Not if the log was truncated or compacted since, nor after an unclean shutdown: log and copy may then differ in records
        that were not flushed.
        """
        source, target = self._partitions.get(partition), self.future_of(partition)
        if source is None or target is None or partition not in source.logs:
            return False
        is_clean = source.found is not None and target.found is not None
        return self.copied_at.get(partition, (0, 0) if is_clean else None) == source.logs[partition].history

    def place(self, partition: TopicPartition, directory: LogDirectory) -> None:
        """Note that the log of `partition` is in `directory`."""
        self._partitions[partition] = directory

    def displace(self, partition: TopicPartition) -> None:
        """Note that the log of `partition` is in no directory any more."""
        self._partitions.pop(partition, None)
        self.wanted_in.pop(partition, None)

    def reason_offline(self, partition: TopicPartition) -> OttlaError | None:
        """Why a partition of this node cannot be used; None if it can, or is not known to be on this node."""
        directory = self._partitions.get(partition)
        if directory is not None:
            return directory.failure
        directory = self._directory_with_damaged(partition)
        return directory.damaged[partition] if directory is not None else None

    # Creating and deleting partitions

    async def create(
        self,
        partition: TopicPartition,
        config: LogConfig,
        topic_id: Uuid,
        *,
        is_new: bool = True,
        directory_id: Uuid | None = None,
    ) -> PartitionLog:
        """The existing or new log of one partition, as `create_all`; raises the error if there is none."""
        (made,) = await self.create_all([NewPartition(partition, config, topic_id, is_new, directory_id)])
        if isinstance(made, OttlaError):
            raise made
        return made

    async def create_all(self, wanted: Sequence[NewPartition]) -> list[Made]:
        """The logs of `wanted`: existing ones, and new ones in the directories with the fewest partitions.

        A directory that fails is queued for `take_losses`, and the next best is tried; `LogDirectoryFailed` if it was the last.
        """
        async with self.changing:
            return await make_all(self, wanted)

    async def delete(self, partition: TopicPartition) -> bool:
        """Delete one partition, as `delete_all`; False if it is not on this node. Raises the failure that prevents it."""
        async with self.changing:
            is_here = self.directory_with(partition) is not None or self.future_of(partition) is not None
            for failure in await delete_all(self, [partition]):
                raise failure
            return is_here

    async def delete_all(self, partitions: Iterable[TopicPartition]) -> list[LogDirectoryFailed]:
        """Delete partitions, damaged or not: their folders are renamed now and removed later.

        Returns the failures that prevented some deletions.
        """
        async with self.changing:
            return await delete_all(self, partitions)

    async def set_stray(self, partition: TopicPartition) -> bool:
        """Rename the folder of a partition that the cluster does not place here to `-stray`; False if it has none here."""
        async with self.changing:
            return await set_stray(self, partition)

    async def drop_future(self, partition: TopicPartition) -> None:
        """Cancel a move: delete the copy of `partition` in the other directory, and keep the log."""
        async with self.changing:
            await drop_future(self, partition)

    def _directory_with_damaged(self, partition: TopicPartition) -> LogDirectory | None:
        return next((directory for directory in self.online() if partition in directory.damaged), None)

    def compaction_paused(self, partition: TopicPartition) -> AbstractAsyncContextManager[None]:
        return self.compactor.paused(partition) if self.compactor is not None else nullcontext()

    # Truncating logs

    async def truncate(self, partition: TopicPartition, offset: int) -> bool:
        """Truncate a log, and checkpoint its lower offsets before the next append."""
        log, directory = self._required(partition)
        async with self.compaction_paused(partition):
            changed = await log.truncate_to(offset)
        if changed and self.compactor is not None:
            await self.compactor.truncated(log)
        await directory.write_lowered(log)
        return changed

    async def truncate_fully(self, partition: TopicPartition, offset: int) -> None:
        """Drop every record of a log; the next append gets `offset`."""
        log, directory = self._required(partition)
        async with self.compaction_paused(partition):
            await log.truncate_fully_and_start_at(offset)
        if self.compactor is not None:
            await self.compactor.truncated(log)
        await directory.write_checkpoints()

    def _required(self, partition: TopicPartition) -> tuple[PartitionLog, LogDirectory]:
        log = self.find(partition)
        if log is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{partition} is not on this node")
        return log, self._partitions[partition]

    # Failing and closing

    def reason_to_stop(self) -> str | None:
        """Why the node cannot continue with the directories that are left, as text; None if it can."""
        for directory in self._directories:
            if directory.failure is not None and directory.path == self._config.metadata_log_dir:
                failure = directory.failure
                return f"the node cannot work without its metadata log: {failure.brief}. {failure.remedy}"
        if not any(directory.is_online for directory in self._placeable):
            return f"no log directory is left: all of {', '.join(self._config.log_dirs)} have failed. Repair one and restart"
        return None

    def lose(self, failure: LogDirectoryFailed, log: PartitionLog | None = None) -> DirectoryLoss | None:
        """Take a failed directory offline. None if that was done already, or if the failure is that of a deleted `log`."""
        if log is not None and not isinstance(log.failure, LogDirectoryFailed):
            return None  # it was being flushed or read while its folder was renamed
        for directory in self._directories:
            if directory.path == failure.directory and directory.path not in self._lost:
                directory.fail(failure.cause)
                self._lost.add(directory.path)
                return self._loss(directory)
        return None

    def _loss(self, directory: LogDirectory) -> DirectoryLoss:
        return DirectoryLoss(directory.path, directory.directory_id, tuple(sorted(directory.logs)), self.reason_to_stop())

    def note_loss(self, failure: LogDirectoryFailed, log: PartitionLog | None = None) -> None:
        """Like `lose`, but queues the loss for `take_losses`; for callers that continue with other directories."""
        if (loss := self.lose(failure, log)) is not None:
            self._losses.append(loss)

    def take_losses(self) -> list[DirectoryLoss]:
        """The losses queued since the last call."""
        losses, self._losses = self._losses, []
        return losses

    async def close(self, broker_epoch: int = -1) -> None:
        """Close all logs and mark a clean shutdown in every directory that works. Losses are queued for `take_losses`.

        If a directory has failed, the marks have no broker epoch: the next registration counts as one after an unclean
        shutdown, also if the operator takes the failed directory out of log.dirs.
        """
        await self._empty_wrong_copies()
        if not all(directory.is_online for directory in self._directories):
            broker_epoch = -1
        results = await asyncio.gather(
            *(directory.close(broker_epoch) for directory in self._directories), return_exceptions=True
        )
        for result in results:
            if isinstance(result, LogDirectoryFailed):
                self.note_loss(result)
        for result in results:
            if isinstance(result, BaseException) and not isinstance(result, LogDirectoryFailed):
                raise result

    async def _empty_wrong_copies(self) -> None:
        """Empty the copies that do not match their logs any more: after a clean shutdown the next start continues each copy."""
        for target in list(self.online()):
            for partition, copy in list(target.future_logs.items()):
                source = self._partitions.get(partition)
                if source is None or not source.is_online or not copy.size_bytes or self.copy_matches(partition):
                    continue
                try:
                    await copy.truncate_fully_and_start_at(0)
                except LogDirectoryFailed as failed:
                    self.note_loss(failed)


# Removing partitions from the log directories: deleting them, marking them as strays, or cancelling their move.
#
# Works on `LogDirectories`; the caller holds its `changing` lock. Many partitions are deleted together: the folders are renamed
# one after the other, then the directory is synced once and its checkpoints are written once.


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
