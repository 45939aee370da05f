"""Names, encodes and decodes snapshots of the metadata log. No IO.

A snapshot holds the state of the log below its end offset. It is a series of batches, with offsets from 0, all in the epoch of
the last record that it covers:

    control batch   SnapshotHeader (time of the newest record), with kraft.version 1 also KRaftVersion and KRaftVoters
    batches         metadata records
    control batch   SnapshotFooter

File name: `end offset, 20 digits`-`epoch, 10 digits`.checkpoint; `.checkpoint.part` while it is being written,
`.checkpoint.deleted` before it is deleted. Formatting writes 0-0 with the first voters, and `bootstrap.checkpoint` in the same
format.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ottla.errors import CorruptFile, CorruptRecords, DecodeError
from ottla.raft.control import (
    kraft_version,
    kraft_voters,
    read_snapshot_header,
    snapshot_footer,
    snapshot_header,
)
from ottla.raft.voters import VoterSet
from ottla.records.batch import BatchView, iterate_batches
from ottla.records.builder import build_batch
from ottla.records.control import ControlRecord, ControlType, build_control_batch, parse_control
from ottla.records.kernels import Record
from ottla.records.reader import read_records
from ottla.wire.base import Message
from ottla.wire.log_records import decode_metadata_record

BATCH_RECORDS_MAX = 128
"""Most records in a batch of a snapshot. The writer yields to the event loop between batches; each takes few milliseconds."""
BATCH_BYTES_MAX = 8 << 20
"""Largest batch of the metadata log or of a snapshot."""

CHECKPOINT_SUFFIX = ".checkpoint"
PART_SUFFIX = ".checkpoint.part"
DELETED_SUFFIX = ".checkpoint.deleted"

_NAME = re.compile(r"([0-9]{20})-([0-9]{10})(?:-[0-9]+)?(\.checkpoint(?:\.part|\.deleted)?)")
_REMEDY = "Restore it from a copy, or from another controller of the quorum; without either, the log before it is needed"


class SnapshotId(NamedTuple):
    """What a snapshot covers: everything below `offset`, whose last record is of `epoch`."""

    offset: int
    epoch: int

    def __str__(self) -> str:
        return f"{self.offset:020d}-{self.epoch:010d}"


FIRST_SNAPSHOT = SnapshotId(0, 0)
"""The snapshot that formatting writes."""


class SnapshotName(NamedTuple):
    """A parsed file name."""

    id: SnapshotId
    suffix: str


def snapshot_name(snapshot_id: SnapshotId, suffix: str = CHECKPOINT_SUFFIX) -> str:
    return f"{snapshot_id}{suffix}"


def parse_snapshot_name(name: str) -> SnapshotName | None:
    """The parsed `name`, or None if it is no snapshot's name."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    return SnapshotName(SnapshotId(int(match[1]), int(match[2])), match[3])


# -- Writing


def first_batch(epoch: int, header_ms: int, level: int, voters: VoterSet | None, now_ms: int) -> bytearray:
    """The first batch of a snapshot. `header_ms` is the time of its newest record; voters need kraft.version 1."""
    controls = [snapshot_header(header_ms)]
    if level > 0:
        controls.append(kraft_version(level))
        if voters is not None:
            controls.append(kraft_voters(voters))
    return build_control_batch(controls, base_offset=0, timestamp_ms=now_ms, leader_epoch=epoch)


def record_batches(values: Iterable[bytes], base_offset: int, epoch: int, now_ms: int) -> Iterator[bytearray]:
    """The batches of metadata records. The next free offset is `base_offset` plus the number of values."""
    records: list[Record] = []
    size_bytes = 0
    for value in values:
        if records and (len(records) == BATCH_RECORDS_MAX or size_bytes + len(value) > BATCH_BYTES_MAX // 2):
            yield build_batch(records, leader_epoch=epoch)
            records, size_bytes = [], 0
        records.append(Record(base_offset, now_ms, None, value))
        base_offset += 1
        size_bytes += len(value)
    if records:
        yield build_batch(records, leader_epoch=epoch)


def last_batch(base_offset: int, epoch: int, now_ms: int) -> bytearray:
    """The last batch of a snapshot. A snapshot without it is incomplete."""
    return build_control_batch([snapshot_footer()], base_offset=base_offset, timestamp_ms=now_ms, leader_epoch=epoch)


def build_snapshot(
    snapshot_id: SnapshotId, header_ms: int, level: int, voters: VoterSet | None, values: Sequence[bytes], now_ms: int
) -> bytes:
    """A whole snapshot in one piece, for the small ones that formatting writes."""
    first = first_batch(snapshot_id.epoch, header_ms, level, voters, now_ms)
    base_offset = BatchView(first).next_offset
    batches = record_batches(values, base_offset, snapshot_id.epoch, now_ms)
    return b"".join([first, *batches, last_batch(base_offset + len(values), snapshot_id.epoch, now_ms)])


# -- Reading


class SnapshotContent:
    """The decoded content of a snapshot."""

    __slots__ = ("controls", "records", "timestamp_ms")

    def __init__(self) -> None:
        self.timestamp_ms = -1
        """The time of the newest record that the snapshot covers."""
        self.controls: list[ControlRecord] = []
        """KRaftVersion and KRaftVoters, if the snapshot has them."""
        self.records: list[Message] = []


def read_snapshot(path: str, data: bytes) -> SnapshotContent:
    """Decode a snapshot; `CorruptFile` if it is damaged or cut."""
    content = SnapshotContent()
    position, is_whole = 0, False
    try:
        for view in iterate_batches(data):
            position = view.position
            view.check_crc()
            if view.is_control:
                is_whole = _read_controls(view, content)
            else:
                for record in read_records(view):
                    content.records.append(decode_metadata_record(record.value or b"").message)
            position += view.size
    except (CorruptRecords, DecodeError) as damage:
        raise CorruptFile(path, position, str(damage), _REMEDY) from damage
    if not is_whole:
        raise CorruptFile(path, len(data), "the snapshot ends without its footer", _REMEDY)
    return content


def _read_controls(view: BatchView, content: SnapshotContent) -> bool:
    """Read a control batch into `content`; True if it holds the footer."""
    for record in read_records(view):
        control = parse_control(record)
        if control.type == ControlType.SNAPSHOT_HEADER:
            content.timestamp_ms = read_snapshot_header(control)
        elif control.type == ControlType.SNAPSHOT_FOOTER:
            return True
        else:
            content.controls.append(control)
    return False


def snapshot_timestamp_ms(path: str, head: bytes) -> int:
    """The time of the newest record that a snapshot covers, from its first bytes; `CorruptFile` if they have no header."""
    try:
        for record in read_records(BatchView(head)):
            control = parse_control(record)
            if control.type == ControlType.SNAPSHOT_HEADER:
                return read_snapshot_header(control)
    except (CorruptRecords, DecodeError, struct.error) as damage:
        raise CorruptFile(path, 0, str(damage), _REMEDY) from damage
    raise CorruptFile(path, 0, "the snapshot begins without its header", _REMEDY)
