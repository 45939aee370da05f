"""The log of a partition without records: a new one, or one that was empty when its process ended.

Nothing has to be repaired, recovered or read, so nothing but its folder is looked at. Of the many partitions of a large node
that are not in use, no file is kept open after a start, nor after their creation once files use half of the descriptors: the
first append activates the segment (`Segment.is_dormant`).
"""

from collections.abc import Mapping, Sequence

from ottla.config.topic import LogConfig
from ottla.env import Clock, Disk, OpenMode
from ottla.errors import LogDirectoryFailed
from ottla.log.leader_epochs import LeaderEpochs
from ottla.log.names import (
    LEADER_EPOCH_CHECKPOINT,
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    PARTITION_METADATA,
    TIME_INDEX_SUFFIX,
    parse_folder_name,
    segment_file_name,
)
from ottla.log.partition_log import LogOptions, LogParts, PartitionLog
from ottla.log.producers.producer_snapshot import ProducerSnapshots
from ottla.log.producers.producer_state import ProducerState
from ottla.log.segments.segment import Segment
from ottla.log.segments.segment_list import Segments

_FIRST_FILES = frozenset(segment_file_name(0, suffix) for suffix in (LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX))
_OTHER_FILES = frozenset((PARTITION_METADATA, LEADER_EPOCH_CHECKPOINT))


def holds_no_record(names: Mapping[str, int]) -> bool:
    """Whether a folder has an empty first segment and nothing else; `names` are its files with their sizes.

    Its leader epochs do not count: no record was written in them, so loading drops them.
    """
    return names.keys() - _OTHER_FILES == _FIRST_FILES and not any(names[name] for name in _FIRST_FILES)


async def sync_empty_files(disk: Disk, folders: Sequence[str]) -> None:
    """Make it durable that the files of these folders are empty: `holds_no_record` is true, after an unclean shutdown.

    The killed process may have truncated them, and a power loss must not bring the records back.
    """
    files = [disk.open(f"{folder}/{name}", OpenMode.WRITE) for folder in folders for name in sorted(_FIRST_FILES)]
    try:
        await disk.sync_all(files, [])
    finally:
        for file in files:
            file.close()


def vacant_log(disk: Disk, clock: Clock, folder: str, config: LogConfig, options: LogOptions) -> PartitionLog:
    """The log in a folder of which `holds_no_record` is true, after a clean shutdown or `sync_empty_files`.

    Neither has synced the names of the files (`close_all`), so the first flush does.
    """
    segment = Segment(disk, folder, 0, config, now_ms=clock.now_ms(), known_size=0, is_durable=True, has_txn_index=False)
    segment.is_dormant = True
    return _empty_log(disk, clock, folder, config, options, segment)


def new_log(disk: Disk, clock: Clock, folder: str, config: LogConfig, options: LogOptions) -> PartitionLog | None:
    """The log of a partition that was just created: its folder holds nothing but `partition.metadata`.

    None if it holds more: then call `load_log`. `LogDirectoryFailed` if the disk fails. Its files stay open for the records
    that are likely to come, unless many are open already: then the first append opens them, as after a start.
    """
    try:
        if disk.list_directory(folder) != [PARTITION_METADATA]:
            return None
        segment = Segment.create(disk, folder, 0, config, now_ms=clock.now_ms())
        if disk.is_short_of_descriptors():
            segment.close()
            return vacant_log(disk, clock, folder, config, options)
    except OSError as error:
        raise LogDirectoryFailed(folder.rpartition("/")[0], error) from error
    return _empty_log(disk, clock, folder, config, options, segment)


def _empty_log(disk: Disk, clock: Clock, folder: str, config: LogConfig, options: LogOptions, segment: Segment) -> PartitionLog:
    partition = parse_folder_name(folder.rpartition("/")[2]).partition
    producers, snapshots = ProducerState(str(partition)), ProducerSnapshots(disk, folder, is_new=True)
    parts = LogParts(Segments([segment]), LeaderEpochs(disk, folder), producers, snapshots, 0, 0, 0)
    return PartitionLog(disk, clock, folder, partition, config, options, parts)
