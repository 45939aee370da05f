"""Rows of the three kinds of index files, checked against the log file beside them.

Each entry of an offset or time index is compared with the log; a wrong entry is reported with what the log has there. Files are
opened for reading only. The zero padding of Apache Kafka's active indexes is skipped.
The small files are here too: producer snapshots, checkpoints, JSON and properties files. Their damage is raised as
`CorruptFile`; `command.py` turns it into a row.
"""

import json
from collections.abc import Iterator
from struct import Struct

from ottla.cli.dump_log.rows import DumpOptions, Kind, Row, Rows, note, problem
from ottla.env import Disk, File, OpenMode
from ottla.errors import CorruptFile
from ottla.log.directories.checkpoint import parse_epochs, parse_offsets
from ottla.log.names import LOG_SUFFIX, OFFSET_INDEX_SUFFIX, SegmentFileName
from ottla.log.producers.producer_snapshot import decode_snapshot
from ottla.log.segments.scan import find_offset, headers
from ottla.log.segments.txn_index import ENTRY as TXN_ENTRY
from ottla.records.batch import BatchView

_OFFSET_ENTRY = Struct(">ii")
_TIME_ENTRY = Struct(">qi")
_CHUNK_ENTRIES = 8192


def _entries(file: File, entry: Struct) -> Iterator[tuple[int, ...]]:
    """The entries of an index up to its padding: an entry of zeros is padding, unless it is the only one."""
    whole = file.size - file.size % entry.size
    zeros = (0,) * len(entry.unpack(bytes(entry.size)))
    for start in range(0, whole, _CHUNK_ENTRIES * entry.size):
        data = file.read(start, min(_CHUNK_ENTRIES * entry.size, whole - start))
        for values in entry.iter_unpack(data):
            if values == zeros and whole > entry.size:
                return
            yield values


def _size_problem(file: File, entry: Struct) -> Rows:
    if file.size % entry.size:
        yield problem(
            f"{file.path} has {file.size} bytes, which is not a multiple of its entry size {entry.size}: "
            "the node rebuilds it at its next start"
        )


def _beside(disk: Disk, path: str, name: SegmentFileName, suffix: str) -> File | None:
    """The file of the same segment with `suffix`; None if it does not exist."""
    stem = path[: len(path) - len(name.suffix + name.state)]
    other = f"{stem}{suffix}{name.state}"
    return disk.open(other, OpenMode.READ) if disk.exists(other) else None


def _batch_at(log: File, position: int) -> BatchView | None:
    """The header of the batch at `position`; None if no batch begins there."""
    try:
        return next((view for _, view in headers(log, position, log.size)), None)
    except CorruptFile:
        return None


def dump_offset_index(disk: Disk, path: str, name: SegmentFileName, options: DumpOptions) -> Rows:
    """Offset → position, each entry checked against the batch at its position."""
    index = disk.open(path, OpenMode.READ)
    yield from _size_problem(index, _OFFSET_ENTRY)
    if index.size < _OFFSET_ENTRY.size:
        yield note(f"{path} is empty.")
        return
    log = _beside(disk, path, name, LOG_SUFFIX)
    if log is None:
        yield note(f"The log file of {path} does not exist, so its entries cannot be checked.")
    wrong: list[str] = []
    for offset, position in _offset_entries(index, name.base_offset):
        if not (options.verify_index_only or options.index_sanity_check):
            yield Row(Kind.OFFSET_INDEX_ENTRY, {"offset": offset, "position": position})
        if log is not None:
            view = _batch_at(log, position)
            if view is None or view.last_offset != offset:
                found = "none" if view is None else view.last_offset
                wrong.append(f"  Index offset: {offset}, log offset: {found}")
    yield from _wrong_rows(f"Mismatches in :{path}", wrong, path, options)


def _offset_entries(index: File, base_offset: int) -> Iterator[tuple[int, int]]:
    for relative, position in _entries(index, _OFFSET_ENTRY):
        yield base_offset + relative, position


def dump_time_index(disk: Disk, path: str, name: SegmentFileName, options: DumpOptions) -> Rows:
    """Timestamp → offset, each entry checked against the largest timestamp of the batch with that offset."""
    index = disk.open(path, OpenMode.READ)
    yield from _size_problem(index, _TIME_ENTRY)
    log = _beside(disk, path, name, LOG_SUFFIX)
    if log is None:
        yield note(f"The log file of {path} does not exist, so its entries cannot be checked.")
    positions = _PositionHints(_beside(disk, path, name, OFFSET_INDEX_SUFFIX), name.base_offset)
    wrong: list[str] = []
    timestamp_before = -1
    for timestamp, relative in _entries(index, _TIME_ENTRY):
        offset = name.base_offset + relative
        if not (options.verify_index_only or options.index_sanity_check):
            yield Row(Kind.TIME_INDEX_ENTRY, {"timestamp": timestamp, "offset": offset})
        if timestamp < timestamp_before:
            wrong.append(f"  Index timestamp: {timestamp}, Previously indexed timestamp: {timestamp_before}")
        timestamp_before = timestamp
        if log is not None:
            wrong.extend(_time_mismatch(log, positions, timestamp, offset))
    yield from _wrong_rows(f"Found timestamp mismatch in :{path}", wrong, path, options)


def _time_mismatch(log: File, positions: "_PositionHints", timestamp: int, offset: int) -> Iterator[str]:
    try:
        place = find_offset(log, offset, positions.at_or_below(offset), log.size)
    except CorruptFile as damage:
        yield f"  Index timestamp: {timestamp}, log: {damage.what} at byte {damage.position}"
        return
    view = _batch_at(log, place.position) if place is not None else None
    if view is None:
        yield f"  Indexed offset: {offset}, found log offset: none"
    elif view.max_timestamp != timestamp:
        yield f"  Index timestamp: {timestamp}, log timestamp: {view.max_timestamp}"


class _PositionHints:
    """Where to start the search for rising offsets: the offset index read in step, or the start of the log without one."""

    def __init__(self, index: File | None, base_offset: int) -> None:
        self._entries = iter(()) if index is None else _offset_entries(index, base_offset)
        self._ahead = next(self._entries, None)
        self._position = 0

    def at_or_below(self, offset: int) -> int:
        while self._ahead is not None and self._ahead[0] <= offset:
            self._position = self._ahead[1]
            self._ahead = next(self._entries, None)
        return self._position


def _wrong_rows(heading: str, wrong: list[str], path: str, options: DumpOptions) -> Rows:
    if wrong:
        yield problem(heading)
        for line in wrong:
            yield problem(line)
    elif options.index_sanity_check:
        yield note(f"{path} passed sanity check.")


def dump_txn_index(disk: Disk, path: str) -> Rows:
    """The aborted transactions of a segment."""
    index = disk.open(path, OpenMode.READ)
    yield from _size_problem(index, TXN_ENTRY)
    for version, producer_id, first_offset, last_offset, last_stable_offset in _entries(index, TXN_ENTRY):
        yield Row(
            Kind.TRANSACTION_INDEX_ENTRY,
            {
                "version": version,
                "producerId": producer_id,
                "firstOffset": first_offset,
                "lastOffset": last_offset,
                "lastStableOffset": last_stable_offset,
            },
        )


def dump_producer_snapshot(disk: Disk, path: str) -> Rows:
    """The state of each producer at the snapshot's offset."""
    for entry in decode_snapshot(path, disk.read_file(path)):
        fields: dict[str, object] = {
            "producerId": entry.producer_id,
            "producerEpoch": entry.epoch,
            "coordinatorEpoch": entry.coordinator_epoch,
            "currentTxnFirstOffset": entry.transaction_first_offset,
            "lastTimestamp": entry.last_timestamp_ms,
        }
        for batch in entry.batches:
            fields |= {
                "firstSequence": batch.first_sequence,
                "lastSequence": batch.last_sequence,
                "lastOffset": batch.last_offset,
                "offsetDelta": batch.last_offset - batch.first_offset,
                "timestamp": batch.timestamp_ms,
            }
        yield Row(Kind.PRODUCER, fields)


def dump_offset_checkpoint(disk: Disk, path: str) -> Rows:
    """One offset per partition."""
    for partition, offset in parse_offsets(path, disk.read_file(path)).items():
        yield Row(Kind.CHECKPOINT_ENTRY, {"topic": partition.topic, "partition": partition.partition, "offset": offset})


def dump_leader_epochs(disk: Disk, path: str) -> Rows:
    """Where each leader epoch begins."""
    for epoch, start_offset in parse_epochs(path, disk.read_file(path)):
        yield Row(Kind.LEADER_EPOCH, {"epoch": epoch, "startOffset": start_offset})


def dump_json(disk: Disk, path: str) -> Rows:
    """A file that holds one JSON object: quorum-state, the clean-shutdown marker."""
    try:
        content = json.loads(disk.read_file(path))
    except ValueError as damage:
        yield problem(f"{path} is not JSON: {damage}")
        return
    if isinstance(content, dict):
        yield Row(Kind.PROPERTIES, content)
    else:
        yield problem(f"{path} should hold one JSON object, not {type(content).__name__}")


def dump_properties(disk: Disk, path: str) -> Rows:
    """A file of `name=value` or `name: value` lines: meta.properties, partition.metadata."""
    fields: dict[str, object] = {}
    for number, line in enumerate(disk.read_file(path).decode("utf-8", "replace").splitlines(), start=1):
        if not line.strip() or line.startswith(("#", "!")):
            continue
        at = min((position for position in (line.find("="), line.find(":")) if position > 0), default=-1)
        if at < 0:
            yield problem(f"{path} line {number} should be a name and a value, not {line[:60]!r}")
            continue
        fields[line[:at].strip()] = line[at + 1 :].strip()
    yield Row(Kind.PROPERTIES, fields)
