"""All log directories of a node: finds partitions, has them made and taken away, copes with a disk that fails.

One event loop; starts no task and sets no timer. Opening is `opening.py`'s, making and taking away `creation.py`'s and
`removal.py`'s, and what comes round with time (retention, flushes, removals, checkpoints) is in `upkeep.py`.

When a directory fails, only its partitions go offline: `lose` says which, and whether the node has to stop, as it must when the
metadata log was there or no directory is left. Whoever is told `LogDirectoryFailed` by a log hands it to `lose`; losses met
by work that went on with another directory are put by, for `take_losses`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from typing import NamedTuple

from ottla.config.broker_log import BrokerLogConfig
from ottla.config.topic import LogConfig
from ottla.errors import KafkaError, LogDirectoryFailed, OttlaError
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition, Uuid
from ottla.log.compaction.compactor import Compactor
from ottla.log.directories import removal
from ottla.log.directories.creation import Made, NewPartition, make_all
from ottla.log.directories.folder_deletion import FolderDeletions
from ottla.log.directories.log_directory import LogDirectory, LogWorld
from ottla.log.partition_log import LogOptions, PartitionLog

CLOSED_AT_ONCE = 16
"""How many logs are closed at a time: more than there are worker threads, so that none of those has to wait."""


class DirectoryLoss(NamedTuple):
    """What the failure of a directory means."""

    directory: str
    directory_id: Uuid | None
    partitions: tuple[TopicPartition, ...]
    """The partitions that are offline now."""
    must_stop: str | None
    """Why the node has to stop; None if it can go on."""


@dataclass(slots=True)
class LogCounters:
    """What has been done to the logs of a node since it started."""

    segments_expired: int = 0
    bytes_expired: int = 0
    """What retention has deleted."""


class LogDirectories:
    """The log directories of one node. `opening.py` makes it."""

    def __init__(
        self,
        world: LogWorld,
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
        """Held while a partition is made, deleted, or changes its directory: one at a time."""
        self.wanted_in: dict[TopicPartition, str] = {}
        """Directories that somebody has asked for before the partition was there."""
        self._cordoned: frozenset[str] = frozenset()
        self._lost = {directory.path for directory in directories if not directory.is_online}
        self._losses = [self._loss(directory) for directory in directories if not directory.is_online]
        self._partitions: dict[TopicPartition, LogDirectory] = {}
        for directory in directories:
            self._partitions.update(dict.fromkeys(directory.logs, directory))

    # Looking

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
        """The log of `partition`, None if it is not here. `KafkaError` KAFKA_STORAGE_ERROR if it is, but offline."""
        directory = self._partitions.get(partition)
        if directory is not None and directory.is_online:
            return directory.logs[partition]
        reason = self.reason_offline(partition)
        if reason is not None:
            why = reason.brief if isinstance(reason, LogDirectoryFailed) else reason
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{partition} is offline: {why}")
        return None

    def directory_of(self, partition: TopicPartition) -> LogDirectory | None:
        """Where the log of `partition` is, or was when its directory failed."""
        return self._partitions.get(partition)

    def directory_with(self, partition: TopicPartition) -> LogDirectory | None:
        """Where its folder is, usable or damaged."""
        return self._partitions.get(partition) or self._directory_with_damaged(partition)

    @property
    def topic_defaults(self) -> LogConfig:
        """What logs go by whose topic has no settings."""
        return self._config.topic_defaults

    @property
    def placeable(self) -> tuple[LogDirectory, ...]:
        """Those for partitions: without one that is the metadata log's alone."""
        return tuple(self._placeable)

    def cordon(self, paths: Iterable[str]) -> None:
        """cordoned.log.dirs: let nothing new be made in these directories, and in no others; `*` stands for all of them."""
        self._cordoned = frozenset(path if path == "*" else self.world.disk.absolute(path) for path in paths)

    def is_cordoned(self, directory: LogDirectory) -> bool:
        return "*" in self._cordoned or directory.path in self._cordoned

    @property
    def cordoned_ids(self) -> list[Uuid]:
        """The ids of those that are cordoned, in the order of log.dirs."""
        cordoned = (directory.directory_id for directory in self._placeable if self.is_cordoned(directory))
        return [directory_id for directory_id in cordoned if directory_id is not None]

    def directory_at(self, path: str) -> LogDirectory | None:
        """The directory that `path` names, if it is one for partitions."""
        return next((directory for directory in self._placeable if directory.path == path), None)

    def future_of(self, partition: TopicPartition) -> LogDirectory | None:
        """The directory that the partition is on its way to."""
        return next((directory for directory in self._directories if partition in directory.future_logs), None)

    def place(self, partition: TopicPartition, directory: LogDirectory) -> None:
        """The log of `partition` is in `directory` from now on."""
        self._partitions[partition] = directory

    def displace(self, partition: TopicPartition) -> None:
        """The log of `partition` is in no directory any more."""
        self._partitions.pop(partition, None)
        self.wanted_in.pop(partition, None)

    def reason_offline(self, partition: TopicPartition) -> OttlaError | None:
        """Why the partition is here but cannot be used; None if it can, or is not known to be here."""
        directory = self._partitions.get(partition)
        if directory is not None:
            return directory.failure
        directory = self._directory_with_damaged(partition)
        return directory.damaged[partition] if directory is not None else None

    # Making and deleting partitions

    async def create(
        self,
        partition: TopicPartition,
        config: LogConfig,
        topic_id: Uuid,
        *,
        is_new: bool = True,
        directory_id: Uuid | None = None,
    ) -> PartitionLog:
        """The log of one `NewPartition`: the one that is here, or a new one; raises why it cannot be had."""
        (made,) = await self.create_all([NewPartition(partition, config, topic_id, is_new, directory_id)])
        if isinstance(made, OttlaError):
            raise made
        return made

    async def create_all(self, wanted: Sequence[NewPartition]) -> list[Made]:
        """The logs of `wanted`: those that are here, and new ones in the directories with the fewest partitions.

        A directory that fails is put by for `take_losses`, and the next best is taken; `LogDirectoryFailed` if it was the last.
        """
        async with self.changing:
            return await make_all(self, wanted)

    async def delete(self, partition: TopicPartition) -> bool:
        """`delete_all` for one: False if it is not here; raises what keeps it from going."""
        async with self.changing:
            is_here = self.directory_with(partition) is not None or self.future_of(partition) is not None
            for failure in await removal.delete_all(self, [partition]):
                raise failure
            return is_here

    async def delete_all(self, partitions: Iterable[TopicPartition]) -> list[LogDirectoryFailed]:
        """Take partitions away, damaged or not: their folders are renamed now and removed later.

        Returns the failures that kept some from going.
        """
        async with self.changing:
            return await removal.delete_all(self, partitions)

    async def set_stray(self, partition: TopicPartition) -> bool:
        """Put aside a partition that the cluster does not place here; its files stay. False if it is not here."""
        async with self.changing:
            return await removal.set_stray(self, partition)

    async def drop_future(self, partition: TopicPartition) -> None:
        """Call off a move: the copy of `partition` that is on its way to another directory goes, the log stays."""
        async with self.changing:
            await removal.drop_future(self, partition)

    def _directory_with_damaged(self, partition: TopicPartition) -> LogDirectory | None:
        return next((directory for directory in self.online() if partition in directory.damaged), None)

    def compaction_paused(self, partition: TopicPartition) -> AbstractAsyncContextManager[None]:
        return self.compactor.paused(partition) if self.compactor is not None else nullcontext()

    # Shortening logs

    async def truncate(self, partition: TopicPartition, offset: int) -> bool:
        """Cut a log's end off, and write down its lower recovery point before anything can be appended again."""
        log, directory = self._required(partition)
        before = log.recovery_point
        async with self.compaction_paused(partition):
            changed = await log.truncate_to(offset)
        if changed and self.compactor is not None:
            await self.compactor.truncated(log)
        if log.recovery_point < before:
            await directory.write_recovery_points()
        return changed

    async def truncate_fully(self, partition: TopicPartition, offset: int) -> None:
        """Drop every record of a log; the next one gets `offset`."""
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

    # Failing and ending

    def reason_to_stop(self) -> str | None:
        """Why the node cannot go on with the directories that are left, in words; None if it can."""
        for directory in self._directories:
            if directory.failure is not None and directory.path == self._config.metadata_log_dir:
                failure = directory.failure
                return f"the node cannot work without its metadata log: {failure.brief}. {failure.remedy}"
        if not any(directory.is_online for directory in self._placeable):
            return f"no log directory is left: all of {', '.join(self._config.log_dirs)} have failed. Repair one and restart"
        return None

    def lose(self, failure: LogDirectoryFailed, log: PartitionLog | None = None) -> DirectoryLoss | None:
        """A directory has failed: take all of it offline. None if that was known, or if only a deleted `log` was in trouble."""
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
        """`lose`, for whoever goes on with other directories: what it meant is put by for `take_losses`."""
        if (loss := self.lose(failure, log)) is not None:
            self._losses.append(loss)

    def take_losses(self) -> list[DirectoryLoss]:
        """The losses that were put by since this was last asked."""
        losses, self._losses = self._losses, []
        return losses

    async def close(self, broker_epoch: int = -1) -> None:
        """Close all logs and leave every directory in good order, as far as it still works. Losses are put by."""
        at_once = max(CLOSED_AT_ONCE, self._config.num_recovery_threads_per_data_dir)
        results = await asyncio.gather(
            *(directory.close(broker_epoch, at_once) for directory in self._directories), return_exceptions=True
        )
        for result in results:
            if isinstance(result, LogDirectoryFailed):
                self.note_loss(result)
        for result in results:
            if isinstance(result, BaseException) and not isinstance(result, LogDirectoryFailed):
                raise result
