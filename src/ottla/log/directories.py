"""All log directories of a node: opens them, finds and places partitions, keeps checkpoints, copes with a disk that fails.

One event loop; starts no task and sets no timer. What comes round with time (retention, flushes, removals, checkpoints) is in
`upkeep.py`.

When a directory fails, only its partitions go offline: `lose` says which, and whether the node has to stop, as it must when the
metadata log was there or no directory is left. Whoever is told `LogDirectoryFailed` by a log hands it to `lose`; losses met
by work that went on with another directory are put by, for `take_losses`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import NamedTuple

from ottla.config.broker_log import BrokerLogConfig
from ottla.config.topic import LogConfig
from ottla.errors import KafkaError, LogDirectoryFailed, OttlaError
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition, Uuid, uuid_text
from ottla.log.compaction.compactor import Compactor
from ottla.log.directory import LogDirectory, LogWorld
from ottla.log.directory_loading import TopicConfigs, load_directory, open_directories
from ottla.log.folder_deletion import FolderDeletions
from ottla.log.loading import load_log
from ottla.log.names import folder_name
from ottla.log.partition_log import LogOptions, PartitionLog
from ottla.log.partition_metadata import write_partition_metadata
from ottla.log.placement import by_preference
from ottla.log.relocation import finish_switched

logger = logging.getLogger("ottla.log")


AT_ONCE = 16
"""How many partitions are made or closed at a time: more than there are worker threads, so that none of those has to wait."""


class MustStop(OttlaError):
    """The node cannot go on with the directories that are left."""


class NewPartition(NamedTuple):
    """A partition to be made; see `LogDirectories.create`."""

    partition: TopicPartition
    config: LogConfig
    topic_id: Uuid
    is_new: bool = True
    directory_id: Uuid | None = None


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


class LockedDirectories(NamedTuple):
    """Directories that are this node's, held but not yet loaded: the metadata log is read first, since it has the settings."""

    world: LogWorld
    config: BrokerLogConfig
    directories: list[LogDirectory]

    @property
    def cluster_id(self) -> str:
        """The cluster that all of them belong to; empty if every one has failed."""
        return next((directory.cluster_id for directory in self.directories if directory.is_online), "")

    @property
    def metadata_directory_id(self) -> Uuid:
        """The id of the directory that has the metadata log; `MustStop` if it has failed."""
        for directory in self.directories:
            if directory.path == self.config.metadata_log_dir and directory.directory_id is not None and directory.is_online:
                return directory.directory_id
        raise MustStop(f"the metadata log belongs in {self.config.metadata_log_dir}, which has failed: repair it and restart")

    async def load(
        self, topic_configs: TopicConfigs, *, options: LogOptions | None = None, compactor: Compactor | None = None
    ) -> LogDirectories:
        """Open all logs; see `LogDirectories.open`. The locks are given back if that fails."""
        options = options or LogOptions(producer_expiration_ms=self.config.producer_id_expiration_ms)
        at_once = self.config.num_recovery_threads_per_data_dir
        online = [directory for directory in self.directories if directory.is_online]
        try:
            await asyncio.gather(*(load_directory(self.world, each, topic_configs, options, at_once) for each in online))
        except BaseException:
            self.release()
            raise
        opened = LogDirectories(self.world, self.config, options, self.directories, compactor)
        await finish_switched(opened)
        if (reason := opened.reason_to_stop()) is not None:
            self.release()
            raise MustStop(reason)
        return opened

    def release(self) -> None:
        """Give the locks back."""
        for directory in self.directories:
            directory.release()


async def lock_directories(
    world: LogWorld, config: BrokerLogConfig, *, node_id: int, cluster_id: str | None = None
) -> LockedDirectories:
    """Lock and check all directories of a node. `DirectoryInUse`, `WrongDirectory` or `CorruptFile` if it must not start."""
    config = replace(
        config,
        log_dirs=tuple(map(world.disk.absolute, config.log_dirs)),
        metadata_log_dir=world.disk.absolute(config.metadata_log_dir),
    )
    paths = list(dict.fromkeys((*config.log_dirs, config.metadata_log_dir)))
    return LockedDirectories(world, config, await open_directories(world, paths, config.metadata_log_dir, node_id, cluster_id))


class LogDirectories:
    """The log directories of one node. Made by `open`, or by `lock_directories` and `load`."""

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

    @classmethod
    async def open(
        cls,
        world: LogWorld,
        config: BrokerLogConfig,
        topic_configs: TopicConfigs,
        *,
        node_id: int,
        cluster_id: str | None = None,
        options: LogOptions | None = None,
        compactor: Compactor | None = None,
    ) -> LogDirectories:
        """Lock, check and load all directories. `topic_configs` has the settings of a topic by name.

        `DirectoryInUse`, `WrongDirectory` or `CorruptFile` before anything is changed; `MustStop` if too much has failed.
        """
        locked = await lock_directories(world, config, node_id=node_id, cluster_id=cluster_id)
        return await locked.load(topic_configs, options=options, compactor=compactor)

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
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{partition} is offline: {reason}")
        return None

    def directory_of(self, partition: TopicPartition) -> LogDirectory | None:
        return self._partitions.get(partition)

    @property
    def placeable(self) -> tuple[LogDirectory, ...]:
        """Those for partitions: without one that is the metadata log's alone."""
        return tuple(self._placeable)

    def cordon(self, paths: Iterable[str]) -> None:
        """cordoned.log.dirs: let nothing new be made in these directories, and in no others; `*` stands for all of them."""
        self._cordoned = frozenset(path if path == "*" else self.world.disk.absolute(path) for path in paths)

    def is_cordoned(self, directory: LogDirectory) -> bool:
        return "*" in self._cordoned or directory.path in self._cordoned

    def directory_at(self, path: str) -> LogDirectory | None:
        """The directory that `path` names, if it is one for partitions."""
        return next((directory for directory in self._placeable if directory.path == path), None)

    def future_of(self, partition: TopicPartition) -> LogDirectory | None:
        """The directory that the partition is on its way to."""
        return next((directory for directory in self._directories if partition in directory.future_logs), None)

    def place(self, partition: TopicPartition, directory: LogDirectory) -> None:
        """The log of `partition` is in `directory` from now on."""
        self._partitions[partition] = directory

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
        """The log of `partition`: the one that is here, or a new one in the directory with the fewest partitions.

        With `is_new` false the partition has existed before and may lie in a directory that is offline: then nothing is made,
        and the error is KAFKA_STORAGE_ERROR. `directory_id` asks for a certain directory. A directory that fails is put by for
        `take_losses`, and the next best is taken; `LogDirectoryFailed` if it was the last.
        """
        async with self.changing:
            return await self._create(NewPartition(partition, config, topic_id, is_new, directory_id))

    async def create_all(self, wanted: Sequence[NewPartition]) -> list[PartitionLog | BaseException]:
        """As `create`, for many: they wait for the device together. Each gets its log, or what `create` would raise."""
        turns = asyncio.Semaphore(AT_ONCE)

        async def create(new: NewPartition) -> PartitionLog:
            async with turns:
                return await self._create(new)

        async with self.changing:
            return await asyncio.gather(*map(create, wanted), return_exceptions=True)

    async def _create(self, new: NewPartition) -> PartitionLog:
        partition = new.partition
        log = self.find(partition)
        if log is not None:
            await self._check_topic(partition, new.topic_id)
            return log
        if not new.is_new and (offline := [d.path for d in self._directories if not d.is_online]):
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"{partition} is not made anew: it may lie in {', '.join(offline)}, which failed. Repair that first",
            )
        failure: LogDirectoryFailed | None = None
        for directory in self._choose(new.directory_id, self.wanted_in.pop(partition, None)):
            directory.arriving += 1
            try:
                return await self._create_in(directory, partition, new.config, new.topic_id)
            except LogDirectoryFailed as failed:
                failure = failed
                self.note_loss(failed)
            finally:
                directory.arriving -= 1
        raise failure or KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{partition} has nowhere to go: no log directory is left")

    def _choose(self, directory_id: Uuid | None, path: str | None) -> list[LogDirectory]:
        """The directories to try: the one whose id the cluster names, else the one that was asked for, else the best first."""
        if directory_id is not None:
            asked_for = [d for d in self._placeable if d.is_online and d.directory_id == directory_id]
        else:
            asked_for = [d for d in self._placeable if d.is_online and d.path == path]
        if asked_for:
            return asked_for
        open_to_new = [d for d in self._placeable if not self.is_cordoned(d)]
        return by_preference(open_to_new) or by_preference(self._placeable)  # that it comes here is not for us to refuse

    async def _create_in(
        self, directory: LogDirectory, partition: TopicPartition, config: LogConfig, topic_id: Uuid
    ) -> PartitionLog:
        folder = directory.folder(folder_name(partition))
        disk = self.world.disk
        try:
            disk.make_directory(folder)
            await write_partition_metadata(disk, folder, topic_id)
            await directory.sync_names()
        except OSError as error:
            raise LogDirectoryFailed(directory.path, error) from error
        log, _ = await load_log(disk, self.world.clock, folder, config, self.options, clean_shutdown=True)
        directory.check_online()  # another that is being made may have found it failed
        directory.logs[partition] = log
        directory.topic_ids[partition] = topic_id
        self._partitions[partition] = directory
        logger.info("made %s in %s", partition, directory.path)
        return log

    async def _check_topic(self, partition: TopicPartition, topic_id: Uuid) -> None:
        directory = self._partitions[partition]
        known = directory.topic_ids.get(partition)
        if known is None:
            await directory.guarded(write_partition_metadata(self.world.disk, directory.logs[partition].folder, topic_id))
            directory.topic_ids[partition] = topic_id
        elif known != topic_id:
            raise KafkaError(
                ErrorCode.INCONSISTENT_TOPIC_ID,
                f"the folder of {partition} in {directory.path} belongs to topic id {uuid_text(known)}, not "
                f"{uuid_text(topic_id)}: it is left from an earlier topic of that name",
            )

    async def delete(self, partition: TopicPartition) -> bool:
        """Take a partition away, damaged or not: its folder is renamed now and removed later. False if it is not here."""
        return await self._put_aside(partition, stray=False)

    async def set_stray(self, partition: TopicPartition) -> bool:
        """Put aside a partition that the cluster does not place here; its files stay. False if it is not here."""
        return await self._put_aside(partition, stray=True)

    async def _put_aside(self, partition: TopicPartition, stray: bool) -> bool:
        async with self.changing:
            directory = self._partitions.get(partition) or self._directory_with_damaged(partition)
            if directory is None:
                if stray or self.future_of(partition) is None:
                    return False
                await self._drop_future(partition)  # all that is here: its log is in a directory that is offline
                return True
            directory.check_online()
            await self._drop_future(partition)  # first: a copy that is alone would be taken for the partition
            async with self.compaction_paused(partition):
                if stray:
                    await self.deletions.set_stray(directory, partition)
                else:
                    log = directory.logs.get(partition)
                    config = log.config if log is not None else self._config.topic_defaults
                    await self.deletions.delete(directory, partition, config.file_delete_delay_ms)
            self._partitions.pop(partition, None)
            self.wanted_in.pop(partition, None)
            if self.compactor is not None:
                await directory.guarded(self.compactor.forget(directory.path, partition))
            # A new partition of that name must not be taken to begin, or to be safe, where this one was.
            await directory.write_checkpoints()
            return True

    async def drop_future(self, partition: TopicPartition) -> None:
        """Call off a move: the copy of `partition` that is on its way to another directory goes, the log stays."""
        async with self.changing:
            await self._drop_future(partition)

    async def _drop_future(self, partition: TopicPartition) -> None:
        directory = self.future_of(partition)
        if directory is not None and directory.is_online:
            await self.deletions.delete_future(directory, partition)
            await directory.write_checkpoints()

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
            if not directory.is_online and directory.path == self._config.metadata_log_dir:
                return f"the metadata log is in {directory.path}, and the node cannot work without it. {directory.failure}"
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
        at_once = max(AT_ONCE, self._config.num_recovery_threads_per_data_dir)
        results = await asyncio.gather(
            *(directory.close(broker_epoch, at_once) for directory in self._directories), return_exceptions=True
        )
        for result in results:
            if isinstance(result, LogDirectoryFailed):
                self.note_loss(result)
        for result in results:
            if isinstance(result, BaseException) and not isinstance(result, LogDirectoryFailed):
                raise result
