"""Moving a partition to another log directory of its node, while it is read and written.

The log is copied to a folder `topic-N.<id>-future` in the other directory. When the copy has caught up, it
replaces the log between two requests, and its folder gets the partition's name. A kill always leaves exactly one log:

    before the switch       topic-N here, -future there     the log is here; the copy continues or starts over
    after it                -delete here, -future there     the copy has everything: the next start renames it
    after the second rename -delete here, topic-N there     done; the next start removes the -delete folder

The first rename is the switch. It is one call on the loop: an append before it goes to the log, one after it to the copy.
Before it, everything flushed in the log is flushed in the copy. After it, flushes wait until both renames are durable, and the
second rename waits until the first is durable. So no power loss leaves the partition in both directories.

Loop rule: copying and switching are plain calls; the rest is awaited. The owner copies piece by piece, and pauses compaction.
"""

from __future__ import annotations

import logging
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from ottla.env import FileRange
from ottla.errors import KafkaError, LogDirectoryFailed, OutOfDescriptors
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition
from ottla.log.directories.folder_deletion import PartitionGone
from ottla.log.directories.log_directory import LogDirectory
from ottla.log.directories.partition_metadata import write_partition_metadata
from ottla.log.names import InvalidFolderName, delete_folder_name, folder_name, future_folder_name, parse_folder_name
from ottla.log.partition_log import PartitionLog
from ottla.log.recovery.log_loader import load_log
from ottla.log.segments.roll import FILES_PER_SEGMENT, roll
from ottla.records.batch import BatchView

if TYPE_CHECKING:
    from ottla.log.directories.log_directories import LogDirectories


logger = logging.getLogger("ottla.log")

LAST_PIECE_BYTES = 1 << 20
LAST_ROUNDS_MAX = 4
"""How often the end of a copy is flushed. After that the switch is made, however much was appended during the last flush."""


async def begin(home: LogDirectories, partition: TopicPartition, target: LogDirectory) -> Relocation:
    """Start a move to `target`: create the `-future` folder. `LogDirectoryFailed` if the device fails."""
    async with home.changing:
        source = home.directory_of(partition)
        if source is None or partition not in source.logs:
            raise KafkaError(ErrorCode.REPLICA_NOT_AVAILABLE, f"{partition} is not on this node")
        source.check_online()
        target.check_online()
        disk, log = home.world.disk, source.logs[partition]
        if not disk.can_open(len(log.segments) + FILES_PER_SEGMENT):
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(OutOfDescriptors(f"{partition} cannot be moved")))
        folder = target.folder(future_folder_name(partition, home.world.new_uuid()))
        topic_id = source.topic_ids.get(partition)
        try:
            await _remove_leftovers(home, partition, target)
            disk.make_directory(folder)
            if topic_id is not None:
                await write_partition_metadata(disk, folder, topic_id)
            await disk.sync_directory(target.path)
        except OSError as error:
            raise target.fail(error) from error
        future, _ = await load_log(disk, home.world.clock, folder, log.config, home.options, clean_shutdown=True)
        target.future_logs[partition] = future
        home.copied_at[partition] = log.history
        if topic_id is not None:
            target.topic_ids[partition] = topic_id
        logger.info("%s is being moved from %s to %s", partition, source.path, target.path)
        return Relocation(home, partition, source, target)


async def _remove_leftovers(home: LogDirectories, partition: TopicPartition, target: LogDirectory) -> None:
    """Remove copies of this partition that could not be opened."""
    for name in home.world.disk.list_directory(target.path):
        try:
            folder = parse_folder_name(name)
        except InvalidFolderName:
            continue
        if folder.is_future and folder.partition == partition:
            await home.world.disk.remove_directory(target.folder(name))


def found_at_start(home: LogDirectories) -> list[Relocation]:
    """The moves that were running when the node stopped."""
    found = []
    for target in home.online():
        for partition in sorted(target.future_logs):
            source = home.directory_of(partition)
            if source is not None and source.is_online:
                found.append(Relocation(home, partition, source, target))
    return found


async def finish_switched(home: LogDirectories) -> None:
    """Complete the moves whose copy had replaced the log when the node was killed: rename the copy's folder.

    Such a copy is the partition's only folder. With a directory offline that cannot be known, so nothing is done.
    """
    if any(not directory.is_online for directory in home.directories):
        return
    for directory in home.directories:
        for partition in sorted(directory.future_logs):
            if home.directory_of(partition) is None and home.reason_offline(partition) is None:
                log = directory.future_logs[partition]
                folder = directory.folder(folder_name(partition))
                try:
                    await home.world.disk.rename(log.folder, folder)
                except OSError as error:
                    home.note_loss(LogDirectoryFailed(directory.path, error))
                    break
                log.move_to(folder)
                directory.logs[partition] = directory.future_logs.pop(partition)
                home.place(partition, directory)
                logger.info("the move of %s to %s was completed", partition, directory.path)


class Relocation:
    """The move of one partition from `source` to `target`."""

    def __init__(self, home: LogDirectories, partition: TopicPartition, source: LogDirectory, target: LogDirectory) -> None:
        self._home = home
        self._disk = home.world.disk
        self.partition = partition
        self.source = source
        self.target = target
        self.log = source.logs[partition]
        self.future = target.future_logs[partition]

    @classmethod
    def of(cls, home: LogDirectories, partition: TopicPartition) -> Relocation:
        """The move of a partition that has both a log and a copy on this node."""
        source, target = home.directory_of(partition), home.future_of(partition)
        assert source is not None, f"{partition} is not here"
        assert target is not None, f"{partition} is not being moved"
        return cls(home, partition, source, target)

    @property
    def lag(self) -> int:
        """How many offsets the copy is behind."""
        return self.log.log_end_offset - self.future.log_end_offset

    # Copying

    async def set_out(self) -> None:
        """Make sure that the copy can continue where it ends; start it over if not. Call before every piece."""
        if self.future.size_bytes and self._home.copy_matches(self.partition) and can_go_on(self.log, self.future):
            return
        first = first_offset(self.log)
        if self.future.size_bytes or self.future.log_end_offset != first:
            if self.future.size_bytes:
                logger.info("the copy of %s in %s starts over at offset %d", self.partition, self.target.path, first)
            await self.future.truncate_fully_and_start_at(first)
            await self.target.write_recovery_points()
        self._home.copied_at[self.partition] = self.log.history

    async def warm_piece(self, bytes_max: int) -> None:
        """Read the next piece into the page cache, so that copying it does not wait for the device."""
        info = self.log.read(max(self.future.log_end_offset, self.log.log_start_offset), bytes_max)
        if info.records is not None and not info.records.is_resident():
            try:
                await self._disk.warm(info.records)
            except OSError as error:
                raise self.log.fail(error) from error

    def copy_piece(self, bytes_max: int) -> int:
        """Copy about `bytes_max` bytes; returns how many, 0 if there is nothing more to copy."""
        return copy_piece(self.log, self.future, bytes_max)

    # Switching

    async def prepare(self) -> Switch:
        """Copy and flush the log's end, and take the locks that keep flushes, deletions and compaction out until the switch.

        `PartitionGone` if the move was cancelled before the locks were taken.
        """
        locks = AsyncExitStack()
        try:
            await locks.enter_async_context(self._home.changing)
            if self.source.logs.get(self.partition) is not self.log:
                raise PartitionGone(f"{self.partition} is no longer in {self.source.path}")
            if self.target.future_logs.get(self.partition) is not self.future:
                raise PartitionGone(f"{self.partition} is not moved to {self.target.path} any more")
            for lock in (self.log.reshaping, self.log.flushing):
                await locks.enter_async_context(lock)
            await self._flush_end()
            for lock in (self.future.reshaping, self.future.flushing):
                await locks.enter_async_context(lock)
        except BaseException:
            await locks.aclose()
            raise
        return Switch(self, locks)

    async def _flush_end(self) -> None:
        """Copy the rest and flush the copy, until little was appended during the last round; write the checkpoints."""
        rounds = 0
        while True:
            await self.set_out()
            size_bytes = self.copy_rest()
            follow_bounds(self.log, self.future)
            await self.future.flush()
            await self.target.write_checkpoints()
            rounds += 1
            is_near = size_bytes <= LAST_PIECE_BYTES or rounds >= LAST_ROUNDS_MAX
            if is_near and self.future.log_start_offset >= self.log.log_start_offset:
                return

    def copy_rest(self) -> int:
        """Copy everything up to the log end offset; returns how many bytes."""
        total_bytes = 0
        while size_bytes := self.copy_piece(LAST_PIECE_BYTES):
            total_bytes += size_bytes
        return total_bytes


class Switch:
    """The switch from a log to its copy: call `make`, then `settle`, and `release` in any case."""

    def __init__(self, relocation: Relocation, locks: AsyncExitStack) -> None:
        self._of = relocation
        self._locks = locks

    def make(self) -> PartitionLog:
        """Replace the log by the copy; returns the copy. Nothing has changed if this raises."""
        move = self._of
        home, partition, log, future = move._home, move.partition, move.log, move.future
        move.copy_rest()
        take_over(log, future)
        future.gap_offset = log.gap_offset
        doomed = move.source.folder(delete_folder_name(partition, home.world.new_uuid()))
        try:
            move._disk.rename_now(log.folder, doomed)
        except OSError as error:
            raise move.source.fail(error) from error
        log.failure = log.write_barrier = PartitionGone(f"{partition} was moved from {move.source.path} to {move.target.path}")
        log.moved_to = future
        for segment in log.segments:
            segment.abandon()
        move.source.forget(partition)
        move.target.logs[partition] = move.target.future_logs.pop(partition)
        home.place(partition, move.target)
        home.copied_at.pop(partition, None)
        home.deletions.put_off(move.source, doomed, log.config.file_delete_delay_ms)
        return future

    async def settle(self) -> None:
        """Make the switch durable, give the folder the partition's name, and write the checkpoints."""
        move = self._of
        home, partition, source, target = move._home, move.partition, move.source, move.target
        try:
            await move._disk.sync_directory(source.path)
        except OSError as error:
            # If a restart finds the old name again, the partition is in both directories, and the operator must choose.
            home.note_loss(LogDirectoryFailed(source.path, error))
        folder = target.folder(folder_name(partition))
        try:
            move._disk.rename_now(move.future.folder, folder)
            move.future.move_to(folder)
            await move._disk.sync_directory(target.path)
        except OSError as error:
            raise target.fail(error) from error
        await self.release()
        await target.write_checkpoints()
        if home.compactor is not None:
            await home.compactor.moved(partition, source.path, target.path)
        if source.is_online:
            await source.write_checkpoints()
        logger.info("%s was moved from %s to %s", partition, source.path, target.path)

    async def release(self) -> None:
        """Release the locks."""
        await self._locks.aclose()


# Copying a log to another directory of this node, as a follower copies its leader: whole batches, with offsets and epochs.
#
# Plain functions over two logs, both online. Nothing here waits: the caller copies piece by piece and lets other tasks run in
# between. Batches keep their offsets, so both logs have the same records at every offset, though their segments differ.

_ANY_EPOCH = 2**31 - 1


def first_offset(log: PartitionLog) -> int:
    """Where a copy begins: at the log start, or at the base offset of the batch that holds it."""
    info = log.read(log.log_start_offset, 1)
    if info.records is None:
        return log.log_start_offset
    return min(log.log_start_offset, BatchView(_bytes_of(log, info.records)).base_offset)


def can_go_on(log: PartitionLog, copy: PartitionLog) -> bool:
    """Whether the log still has the records after the copy's end."""
    if copy.log_end_offset < log.log_start_offset:
        return copy.log_end_offset == first_offset(log)
    return copy.log_end_offset <= log.log_end_offset


def copy_piece(log: PartitionLog, copy: PartitionLog, bytes_max: int) -> int:
    """Append the next batches to the copy, about `bytes_max` bytes; returns how many bytes, 0 once it is complete."""
    info = log.read(max(copy.log_end_offset, log.log_start_offset), bytes_max)
    if info.records is None:
        if copy.log_end_offset < log.log_end_offset:  # the last records were compacted away
            roll(copy, log.log_end_offset)
            copy.log_end_offset = log.log_end_offset
        return 0
    size_bytes = copy.append_as_follower(_bytes_of(log, info.records), _ANY_EPOCH).size_bytes
    if not size_bytes:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{log.folder} has no whole batch at offset {copy.log_end_offset}")
    return size_bytes


def _bytes_of(log: PartitionLog, records: FileRange) -> bytes:
    try:
        return records.read()
    except OSError as error:
        raise log.fail(error) from error


def follow_bounds(log: PartitionLog, copy: PartitionLog) -> None:
    """Set the copy's high watermark and log start to the log's, as far as it is copied."""
    copy.update_high_watermark(log.high_watermark)
    copy.delete_records(min(log.log_start_offset, copy.high_watermark))


def take_over(log: PartitionLog, copy: PartitionLog) -> None:
    """Give a complete copy the state that is not in the records, so that it can replace the log.

    That is: epochs without records, producers whose records are gone, and running transaction verifications.
    """
    follow_bounds(log, copy)
    copy.config = log.config
    copy.epochs.clear()
    for epoch, start_offset in log.epochs.entries:
        copy.epochs.assign(epoch, start_offset)
    copy.producers = log.producers
    try:
        copy.snapshots.overwrite(copy.producers)
    except OSError as error:
        raise copy.fail(error) from error
    copy.snapshots_unsynced.append(copy.producers.map_end_offset)
    copy.last_flush_s = log.last_flush_s
