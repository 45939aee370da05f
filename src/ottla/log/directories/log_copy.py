"""Copying a log to another directory of this node, as a follower copies its leader: whole batches, with offsets and epochs.

Plain functions over two logs, both online. Nothing here waits: the caller copies piece by piece and lets other tasks run in
between. Batches keep their offsets, so both logs have the same records at every offset, though their segments differ.
"""

from __future__ import annotations

from ottla.env import FileRange
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.log.partition_log import PartitionLog
from ottla.log.segments.roll import roll
from ottla.records.batch import BatchView

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
