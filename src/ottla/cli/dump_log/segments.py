"""Rows of a file of record batches: a log segment, or a snapshot of the cluster metadata.

Batches are read one at a time. A batch with a wrong CRC is shown with `isvalid: false`. From the first position that cannot be
a batch the rest of the file is reported as invalid bytes: the start of the next batch is unknown.
"""

import posixpath
from collections.abc import Iterator

from ottla.cli.dump_log.control_rows import control_fields
from ottla.cli.dump_log.options import Options
from ottla.cli.dump_log.rows import Kind, Row, Rows, problem
from ottla.env import File
from ottla.errors import CorruptFile, CorruptRecords
from ottla.log.segments.scan import headers, whole_batch
from ottla.records.batch import BatchView, sequence_after
from ottla.records.layout import NO_SEQUENCE
from ottla.records.reader import read_records
from ottla.records.record import Record


def dump_batches(file: File, options: Options) -> Rows:
    """Every batch of `file`, with its records if the options ask for them."""
    gaps: list[tuple[int, int]] = []
    last_offset = -1
    for found in _batches(file, options.max_bytes):
        if isinstance(found, Row):
            yield found
            continue
        position, view, is_valid = found
        yield Row(Kind.BATCH, _batch_fields(position, view, is_valid))
        if not (options.deep_iteration or options.decoder):
            continue
        try:
            records = read_records(view)
        except CorruptRecords as damage:
            yield problem(f"the records of the batch at byte {position} cannot be read: {damage}")
            continue
        for record in records:
            if last_offset >= 0 and record.offset != last_offset + 1:
                gaps.append((last_offset, record.offset))
            last_offset = record.offset
            yield from _record_row(view, record, options)
    if gaps:
        yield from _gap_rows(file.path, gaps)


def _gap_rows(path: str, gaps: list[tuple[int, int]]) -> Rows:
    """Gaps between offsets. They are notes, not problems: compaction leaves gaps."""
    yield Row(Kind.NOTE, {"text": f"Non-consecutive offsets in {path}"})
    for before, after in gaps:
        yield Row(Kind.NOTE, {"text": f"  {before} is followed by {after}"})


def _batches(file: File, max_bytes: int) -> Iterator[tuple[int, BatchView, bool] | Row]:
    end = min(file.size, max_bytes)
    position = 0
    try:
        for position, header in headers(file, 0, file.size):
            if position + header.size > end:
                return
            view = whole_batch(file, position, header.size)
            yield position, view, view.computed_crc() == view.crc
    except CorruptFile as damage:
        name = posixpath.basename(file.path)
        yield problem(f"Found {file.size - damage.position} invalid bytes at the end of {name}: {damage.what}")


def _batch_fields(position: int, view: BatchView, is_valid: bool) -> dict[str, object]:
    try:
        codec = view.codec.name.lower()
    except CorruptRecords:
        codec = "unknown"
    return {
        "baseOffset": view.base_offset,
        "lastOffset": view.last_offset,
        "count": view.count,
        "baseSequence": view.base_sequence,
        "lastSequence": view.last_sequence,
        "producerId": view.producer_id,
        "producerEpoch": view.producer_epoch,
        "partitionLeaderEpoch": view.leader_epoch,
        "isTransactional": view.is_transactional,
        "isControl": view.is_control,
        "deleteHorizonMs": view.delete_horizon_ms,
        "position": position,
        _timestamp_name(view): view.max_timestamp,
        "size": view.size,
        "magic": view.magic,
        "compresscodec": codec,
        "crc": view.crc,
        "isvalid": is_valid,
    }


def _timestamp_name(view: BatchView) -> str:
    return "LogAppendTime" if view.is_append_time else "CreateTime"


def _record_row(view: BatchView, record: Record, options: Options) -> Rows:
    fields: dict[str, object] = {}
    if not options.skip_record_metadata:
        no_sequence = view.base_sequence == NO_SEQUENCE
        fields = {
            "offset": record.offset,
            _timestamp_name(view): record.timestamp,
            "keySize": -1 if record.key is None else len(record.key),
            "valueSize": -1 if record.value is None else len(record.value),
            "sequence": NO_SEQUENCE if no_sequence else sequence_after(view.base_sequence, record.offset - view.base_offset),
            "headerKeys": [name for name, _ in record.headers],
        }
    if view.is_control:
        if options.skip_record_metadata:
            return
        fields |= control_fields(record)
    elif options.decoder:
        fields |= options.decoder(record)
    yield Row(Kind.RECORD, fields)
