"""Reads the records in the files of a metadata log: its segments and its snapshots."""

from collections.abc import Iterator
from pathlib import Path

from tests.support.logs.log_reading import whole_batches

from ottla.records.reader import read_records
from ottla.wire.log_records import LogRecord, decode_metadata_record


def records_of(path: Path) -> Iterator[tuple[int, LogRecord]]:
    """(offset, record) of a segment or a snapshot, without the quorum's control batches."""
    for batch in whole_batches(path.read_bytes()):
        batch.check()
        if not batch.is_control:
            for record in read_records(batch):
                assert record.value is not None
                yield record.offset, decode_metadata_record(record.value)


def log_of(folder: Path) -> list[tuple[int, LogRecord]]:
    """(offset, record) of all segments in a metadata log's folder."""
    return [entry for segment in sorted(folder.glob("*.log")) for entry in records_of(segment)]
