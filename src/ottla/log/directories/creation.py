"""Creating partitions: chooses the directory, and makes each folder durable before the partition is used.

Works on `LogDirectories`; the caller holds its `changing` lock. Many partitions are created in pieces: the folders and
`partition.metadata` files of a piece are synced together, since one sync for many costs hardly more than a sync for one. A
directory that fails is queued for `take_losses`, and its partitions are tried in the next best directory.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ottla.config.topic import LogConfig
from ottla.errors import KafkaError, LogDirectoryFailed, OttlaError, OutOfDescriptors
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition, Uuid, uuid_text
from ottla.log.directories.log_directory import LogDirectory
from ottla.log.directories.partition_metadata import format_partition_metadata, write_partition_metadata
from ottla.log.names import PARTITION_METADATA, folder_name
from ottla.log.partition_log import PartitionLog
from ottla.log.recovery.log_loader import load_log
from ottla.log.recovery.vacant import new_log

if TYPE_CHECKING:
    from ottla.log.directories.log_directories import LogDirectories
    from ottla.log.directories.log_directory import LogDirectory


logger = logging.getLogger("ottla.log")

PIECE = 64
"""How many partitions are synced together."""
FILES_PER_PARTITION = 3
"""Open files of a new partition: its log and two indexes. They are closed again while descriptors are short."""
PIECES_AT_ONCE = 4
"""As many as there are worker threads: while those wait, the loop opens the files of another piece."""


class NewPartition(NamedTuple):
    """A partition to create.

    With `is_new` false it has existed before and may be in a directory that is offline: then nothing is created, and the error
    is KAFKA_STORAGE_ERROR. `directory_id` requests a certain directory.
    """

    partition: TopicPartition
    config: LogConfig
    topic_id: Uuid
    is_new: bool = True
    directory_id: Uuid | None = None


Made = PartitionLog | OttlaError
"""The result for one requested partition: its log, or the error."""


class _Wanted:
    """A requested partition, and the directories still to try for it, best first."""

    __slots__ = ("directories", "made", "new")

    def __init__(self, new: NewPartition) -> None:
        self.new = new
        self.directories: list[LogDirectory] = []
        self.made: Made | None = None

    def arrive(self, by: int) -> None:
        if self.directories:
            self.directories[0].arriving += by


async def make_all(home: LogDirectories, wanted: Sequence[NewPartition]) -> list[Made]:
    """The logs of `wanted`, in that order: existing ones, and new ones for the others."""
    turns = asyncio.Semaphore(PIECES_AT_ONCE)
    all_wanted = [_Wanted(new) for new in wanted]

    async def make(piece: list[_Wanted]) -> None:
        async with turns:
            await _make_piece(home, piece)

    pieces = [all_wanted[first : first + PIECE] for first in range(0, len(all_wanted), PIECE)]
    failures = await asyncio.gather(*map(make, pieces), return_exceptions=True)
    for failure in failures:
        if failure is not None:
            raise failure
    return [each.made for each in all_wanted if each.made is not None]


async def _make_piece(home: LogDirectories, piece: list[_Wanted]) -> None:
    for each in piece:
        try:
            each.made = await _found(home, each.new)
        except OttlaError as refused:
            each.made = refused
        if each.made is None:
            each.directories = _choose(home, each.new)
            each.arrive(+1)
    try:
        while missing := [each for each in piece if each.made is None]:
            by_directory: dict[str, list[_Wanted]] = {}
            for each in missing:
                if each.directories:
                    by_directory.setdefault(each.directories[0].path, []).append(each)
                else:
                    each.made = KafkaError(
                        ErrorCode.KAFKA_STORAGE_ERROR, f"{each.new.partition} cannot be created: no log directory is left"
                    )
            for together in by_directory.values():
                await _make_in(home, together[0].directories[0], _with_room(home, together))
    finally:
        for each in piece:
            each.arrive(-1)


def _with_room(home: LogDirectories, together: list[_Wanted]) -> list[_Wanted]:
    """The partitions whose files can be opened; the others get `OutOfDescriptors`."""
    low, high = 0, len(together)
    if _has_room(home, high):
        return together  # the common case
    high -= 1
    while low < high:
        middle = (low + high + 1) // 2
        if _has_room(home, middle):
            low = middle
        else:
            high = middle - 1
    for each in together[low:]:
        each.made = _no_room(each)
    return together[:low]


def _has_room(home: LogDirectories, partitions: int) -> bool:
    return home.world.disk.can_open(partitions * FILES_PER_PARTITION, for_growth=True)


def _no_room(wanted: _Wanted) -> OutOfDescriptors:
    return OutOfDescriptors(f"{wanted.new.partition} cannot be made")


async def _found(home: LogDirectories, new: NewPartition) -> PartitionLog | None:
    """The existing log, or None. `OttlaError` if it cannot be used, or may be in a directory that is offline."""
    log = home.find(new.partition)
    if log is not None:
        await _check_topic(home, new.partition, new.topic_id)
    elif not new.is_new and (offline := [each.path for each in home.directories if not each.is_online]):
        raise KafkaError(
            ErrorCode.KAFKA_STORAGE_ERROR,
            f"{new.partition} is not created again: it may be in {', '.join(offline)}, which failed. Repair that first",
        )
    return log


async def _check_topic(home: LogDirectories, partition: TopicPartition, topic_id: Uuid) -> None:
    directory = home.directory_of(partition)
    assert directory is not None
    known = directory.topic_ids.get(partition)
    if known is None:
        await directory.guarded(write_partition_metadata(home.world.disk, directory.logs[partition].folder, topic_id))
        directory.topic_ids[partition] = topic_id
    elif known != topic_id:
        raise KafkaError(
            ErrorCode.INCONSISTENT_TOPIC_ID,
            f"the folder of {partition} in {directory.path} belongs to topic id {uuid_text(known)}, not "
            f"{uuid_text(topic_id)}: it is left from an earlier topic of that name",
        )


def _choose(home: LogDirectories, new: NewPartition) -> list[LogDirectory]:
    """The directories to try: the one with the requested id, else the one an operator asked for, else all, best first."""
    path = home.wanted_in.pop(new.partition, None)
    online = [each for each in home.placeable if each.is_online]
    if new.directory_id is not None:
        asked_for = [each for each in online if each.directory_id == new.directory_id]
    else:
        asked_for = [each for each in online if each.path == path]
    if asked_for:
        return asked_for
    open_to_new = [each for each in home.placeable if not home.is_cordoned(each)]
    return by_preference(open_to_new) or by_preference(home.placeable)  # all cordoned: the controller decided to place it here


async def _make_in(home: LogDirectories, directory: LogDirectory, together: list[_Wanted]) -> None:
    """Create these in one directory. If it fails, those not yet created move on to their next directory."""
    if not together:
        return
    try:
        await _make_folders(home, directory, [each.new for each in together])
        for each in together:
            if _has_room(home, 1):  # checked again: other pieces were created during the await
                each.made = await _open(home, directory, each.new)
                await asyncio.sleep(0)  # let other tasks run
            else:
                each.made = _no_room(each)
    except LogDirectoryFailed as failed:
        home.note_loss(failed)
        for each in together:
            if each.made is None:
                each.arrive(-1)
                each.directories = [other for other in each.directories[1:] if other.is_online]
                each.arrive(+1)
                if not each.directories:
                    each.made = failed


async def _make_folders(home: LogDirectories, directory: LogDirectory, new: list[NewPartition]) -> None:
    disk = home.world.disk
    try:
        directory.check_online()
        files = {}
        for each in new:
            folder = directory.folder(folder_name(each.partition))
            disk.make_directory(folder)
            files[f"{folder}/{PARTITION_METADATA}"] = format_partition_metadata(each.topic_id)
        await disk.replace_files(files)
        await directory.sync_names()
    except OSError as error:
        raise LogDirectoryFailed(directory.path, error) from error


async def _open(home: LogDirectories, directory: LogDirectory, new: NewPartition) -> PartitionLog:
    world, partition = home.world, new.partition
    folder = directory.folder(folder_name(partition))
    log = new_log(world.disk, world.clock, folder, new.config, home.options)
    if log is None:  # the folder has files of an earlier attempt, which may not be durable
        log, _ = await load_log(world.disk, world.clock, folder, new.config, home.options)
    directory.check_online()  # another piece may have found it failed
    directory.logs[partition] = log
    directory.topic_ids[partition] = new.topic_id
    home.place(partition, directory)
    logger.info("made %s in %s", partition, directory.path)
    return log


# Chooses the directory of a new partition: the one with the fewest partitions, as Kafka does.
#
# Not the one with the fewest bytes: partitions grow, so their number says more about a disk's future load than its bytes today.


def by_preference(directories: Iterable[LogDirectory]) -> list[LogDirectory]:
    """The online directories, best first; of equals the one named first in log.dirs."""
    return sorted((directory for directory in directories if directory.is_online), key=lambda d: d.partition_count)
