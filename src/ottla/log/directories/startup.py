"""Opens all log directories of a node: locked and checked first, loaded when the settings of their topics are known.

`open_directories` takes the locks and checks that the directories are this node's, before anything in them is changed: a wrong
one is refused with one sentence and stays as it was. `load_directory` then opens the logs of one directory, several at a time;
after an unclean shutdown, large logs are recovered in helper processes first.

A directory holds: folders of partitions in use; `-future` folders, opened but not served; `-stray` folders, ignored; `-delete`
folders, removed; the metadata log, which is opened elsewhere. Any other folder is refused: it might be a partition whose folder
was renamed, and creating that partition again would lose its records.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from ottla.config.broker_log import BrokerLogConfig
from ottla.config.topic import LogConfig
from ottla.env import Disk, HelperDied, OpenMode
from ottla.errors import BrokenInvariant, LogDirectoryFailed, OttlaError
from ottla.errors.texts import counted
from ottla.ids import TopicPartition, Uuid
from ottla.log.compaction.compactor import Compactor
from ottla.log.directories.clean_shutdown import read_clean_shutdown, remove_clean_shutdown
from ottla.log.directories.log_directories import LogDirectories
from ottla.log.directories.log_directory import Checkpoints, DirectoryWorld, LogDirectory
from ottla.log.directories.meta_properties import (
    MetaProperties,
    WrongDirectory,
    check_same_node,
    is_reserved,
    read_meta_properties,
    write_meta_properties,
)
from ottla.log.directories.partition_metadata import read_partition_metadata
from ottla.log.directories.relocation import finish_switched
from ottla.log.names import CLUSTER_METADATA_TOPIC, LOG_SUFFIX, FolderName, parse_folder_name, segment_file_name
from ottla.log.partition_log import LogOptions, PartitionLog
from ottla.log.producers.producer_limit import ProducerLimit
from ottla.log.recovery.log_loader import MODULE, RecoveredElsewhere, bytes_to_recover, load_log, recovery_job
from ottla.log.recovery.vacant import holds_no_record, sync_empty_files
from ottla.records.produced.inspection import Inspection

logger = logging.getLogger("ottla.log")

SLICE = 8
"""How many logs are loaded before other tasks run: 1 to 5 ms."""

EMPTY_LOGS_AT_ONCE = 16
"""How many logs without records are synced with one call of a worker thread. Three descriptors each are open meanwhile."""

RECOVER_IN_PLACE_BYTES_MAX = 16 << 20
"""Up to this size a log is recovered on the event loop: starting a helper process would take longer."""

FOREIGN_FOLDERS = frozenset({"lost+found", "remote-log-index-cache"})
"""Folders that are no partitions but allowed: the file system's own, and tiered storage's."""

TopicConfigs = Callable[[str], LogConfig]


async def open_directories(
    world: DirectoryWorld, paths: Sequence[str], metadata_path: str, node_id: int, cluster_id: str | None
) -> list[LogDirectory]:
    """Lock and check the directories. One with a failed device is returned as failed.

    `DirectoryInUse`, `WrongDirectory` or `CorruptFile` if the node must not start on them; all locks are then released.
    """
    directories: list[LogDirectory] = []
    metas: dict[str, MetaProperties] = {}
    try:
        for path in paths:
            _lock(world, path, directories)
        for directory in directories:
            try:
                if directory.is_online:
                    metas[directory.path] = require_meta(world.disk, directory.path)
                    check_folders(world.disk, directory.path, metadata_path)
                    directory.found = read_clean_shutdown(world.disk, directory.path)
            except OSError as error:
                directory.fail(error)
        check_same_node(metas, node_id, cluster_id)
        await _settle_duplicates(world, directories)
        for directory in directories:
            if directory.is_online:
                await _give_id(world, directory, metas[directory.path])
    except BaseException:
        for directory in directories:
            directory.release()
        raise
    return directories


def _lock(world: DirectoryWorld, path: str, directories: list[LogDirectory]) -> None:
    """Add the directory to `directories`, locked or failed."""
    try:
        world.disk.make_directory(path)
        directories.append(LogDirectory(world, path, None, world.disk.lock_directory(path)))
    except OSError as error:
        directories.append(LogDirectory(world, path, None, None))
        directories[-1].fail(error)


def require_meta(disk: Disk, path: str) -> MetaProperties:
    """Who a directory belongs to; `WrongDirectory` if it is not formatted."""
    meta = read_meta_properties(disk, path)
    if meta is None:
        raise WrongDirectory(
            f"log directory {path} has no meta.properties: format it first (ottla storage format), or correct log.dirs"
        )
    return meta


def check_folders(disk: Disk, path: str, metadata_path: str) -> None:
    """Refuse a directory with folders that cannot be partitions, or with a metadata log that belongs elsewhere."""
    for name in partition_folders(disk, path):
        folder = parse_folder_name(name)
        if folder.partition.topic == CLUSTER_METADATA_TOPIC and path != metadata_path:
            raise WrongDirectory(
                f"log directory {path} holds {name}, but the metadata log belongs in {metadata_path}: correct "
                "metadata.log.dir, or move the folder away"
            )


def partition_folders(disk: Disk, path: str) -> list[str]:
    """The names of the folders in a directory that are, or should be, partitions'."""
    names = disk.list_files(path)
    return [name for name, size in names.items() if size < 0 and name not in FOREIGN_FOLDERS]


async def _settle_duplicates(world: DirectoryWorld, directories: Sequence[LogDirectory]) -> None:
    """Make sure that no partition is in two directories. An empty copy, left by a failed creation, is removed."""
    owners: dict[tuple[TopicPartition, str], LogDirectory] = {}
    for directory in directories:
        if not directory.is_online:
            continue
        for name in partition_folders(world.disk, directory.path):
            folder = parse_folder_name(name)
            if folder.is_deletion or folder.is_stray:
                continue
            other = owners.setdefault((folder.partition, folder.suffix), directory)
            if other is directory:
                continue
            empty = next((each for each in (directory, other) if _never_held_records(world, f"{each.path}/{name}")), None)
            if empty is None:
                raise WrongDirectory(
                    f"log directories {other.path} and {directory.path} both hold {folder.partition}: decide which is right "
                    "and move the other away"
                )
            logger.warning("removing %s/%s, which never held a record: %s is in another directory too", empty.path, name, name)
            owners[folder.partition, folder.suffix] = directory if empty is other else other
            try:
                await world.disk.remove_directory(f"{empty.path}/{name}")
            except OSError as error:
                empty.fail(error)


def _never_held_records(world: DirectoryWorld, folder: str) -> bool:
    """Whether a folder has no segment, or only a first one that is empty."""
    logs = [name for name in world.disk.list_directory(folder) if name.endswith(LOG_SUFFIX)]
    if logs != [segment_file_name(0, LOG_SUFFIX)]:
        return not logs
    file = world.disk.open(f"{folder}/{logs[0]}", OpenMode.READ)
    file.close()
    return file.size == 0


async def _give_id(world: DirectoryWorld, directory: LogDirectory, meta: MetaProperties) -> None:
    if meta.directory_id is None:
        directory_id = world.new_uuid()
        while is_reserved(directory_id):
            directory_id = world.new_uuid()
        meta = meta._replace(directory_id=directory_id)
        try:
            await write_meta_properties(world.disk, directory.path, meta, world.clock.now_ms())
        except OSError as error:
            directory.fail(error)
    directory.directory_id, directory.cluster_id = meta.directory_id, meta.cluster_id


class LoadProgress:
    """How far a start is with opening logs, in all directories together. Others may read it at any time."""

    __slots__ = ("is_recovery", "logs", "opened")

    def __init__(self) -> None:
        self.logs = 0
        self.opened = 0
        self.is_recovery = False
        """Some directory has no mark of a clean shutdown."""

    @property
    def is_under_way(self) -> bool:
        """Whether logs wait to be opened."""
        return self.opened < self.logs

    def __str__(self) -> str:
        return f"{'recovering' if self.is_recovery else 'loading'} {self.opened}/{self.logs} logs"


async def load_directory(
    world: DirectoryWorld,
    directory: LogDirectory,
    topic_configs: TopicConfigs,
    options: LogOptions,
    at_once: int,
    progress: LoadProgress,
) -> None:
    """Open the logs of a checked directory, `at_once` at a time. If the device fails, the directory becomes failed."""
    try:
        await remove_clean_shutdown(world.disk, directory.path)
        checkpoints = directory.read_checkpoints()
        folders = [(name, parse_folder_name(name)) for name in partition_folders(world.disk, directory.path)]
        for name, folder in folders:
            if folder.is_deletion:
                logger.info("removing %s/%s, which was deleted before the restart", directory.path, name)
                await world.disk.remove_directory(directory.folder(name))
            elif folder.is_stray:
                logger.warning("%s/%s is ignored: the cluster does not place it here", directory.path, name)
                directory.stray_folders.append(name)
        served = [pair for pair in folders if pair[1].suffix in ("", "-future")]
        loader = _DirectoryLoader(world, directory, topic_configs, options, checkpoints, progress)
        await loader.load([pair for pair in served if pair[1].partition.topic != CLUSTER_METADATA_TOPIC], at_once)
        if directory.is_online and not checkpoints.partitions <= directory.partitions:
            # Entries of partitions that are gone must not be applied to a new partition of that name.
            await directory.write_checkpoints()
    except OSError as error:
        directory.fail(error)
    except LogDirectoryFailed:
        pass


class _DirectoryLoader:
    """Opens the logs of one directory."""

    def __init__(
        self,
        world: DirectoryWorld,
        directory: LogDirectory,
        topic_configs: TopicConfigs,
        options: LogOptions,
        checkpoints: Checkpoints,
        progress: LoadProgress,
    ) -> None:
        self._progress = progress
        self._world = world
        self._directory = directory
        self._topic_configs = topic_configs
        self._options = options
        self._checkpoints = checkpoints
        self._settled: set[str] = set()
        """Folders without records whose files are durable, as after a clean shutdown: none of their files has to be opened."""

    async def load(self, folders: list[tuple[str, FolderName]], at_once: int) -> None:
        if folders:
            how = "a clean" if self._directory.found is not None else "an unclean"
            logger.info("loading %s of %s after %s shutdown", counted(len(folders), "partition"), self._directory.path, how)
        self._progress.logs += len(folders)
        if self._directory.found is None:
            self._progress.is_recovery = True
            await self._settle_empty([name for name, _ in folders], at_once)
        remaining = iter(folders)

        async def load_some() -> None:
            for number, (name, folder) in enumerate(remaining):
                if self._directory.is_online:
                    await self._load_one(name, folder)
                self._progress.opened += 1
                if number % SLICE == 0:
                    await asyncio.sleep(0)  # most logs are loaded without an await: let other tasks run

        await asyncio.gather(*(load_some() for _ in range(at_once)))

    async def _settle_empty(self, names: list[str], at_once: int) -> None:
        """Find the logs that have no records, most of a large node's, and sync them in pieces: one by one takes a minute."""
        disk, pieces = self._world.disk, iter(range(0, len(names), EMPTY_LOGS_AT_ONCE))

        async def settle_some() -> None:
            for first in pieces:
                folders = [self._directory.folder(name) for name in names[first : first + EMPTY_LOGS_AT_ONCE]]
                empty = [folder for folder in folders if holds_no_record(disk.list_files(folder))]
                await sync_empty_files(disk, empty)
                self._settled.update(empty)
                await asyncio.sleep(0)

        await asyncio.gather(*(settle_some() for _ in range(at_once)))

    async def _load_one(self, name: str, folder: FolderName) -> None:
        directory, partition = self._directory, folder.partition
        try:
            topic_id = read_partition_metadata(self._world.disk, directory.folder(name))
            log = await self._open_log(directory.folder(name), partition)
        except LogDirectoryFailed as failed:
            directory.fail(failed.cause)
        except OSError as error:
            directory.fail(error)
        except BrokenInvariant:
            raise
        except OttlaError as damage:
            logger.error("%s cannot be opened and stays offline: %s", partition, damage)
            self._set_aside(partition, damage)
        else:
            (directory.future_logs if folder.is_future else directory.logs)[partition] = log
            if topic_id is not None:
                directory.topic_ids[partition] = topic_id

    def _set_aside(self, partition: TopicPartition, damage: OttlaError) -> None:
        self._directory.damaged[partition] = damage
        carried, found = self._directory.carried, self._checkpoints
        for kept, entries in (
            (carried.recovery_points, found.recovery_points),
            (carried.high_watermarks, found.high_watermarks),
            (carried.log_starts, found.log_starts),
        ):
            if partition in entries:
                kept[partition] = entries[partition]

    async def _open_log(self, folder: str, partition: TopicPartition) -> PartitionLog:
        config = self._topic_configs(partition.topic)
        recovery_point = self._checkpoints.recovery_points.get(partition, 0)
        log_start = self._checkpoints.log_starts.get(partition, 0)
        clean = self._directory.found is not None or folder in self._settled
        recovered: RecoveredElsewhere | None = None
        if not clean:
            recovered = await self._recover_in_helper(folder, config, recovery_point, log_start)
            if recovered is not None:
                clean, recovery_point, log_start = True, recovered.recovery_point, recovered.log_start_offset
        log, _ = await load_log(
            self._world.disk,
            self._world.clock,
            folder,
            config,
            self._options,
            recovery_point=recovery_point,
            log_start_offset=log_start,
            clean_shutdown=clean,
        )
        if recovered is not None:
            log.gap_offset = recovered.gap_offset
        log.update_high_watermark(self._checkpoints.high_watermarks.get(partition, 0))
        return log

    async def _recover_in_helper(
        self, folder: str, config: LogConfig, recovery_point: int, log_start: int
    ) -> RecoveredElsewhere | None:
        """Recover a large log in a helper process; None if it is small, or if the helper died."""
        helpers = self._world.helpers
        if helpers is None or bytes_to_recover(self._world.disk, folder, recovery_point) <= RECOVER_IN_PLACE_BYTES_MAX:
            return None
        job = recovery_job(folder, config, self._options, recovery_point, log_start)
        try:
            recovered = RecoveredElsewhere.from_json(await helpers.run(MODULE, job))
        except HelperDied as reason:
            logger.warning("recovering %s on the event loop: %s", folder, reason)
            return None
        for note in recovered.notes:
            logger.warning("%s: %s", folder, note)
        return recovered


class MustStop(OttlaError):
    """The node cannot start or continue with the directories that are left."""


class LockedDirectories(NamedTuple):
    """Locked and checked directories, not yet loaded: the metadata log is read first, since it has the topics' settings."""

    world: DirectoryWorld
    config: BrokerLogConfig
    directories: list[LogDirectory]
    progress: LoadProgress

    @property
    def cluster_id(self) -> str:
        """The cluster that all of them belong to; empty if every one has failed."""
        return next((directory.cluster_id for directory in self.directories if directory.is_online), "")

    @property
    def metadata_directory_id(self) -> Uuid:
        """The id of the directory that has the metadata log; `MustStop` if it has failed."""
        directory = next(each for each in self.directories if each.path == self.config.metadata_log_dir)
        if directory.failure is not None:
            raise MustStop(
                f"the node cannot work without its metadata log: {directory.failure.brief}. {directory.failure.remedy}"
            )
        assert directory.directory_id is not None, "a directory that is online has its id"
        return directory.directory_id

    async def load(
        self, topic_configs: TopicConfigs, *, options: LogOptions | None = None, compactor: Compactor | None = None
    ) -> LogDirectories:
        """Open all logs; see `open_all`. The locks are released if that fails."""
        limit = ProducerLimit(self.config.ottla_max_producer_ids, self.world.clock)
        options = options or LogOptions(
            producer_expiration_ms=self.config.producer_id_expiration_ms, inspection=Inspection(), producer_limit=limit
        )
        at_once = self.config.num_recovery_threads_per_data_dir
        online = [directory for directory in self.directories if directory.is_online]
        try:
            await asyncio.gather(
                *(load_directory(self.world, each, topic_configs, options, at_once, self.progress) for each in online)
            )
        except BaseException:
            self.release()
            raise
        opened = LogDirectories(self.world, self.config, options, self.directories, compactor)
        limit.states = lambda: (log.producers for directory in self.directories for log in directory.logs.values())
        await finish_switched(opened)
        if (reason := opened.reason_to_stop()) is not None:
            self.release()
            raise MustStop(reason)
        return opened

    def release(self) -> None:
        """Release the locks."""
        for directory in self.directories:
            directory.release()


async def lock_directories(
    world: DirectoryWorld, config: BrokerLogConfig, *, node_id: int, cluster_id: str | None = None
) -> LockedDirectories:
    """Lock and check all directories of a node. `DirectoryInUse`, `WrongDirectory` or `CorruptFile` if it must not start."""
    config = replace(
        config,
        log_dirs=tuple(map(world.disk.absolute, config.log_dirs)),
        metadata_log_dir=world.disk.absolute(config.metadata_log_dir),
    )
    paths = list(dict.fromkeys((*config.log_dirs, config.metadata_log_dir)))
    directories = await open_directories(world, paths, config.metadata_log_dir, node_id, cluster_id)
    return LockedDirectories(world, config, directories, LoadProgress())


async def open_all(
    world: DirectoryWorld,
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
