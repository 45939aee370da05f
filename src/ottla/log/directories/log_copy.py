"""Copying one log of this node to another, as a follower takes its leader's: whole batches, with their offsets and epochs.

Plain functions over two logs, both online. Nothing here waits: the owner copies piece by piece and lets others run in between.
Batches keep their offsets, so that both logs say the same of every offset, though their segments end at different places.
"""

from __future__ import annotations

from dataclasses import replace

from ottla.env import FileRange
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.log.partition_log import PartitionLog
from ottla.log.segments.roll import roll
from ottla.records.batch import BatchView, iterate_batches

_ANY_EPOCH = 2**31 - 1
_ANY_SIZE = 2**31 - 1


def first_offset(log: PartitionLog) -> int:
    """Where a copy begins: where the log does, or the batch that its start lies in the middle of."""
    info = log.read(log.log_start_offset, 1)
    if info.records is None:
        return log.log_start_offset
    return min(log.log_start_offset, BatchView(_bytes_of(log, info.records)).base_offset)


def can_go_on(log: PartitionLog, copy: PartitionLog) -> bool:
    """Whether what follows the copy's end is still in the log."""
    if copy.log_end_offset < log.log_start_offset:
        return copy.log_end_offset == first_offset(log)
    return copy.log_end_offset <= log.log_end_offset


def copy_piece(log: PartitionLog, copy: PartitionLog, bytes_max: int) -> int:
    """Append the next batches to the copy, some `bytes_max` of them; returns how many bytes, 0 once it is complete."""
    info = log.read(max(copy.log_end_offset, log.log_start_offset), bytes_max)
    if info.records is None:
        if copy.log_end_offset < log.log_end_offset:  # what was there has been compacted away
            roll(copy, log.log_end_offset)
            copy.log_end_offset = log.log_end_offset
        return 0
    size_bytes = _append(copy, _bytes_of(log, info.records))
    if not size_bytes:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{log.folder} has no whole batch at offset {copy.log_end_offset}")
    return size_bytes


def _bytes_of(log: PartitionLog, records: FileRange) -> bytes:
    try:
        return records.read()
    except OSError as error:
        raise log.fail(error) from error


def _append(copy: PartitionLog, data: bytes) -> int:
    try:
        return copy.append_as_follower(data, _ANY_EPOCH).size_bytes
    except KafkaError as refused:
        if refused.code != ErrorCode.RECORD_LIST_TOO_LARGE:
            raise
    # A batch from before segment.bytes was lowered. It was acknowledged: it has a segment to itself.
    # The batches before it have been appended.
    view = next(view for view in iterate_batches(data) if view.base_offset >= copy.log_end_offset)
    config = copy.config
    copy.config = replace(config, segment_bytes=_ANY_SIZE)
    try:
        return copy.append_as_follower(view.data, _ANY_EPOCH).size_bytes
    finally:
        copy.config = config


def follow_bounds(log: PartitionLog, copy: PartitionLog) -> None:
    """Let the copy begin, and be known to be replicated, where the log is; as far as it has been copied."""
    copy.update_high_watermark(log.high_watermark)
    copy.delete_records(min(log.log_start_offset, copy.high_watermark))


def take_over(log: PartitionLog, copy: PartitionLog) -> None:
    """The copy is complete: hand it what the records alone do not tell, so that it can go on in the log's place.

    These are epochs without records, producers whose records are gone, and transactions about to be verified.
    """
    follow_bounds(log, copy)
    copy.config = log.config
    copy.epochs.clear()
    for epoch, start_offset in log.epochs.entries:
        copy.epochs.assign(epoch, start_offset)
    copy.producers = log.producers
    try:
        copy.snapshots.write_anew(copy.producers)
    except OSError as error:
        raise copy.fail(error) from error
    copy.snapshots_unsynced.append(copy.producers.map_end_offset)
    copy.last_flush_s = log.last_flush_s
