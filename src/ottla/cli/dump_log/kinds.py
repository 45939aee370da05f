"""Chooses the dumper of a file by its name, as Kafka's tool does."""

import posixpath
import re

from ottla.cli.dump_log.indexes import dump_offset_index, dump_time_index, dump_txn_index
from ottla.cli.dump_log.options import Options
from ottla.cli.dump_log.rows import Rows, note, problem
from ottla.cli.dump_log.segments import dump_batches
from ottla.cli.dump_log.state_files import (
    dump_json,
    dump_leader_epochs,
    dump_offset_checkpoint,
    dump_producer_snapshot,
    dump_properties,
)
from ottla.env import Disk, OpenMode
from ottla.errors import CorruptFile
from ottla.log.names import (
    CLEAN_SHUTDOWN,
    CLEANER_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LEADER_EPOCH_CHECKPOINT,
    LOG_START_CHECKPOINT,
    LOG_SUFFIX,
    META_PROPERTIES,
    OFFSET_INDEX_SUFFIX,
    PARTITION_METADATA,
    RECOVERY_POINT_CHECKPOINT,
    SNAPSHOT_SUFFIX,
    TIME_INDEX_SUFFIX,
    SegmentFileName,
    parse_segment_file_name,
)

_METADATA_SNAPSHOT = re.compile(r"([0-9]{20})-([0-9]{10})\.checkpoint(?:\.deleted|\.part)?")
_OFFSET_CHECKPOINTS = frozenset(
    {RECOVERY_POINT_CHECKPOINT, HIGH_WATERMARK_CHECKPOINT, LOG_START_CHECKPOINT, CLEANER_CHECKPOINT}
)
_BOOTSTRAP = "bootstrap.checkpoint"
_QUORUM_STATE = "quorum-state"


def is_known(path: str) -> bool:
    """Whether `dump_file` can dump a file of this name."""
    name = posixpath.basename(path)
    return (
        parse_segment_file_name(name) is not None
        or _METADATA_SNAPSHOT.fullmatch(name) is not None
        or name in _OFFSET_CHECKPOINTS
        or name in {_BOOTSTRAP, _QUORUM_STATE, LEADER_EPOCH_CHECKPOINT, META_PROPERTIES, PARTITION_METADATA, CLEAN_SHUTDOWN}
    )


def dump_file(disk: Disk, path: str, options: Options) -> Rows:
    """The rows of one file of any kind. Damage becomes a row of kind PROBLEM."""
    try:
        yield from _dump_file(disk, path, options)
    except CorruptFile as damage:
        yield problem(str(damage))


def _dump_file(disk: Disk, path: str, options: Options) -> Rows:
    name = posixpath.basename(path)
    segment_file = parse_segment_file_name(name)
    if segment_file is not None:
        yield from _dump_segment_file(disk, path, segment_file, options)
    elif (snapshot := _METADATA_SNAPSHOT.fullmatch(name)) is not None:
        yield note(f"Snapshot end offset: {int(snapshot[1])}, epoch: {int(snapshot[2])}")
        yield from dump_batches(disk.open(path, OpenMode.READ), options)
    elif name == _BOOTSTRAP:
        yield note("KRaft bootstrap snapshot")
        yield from dump_batches(disk.open(path, OpenMode.READ), options)
    elif name in _OFFSET_CHECKPOINTS:
        yield from dump_offset_checkpoint(disk, path)
    elif name == LEADER_EPOCH_CHECKPOINT:
        yield from dump_leader_epochs(disk, path)
    elif name in (_QUORUM_STATE, CLEAN_SHUTDOWN):
        yield from dump_json(disk, path)
    elif name in (META_PROPERTIES, PARTITION_METADATA):
        yield from dump_properties(disk, path)
    else:
        yield note(f"Ignoring unknown file {path}")


def _dump_segment_file(disk: Disk, path: str, name: SegmentFileName, options: Options) -> Rows:
    if name.suffix == LOG_SUFFIX:
        yield note(f"Log starting offset: {name.base_offset}")
        yield from dump_batches(disk.open(path, OpenMode.READ), options)
    elif name.suffix == OFFSET_INDEX_SUFFIX:
        yield from dump_offset_index(disk, path, name, options)
    elif name.suffix == TIME_INDEX_SUFFIX:
        yield from dump_time_index(disk, path, name, options)
    elif name.suffix == SNAPSHOT_SUFFIX:
        yield from dump_producer_snapshot(disk, path)
    else:
        yield from dump_txn_index(disk, path)
