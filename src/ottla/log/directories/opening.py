"""Opens all log directories of a node: locked and checked first, loaded when the settings of their topics are known."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import NamedTuple

from ottla.config.broker_log import BrokerLogConfig
from ottla.errors import OttlaError
from ottla.ids import Uuid
from ottla.log.compaction.compactor import Compactor
from ottla.log.directories.directory_loading import TopicConfigs, load_directory, open_directories
from ottla.log.directories.log_directories import LogDirectories
from ottla.log.directories.log_directory import DirectoryWorld, LogDirectory
from ottla.log.directories.relocation import finish_switched
from ottla.log.partition_log import LogOptions
from ottla.log.producers.producer_limit import ProducerLimit
from ottla.records.produced.inspection import Inspection


class MustStop(OttlaError):
    """The node cannot start or continue with the directories that are left."""


class LockedDirectories(NamedTuple):
    """Locked and checked directories, not yet loaded: the metadata log is read first, since it has the topics' settings."""

    world: DirectoryWorld
    config: BrokerLogConfig
    directories: list[LogDirectory]

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
            await asyncio.gather(*(load_directory(self.world, each, topic_configs, options, at_once) for each in online))
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
    return LockedDirectories(world, config, await open_directories(world, paths, config.metadata_log_dir, node_id, cluster_id))


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
