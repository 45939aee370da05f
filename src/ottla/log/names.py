"""The names of files and folders in a log directory: formatting and parsing. No IO.

A partition's folder is `topic-N`. Before its files are removed it becomes `topic-N.<32 hex>-delete`. A replica that is moved
here from another directory is `…-future`; one that the cluster no longer places here is `…-stray`. Inside, every file of a
segment is named by its base offset in 20 digits, so that names sort as offsets do. The endings `.deleted`, `.cleaned` and
`.swap` mark steps of a deletion or a compaction.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

from ottla.errors import OttlaError
from ottla.ids import TopicPartition, Uuid

LOG_SUFFIX = ".log"
OFFSET_INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
TXN_INDEX_SUFFIX = ".txnindex"
SNAPSHOT_SUFFIX = ".snapshot"
SEGMENT_SUFFIXES = (LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX)

DELETED_SUFFIX = ".deleted"
CLEANED_SUFFIX = ".cleaned"
SWAP_SUFFIX = ".swap"

DELETE_FOLDER_SUFFIX = "-delete"
FUTURE_FOLDER_SUFFIX = "-future"
STRAY_FOLDER_SUFFIX = "-stray"

LEADER_EPOCH_CHECKPOINT = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"

RECOVERY_POINT_CHECKPOINT = "recovery-point-offset-checkpoint"
HIGH_WATERMARK_CHECKPOINT = "replication-offset-checkpoint"
LOG_START_CHECKPOINT = "log-start-offset-checkpoint"
CLEANER_CHECKPOINT = "cleaner-offset-checkpoint"
META_PROPERTIES = "meta.properties"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"

CLUSTER_METADATA_TOPIC = "__cluster_metadata"

FOLDER_NAME_LENGTH_MAX = 255
"""File systems allow no longer name; a topic name of 249 characters leaves no room for the suffix of a deletion."""

_SEGMENT_FILE = re.compile(r"([0-9]{1,20})\.(log|index|timeindex|txnindex|snapshot)((?:\.(?:deleted|cleaned|swap))*)")
_SUFFIXED_FOLDER = re.compile(r"(\S+-\S+)\.\S+(-delete|-future|-stray)")
_PARTITION = re.compile(r"[0-9]{1,10}")


class InvalidFolderName(OttlaError):
    """The name of a folder in a log directory is not that of a partition's folder."""


def segment_file_name(base_offset: int, suffix: str, state: str = "") -> str:
    """The name of one file of a segment, such as `segment_file_name(7, LOG_SUFFIX, SWAP_SUFFIX)`."""
    return f"{base_offset:020d}{suffix}{state}"


class SegmentFileName(NamedTuple):
    """The parsed name of a segment's file. `state` is empty or an ending such as `.deleted` or `.cleaned`."""

    base_offset: int
    suffix: str
    state: str


def parse_segment_file_name(name: str) -> SegmentFileName | None:
    """Parse `name`; None if it is not the name of a segment's file or a producer snapshot."""
    match = _SEGMENT_FILE.fullmatch(name)
    if match is None or (offset := int(match[1])) >= 1 << 63:
        return None
    return SegmentFileName(offset, "." + match[2], match[3])


def segment_bases(names: Iterable[str]) -> list[int]:
    """The base offsets of the segments in use, lowest first, from the names of a folder's files."""
    parsed = (parse_segment_file_name(name) for name in names if name.endswith(LOG_SUFFIX))
    return sorted(name.base_offset for name in parsed if name is not None)


def folder_name(partition: TopicPartition) -> str:
    """The folder of a partition in use."""
    return f"{partition.topic}-{partition.partition}"


def delete_folder_name(partition: TopicPartition, unique: Uuid) -> str:
    """What a partition's folder is renamed to before its files are removed."""
    return _suffixed_folder_name(partition, unique, DELETE_FOLDER_SUFFIX, FOLDER_NAME_LENGTH_MAX)


def stray_folder_name(partition: TopicPartition, unique: Uuid) -> str:
    """What the folder of a partition that the cluster does not place here is renamed to."""
    return _suffixed_folder_name(partition, unique, STRAY_FOLDER_SUFFIX, FOLDER_NAME_LENGTH_MAX)


def future_folder_name(partition: TopicPartition, unique: Uuid) -> str:
    """The folder of a replica that is moved here. Never shortened: loading reads the topic from its name."""
    return _suffixed_folder_name(partition, unique, FUTURE_FOLDER_SUFFIX, None)


def _suffixed_folder_name(partition: TopicPartition, unique: Uuid, suffix: str, length_max: int | None) -> str:
    ending = f"-{partition.partition}.{unique.hex()}{suffix}"
    topic = partition.topic if length_max is None else partition.topic[: length_max - len(ending)]
    return topic + ending


class FolderName(NamedTuple):
    """The parsed name of a partition's folder. With `-delete` or `-stray` a very long topic name may be shortened."""

    partition: TopicPartition
    suffix: str

    @property
    def is_deletion(self) -> bool:
        return self.suffix == DELETE_FOLDER_SUFFIX

    @property
    def is_future(self) -> bool:
        return self.suffix == FUTURE_FOLDER_SUFFIX

    @property
    def is_stray(self) -> bool:
        return self.suffix == STRAY_FOLDER_SUFFIX


def parse_folder_name(name: str) -> FolderName:
    """Parse a folder name; `InvalidFolderName` if it is not a partition's."""
    suffix = ""
    stem = name
    for ending in (DELETE_FOLDER_SUFFIX, FUTURE_FOLDER_SUFFIX, STRAY_FOLDER_SUFFIX):
        if name.endswith(ending):
            match = _SUFFIXED_FOLDER.fullmatch(name)
            if match is None:
                raise _invalid(name)
            stem, suffix = name[: name.rindex(".")], ending
    topic, dash, number = stem.rpartition("-")
    if not dash or not topic or not _PARTITION.fullmatch(number) or int(number) >= 1 << 31:
        raise _invalid(name)
    return FolderName(TopicPartition(topic, int(number)), suffix)


def _invalid(name: str) -> InvalidFolderName:
    return InvalidFolderName(
        f"folder {name!r} is not named topic-N or topic-N.<id>-delete, -future or -stray. A log directory holds nothing but "
        "partitions: move the folder elsewhere"
    )
