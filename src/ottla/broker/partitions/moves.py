"""Moves partitions from one log directory of this node to another: one task each, a few at a time.

Decides whether a partition may move to the requested directory, and drives the move (`log/directories/relocation.py`): copies
the log in pieces, between which other tasks run; reports the new directory to the controller; replaces the log by the copy. A
move that a shutdown interrupts continues at the next start.

One event loop. Clients do not notice: between two requests the partition's log is replaced by its copy.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ottla.broker.background import watched
from ottla.broker.partitions.assignments import DirectoryAssignments
from ottla.broker.replication.quota import ReplicationQuota
from ottla.config.values import LONG_MAX
from ottla.env.uninterrupted import uninterrupted
from ottla.errors import BrokenInvariant, KafkaError, LogDirectoryFailed, OttlaError
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition, Uuid
from ottla.log.directories.folder_deletion import PartitionGone
from ottla.log.directories.relocation import Relocation, begin, found_at_start
from ottla.log.names import FOLDER_NAME_LENGTH_MAX, future_folder_name

if TYPE_CHECKING:
    from ottla.broker.channel import ControllerChannel
    from ottla.broker.metadata_cache import MetadataCache
    from ottla.broker.partitions.partitions import Partitions
    from ottla.log.directories.log_directory import LogDirectory

logger = logging.getLogger("ottla.partitions")

PIECE_BYTES = 256 << 10
"""How much is copied without letting other tasks run."""
PIECE_BYTES_MAX = 16 << 20
"""If records are appended faster than they are copied, pieces grow up to this, so that the move ends."""
WANTED_MAX = 10_000
"""How many requests for partitions that do not exist yet are remembered."""


class Moves:
    """The moves of one node, between `start` and `stop`. `broker_epoch` returns the epoch of its newest registration."""

    def __init__(
        self, partitions: Partitions, metadata: MetadataCache, channel: ControllerChannel, broker_epoch: Callable[[], int]
    ) -> None:
        self._partitions = partitions
        self._directories = partitions.directories
        self._settings = partitions.settings
        self._assignments = DirectoryAssignments(partitions, metadata, channel, broker_epoch)
        self._asking = asyncio.Lock()  # one request at a time: each depends on what the one before did
        self._tasks: dict[TopicPartition, asyncio.Task[None]] = {}
        config = self._settings.current
        self._quota = ReplicationQuota(
            config.alter_log_dirs_replication_quota_window_num, config.alter_log_dirs_replication_quota_window_size_seconds
        )
        self._turns = asyncio.Semaphore(
            self._settings.current.num_replica_alter_log_dirs_threads or len(self._directories.directories)
        )

    def __len__(self) -> int:
        return len(self._tasks)

    def start(self) -> None:
        """Continue the moves that were under way when the node stopped."""
        self._assignments.start()
        for move in found_at_start(self._directories):
            self._run(move)

    async def stop(self) -> None:
        """Cancel the moves and keep their copies. A switch to the copy that has begun is waited for."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await self._assignments.stop()

    def metadata_changed(self, changed: Iterable[Uuid] = ()) -> None:
        """Partitions of these topics were created or changed: report their directories to the controller."""
        self._assignments.look(changed)

    def directory_lost(self) -> None:
        """A directory has failed: report the partitions in it that the controller has in another one."""
        self._assignments.look()

    # Requests

    async def request(self, name: TopicPartition, path: str) -> None:
        """Begin to move a partition to the directory `path`. If it is there already, cancel its move to another one.

        Returns when the move has begun. Raises a `KafkaError` for the client if the move is not allowed.
        """
        async with self._asking:
            target = self._target(name, path)
            if self._partitions.find(*name) is None:
                self._remember(name, path)
                raise self._reason_missing(name)
            on_its_way_to = self._directories.future_of(name)
            if on_its_way_to is not target:
                if on_its_way_to is not None:
                    await self._call_off(name)
                if self._directories.directory_of(name) is not target:
                    self._run(await self._begin(name, target))
            elif name not in self._tasks:  # an earlier task gave up and left the copy
                self._run(Relocation.of(self._directories, name))

    async def _begin(self, name: TopicPartition, target: LogDirectory) -> Relocation:
        directories = self._directories
        if offline := [each.path for each in directories.directories if not each.is_online]:
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"nothing is moved while {', '.join(offline)} is offline: another copy of {name} may be there",
            )
        try:
            return await begin(directories, name, target)
        except LogDirectoryFailed as failed:
            self._partitions.lose_directory(failed)
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{name} cannot be moved to {target.path}: {failed}") from failed

    def _target(self, name: TopicPartition, path: str) -> LogDirectory:
        if len(future_folder_name(name, bytes(16))) > FOLDER_NAME_LENGTH_MAX:  # type: ignore[arg-type]  # any id is as long
            raise KafkaError(
                ErrorCode.INVALID_TOPIC_EXCEPTION, f"{name} cannot be moved: the name of its topic is too long for a folder's"
            )
        directory = self._directories.directory_at(path)
        if directory is None:
            raise KafkaError(ErrorCode.LOG_DIR_NOT_FOUND, f"{path} is not one of this node's log directories")
        if not directory.is_online:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"log directory {path} is offline")
        if self._directories.is_cordoned(directory):
            raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"log directory {path} is cordoned: it takes no partitions")
        return directory

    def _remember(self, name: TopicPartition, path: str) -> None:
        """Remember the directory in which the partition has to be created, should it be."""
        wanted = self._directories.wanted_in
        wanted[name] = path
        while len(wanted) > WANTED_MAX:
            del wanted[next(iter(wanted))]

    def _reason_missing(self, name: TopicPartition) -> KafkaError:
        reason = self._partitions.reason_missing(*name)
        if reason.code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
            return KafkaError(ErrorCode.REPLICA_NOT_AVAILABLE, str(reason))
        return reason

    async def _call_off(self, name: TopicPartition) -> None:
        task = self._tasks.get(name)
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
        await self._directories.drop_future(name)
        self._assignments.look()  # the new directory may have been reported to the controller already

    # Moving

    def _run(self, move: Relocation) -> None:
        task = watched(f"moving {move.partition} to {move.target.path}", self._move(move))
        self._tasks[move.partition] = task
        task.add_done_callback(lambda _: self._tasks.pop(move.partition, None))

    async def _move(self, move: Relocation) -> None:
        name = move.partition
        try:
            async with self._turns, self._directories.compaction_paused(name):
                await self._copy(move)
                if not await self._assignments.announce(name, move.target):
                    return  # the copy stays: the next start or the next request continues with it
                await move.future.flush()
                await self._copy(move)
                await self._uninterrupted(move)
        except PartitionGone as reason:
            logger.info("%s is not moved: %s", name, reason)
        except LogDirectoryFailed as failed:
            self._partitions.lose_directory(failed)
        except BrokenInvariant as failure:
            self._partitions.broken(failure)
        except OttlaError as failure:
            logger.error("%s is not moved to %s: %s", name, move.target.path, failure)
            await self._directories.drop_future(name)

    async def _copy(self, move: Relocation) -> None:
        """Copy until the copy has caught up with the log."""
        piece_bytes, lag_before = PIECE_BYTES, LONG_MAX
        while True:
            await move.set_out()
            await move.warm_piece(piece_bytes)
            size_bytes = move.copy_piece(piece_bytes)
            lag = move.lag
            if not lag:
                return
            piece_bytes = max(PIECE_BYTES, piece_bytes * 7 // 8) if lag < lag_before else min(2 * piece_bytes, PIECE_BYTES_MAX)
            lag_before = lag
            if move.future.flush_wanted_up_to is not None:
                await move.future.flush(move.future.flush_wanted_up_to)
            await self._pause(size_bytes)

    async def _pause(self, size_bytes: int) -> None:
        """So much was copied: let other tasks run, and wait until the quota of all moves together leaves something."""
        now_s = asyncio.get_running_loop().time
        self._quota.record(size_bytes, now_s())
        await asyncio.sleep(0)
        while True:
            bytes_per_s = self._settings.current.replica_alter_log_dirs_io_max_bytes_per_second
            if self._quota.allowance(bytes_per_s, now_s()):
                return
            await asyncio.sleep(self._quota.wait_s(bytes_per_s, now_s()))

    async def _uninterrupted(self, move: Relocation) -> None:
        switch = asyncio.ensure_future(self._switch(move))
        try:
            await uninterrupted(switch)
        except asyncio.CancelledError:
            await asyncio.wait([switch])
            switch.exception()  # marks it as retrieved; `_switch` itself reports a failed directory
            raise

    async def _switch(self, move: Relocation) -> None:
        switch = await move.prepare()
        try:
            log = switch.make()
            partition = self._partitions.find(*move.partition)
            if partition is not None:
                partition.log = log
            await switch.settle()
        finally:
            await switch.release()
            self._partitions.take_losses()
            self._partitions.upkeep_is_due()  # sets the timer for deleting the old folder
