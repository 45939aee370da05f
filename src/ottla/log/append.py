"""Appends to a partition log, as the leader that assigns offsets or as a follower that takes them over.

The order matters: everything that can refuse an append comes before anything is changed; then the bytes go to the file in one
write; only then do the log's end, the producers and the epochs move. A failed write leaves the log where it was and offline.
"""

import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from ottla.env import Buffer
from ottla.errors import CorruptRecords, KafkaError, OutOfDescriptors
from ottla.errors.codes import ErrorCode
from ottla.log.producers.append_checks import AppendOrigin, ProducerAppend, VerificationState
from ottla.log.segments.offset_index import RELATIVE_OFFSET_MAX
from ottla.log.segments.roll import FILES_PER_SEGMENT, roll
from ottla.log.segments.segment import Segment
from ottla.log.segments.txn_index import AbortedTxn
from ottla.records.batch import BatchView, iterate_batches
from ottla.records.decline import Decline
from ottla.records.effort import FULL, Effort
from ottla.records.kernels import CheckedBatch
from ottla.records.layout import NO_TIMESTAMP
from ottla.records.patch import set_base_offset_and_epoch
from ottla.records.produced.validate import ZSTD_REQUEST_VERSION_MIN, ValidBatch, validate_produced

if TYPE_CHECKING:
    from ottla.log.partition_log import PartitionLog

logger = logging.getLogger("ottla.log")


class AppendInfo(NamedTuple):
    """What became of an append."""

    first_offset: int
    """Of the batch; of the first one, if there were several. -1 if nothing was appended."""
    last_offset: int
    append_time_ms: int
    """The timestamp that the broker set, or -1 if records keep their producer's."""
    log_start_offset: int
    is_duplicate: bool
    """The producer had sent this batch before; the offsets are those it got then, and nothing was appended."""
    flush_needed: bool
    """flush.messages is reached: await `flush()` before the append is acknowledged."""
    size_bytes: int


class UnexpectedAppendOffset(KafkaError):
    """A leader's batches, which are valid, begin before the end of this log: it must be truncated first."""

    def __init__(self, message: str, first_offset: int, last_offset: int) -> None:
        super().__init__(ErrorCode.OFFSET_OUT_OF_RANGE, message)
        self.first_offset = first_offset
        self.last_offset = last_offset


# -- as leader


def append_as_leader(
    log: "PartitionLog",
    data: bytearray | memoryview,
    leader_epoch: int,
    origin: AppendOrigin = AppendOrigin.CLIENT,
    *,
    transaction_version: int = 0,
    verified_by: VerificationState | None = None,
    request_version: int = ZSTD_REQUEST_VERSION_MIN,
    checked: CheckedBatch | None = None,
    effort: Effort = FULL,
    valid: ValidBatch | None = None,
) -> AppendInfo:
    """Check a produced batch, give it its offsets, and append it. The buffer is changed in place and is the log's to keep.

    `KafkaError` with the code for the producer where it is refused; the log is then as it was. `transaction_version` is
    that of end markers, `verified_by` what the transaction's coordinator has confirmed, `request_version` Produce's,
    `checked` what an earlier check of the same batch found out. `TooExpensive`, with nothing changed, if the check takes more
    than `effort`: it is then done elsewhere (`check_produced`), and its result passed as `valid`.
    """
    if log.write_barrier is not None:
        raise log.write_barrier
    if origin is AppendOrigin.RAFT_LEADER:
        return _append_given(log, data, leader_epoch, origin)
    now_ms = log.clock.now_ms()
    if valid is not None:
        return _append_valid(log, valid, leader_epoch, origin, now_ms, transaction_version, verified_by)
    from_client = origin is AppendOrigin.CLIENT
    fast = log.check_fast(data, 0, memoryview(data), leader_epoch, now_ms, from_client, request_version, verified_by, checked)
    if fast.decline:
        valid = validate_produced(
            data,
            log.config,
            now_ms=now_ms,
            partition=log.name,
            from_client=from_client,
            request_version=request_version,
            decline=Decline(fast.decline),
            effort=effort,
            inspection=log.options.inspection,
        )
        return _append_valid(log, valid, leader_epoch, origin, now_ms, transaction_version, verified_by)
    first_offset = log.write(fast)
    last_offset = log.log_end_offset - 1
    return AppendInfo(first_offset, last_offset, NO_TIMESTAMP, log.log_start_offset, False, False, len(data))


def check_produced(
    log: "PartitionLog", data: bytearray | memoryview, request_version: int, effort: Effort
) -> Callable[[], ValidBatch]:
    """The check of a client's batch, as a call for another thread: it touches nothing of the log."""
    return partial(
        validate_produced,
        data,
        log.config,
        now_ms=log.clock.now_ms(),
        partition=log.name,
        request_version=request_version,
        effort=effort,
    )


def _append_valid(
    log: "PartitionLog",
    valid: ValidBatch,
    leader_epoch: int,
    origin: AppendOrigin,
    now_ms: int,
    transaction_version: int,
    verified_by: VerificationState | None,
) -> AppendInfo:
    """The general path: append a batch that is valid in itself, if its producer's state allows it."""
    config = log.config
    view, data, max_timestamp, append_time_ms = valid
    first_offset = log.log_end_offset
    last_offset = first_offset + view.last_offset_delta
    producers: ProducerAppend | None = None
    set_time_ms = append_time_ms if append_time_ms >= 0 else None
    if view.producer_id >= 0:
        producers = log.producers.begin(
            origin,
            transaction_version=transaction_version,
            verify=log.options.verify_transactions,
            verified_by=verified_by,
        )
        duplicate = producers.add(view, first_offset, set_time_ms)
        if duplicate is not None:
            return AppendInfo(
                duplicate.first_offset,
                duplicate.last_offset,
                duplicate.timestamp_ms,  # as Kafka answers, also where records keep their producer's timestamps
                log.log_start_offset,
                True,
                # The first time, it may have been cut off from its answer before it was flushed.
                duplicate.last_offset >= log.recovery_point
                and log.log_end_offset - log.recovery_point >= config.flush_messages,
                0,
            )
        limit = log.options.producer_limit
        if limit is not None and origin is AppendOrigin.CLIENT and view.producer_id not in log.producers.producers:
            limit.take(log.name, view.producer_id, now_ms)
    try:
        segment = _active_segment(log)
        if segment.should_roll(config, len(data), max_timestamp, last_offset, now_ms):
            segment = _next_segment(log, len(data), first_offset, last_offset, origin)
        set_base_offset_and_epoch(data, 0, first_offset, leader_epoch)
        segment.append(data, first_offset, last_offset, max_timestamp)
        log.log_end_offset = last_offset + 1
        if producers is None:
            log.producers.map_end_offset = last_offset + 1
        else:
            _apply(log, segment, last_offset + 1, producers)
    except OSError as error:
        raise log.fail(error) from error
    if leader_epoch >= 0:
        log.epochs.assign(leader_epoch, first_offset)
    flush_needed = log.log_end_offset - log.recovery_point >= config.flush_messages
    return AppendInfo(first_offset, last_offset, append_time_ms, log.log_start_offset, False, flush_needed, len(data))


def _active_segment(log: "PartitionLog") -> Segment:
    """The segment to append to, activated; `KafkaError` if its files cannot be opened now."""
    segment = log.segments.active
    if segment.is_dormant:
        if not log.disk.can_open(FILES_PER_SEGMENT):
            shortage = OutOfDescriptors(f"nothing can be appended to {log.partition}")
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(shortage))
        segment.activate()
    return segment


def _next_segment(log: "PartitionLog", size_bytes: int, first_offset: int, last_offset: int, origin: AppendOrigin) -> Segment:
    """A new segment, since the active one is full or old; `KafkaError` if no segment can take so much."""
    segment_bytes = log.config.segment_bytes
    # A leader's batch may be from before segment.bytes was lowered. It was acknowledged: it gets a segment of its own.
    if size_bytes > segment_bytes and origin is not AppendOrigin.REPLICATION:
        raise KafkaError(
            ErrorCode.RECORD_LIST_TOO_LARGE,
            f"{size_bytes} bytes cannot be appended to {log.partition}: segment.bytes is {segment_bytes}. "
            "Send smaller batches or raise it",
        )
    # A follower's batches may begin after a gap. Segments follow each other without one wherever their indexes allow, so
    # that recovery can tell people of one that a power loss has made.
    reachable = last_offset - log.log_end_offset <= RELATIVE_OFFSET_MAX
    try:
        return roll(log, log.log_end_offset if reachable else first_offset)
    except OutOfDescriptors as shortage:
        if log.segments.active.has_room(size_bytes, last_offset):
            return log.segments.active  # larger or older than it should be, which is better than to refuse
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(shortage)) from None


def _apply(log: "PartitionLog", segment: Segment, end_offset: int, producers: ProducerAppend) -> None:
    """The bytes are in the file: let the producers move on."""
    for ended in log.producers.apply(producers, end_offset, log.clock.now_ms()):
        if ended.aborted:
            segment.txn_index.append(
                AbortedTxn(ended.producer_id, ended.first_offset, ended.last_offset, ended.last_stable_offset)
            )
            log.names_unsynced = True  # the first entry makes the file; without its name, aborted records would be committed


# -- as follower


def append_as_follower(log: "PartitionLog", data: Buffer, leader_epoch: int) -> AppendInfo:
    """Append batches as the leader of `leader_epoch` sent them, offsets and all. A torn last batch is left out."""
    if log.write_barrier is not None:
        raise log.write_barrier
    first_offset = log.append_followed(data, leader_epoch, log.clock.now_ms())
    if first_offset >= 0:
        return AppendInfo(first_offset, log.log_end_offset - 1, NO_TIMESTAMP, log.log_start_offset, False, False, len(data))
    return _append_given(log, data, leader_epoch, AppendOrigin.REPLICATION)


def _append_given(log: "PartitionLog", data: Buffer, leader_epoch: int, origin: AppendOrigin) -> AppendInfo:
    """Append batches that have their offsets and epochs."""
    views, size_bytes = _whole_batches(log, data, leader_epoch, origin)
    if not views:
        return AppendInfo(-1, -1, NO_TIMESTAMP, log.log_start_offset, False, False, 0)
    first_offset, last_offset = views[0].base_offset, views[-1].last_offset
    if first_offset < log.log_end_offset:
        raise UnexpectedAppendOffset(
            f"batches with offsets {first_offset} up to {last_offset} cannot be appended to {log.partition}, which ends at "
            f"{log.log_end_offset}: truncate it first",
            first_offset,
            last_offset,
        )
    if size_bytes > log.config.segment_bytes and len(views) > 1:
        for view in views:  # more than a segment takes, but each batch may fit
            _append_views(log, view.data, [view], origin)
    else:
        _append_views(log, data if size_bytes == len(data) else memoryview(data)[:size_bytes], views, origin)
    flush_needed = log.log_end_offset - log.recovery_point >= log.config.flush_messages
    return AppendInfo(first_offset, last_offset, NO_TIMESTAMP, log.log_start_offset, False, flush_needed, size_bytes)


def _append_views(log: "PartitionLog", data: Buffer, views: list[BatchView], origin: AppendOrigin) -> None:
    producers = log.producers.begin(origin) if any(view.producer_id >= 0 for view in views) else None
    if producers is not None:
        for view in views:
            producers.add(view, view.base_offset)
    max_timestamp = max(view.max_timestamp for view in views)
    first_offset, last_offset = views[0].base_offset, views[-1].last_offset
    try:
        segment = _active_segment(log)
        if segment.should_roll(log.config, len(data), max_timestamp, last_offset, log.clock.now_ms()):
            segment = _next_segment(log, len(data), first_offset, last_offset, origin)
        segment.append_batches(data, views)
        log.log_end_offset = last_offset + 1
        if producers is None:
            log.producers.advance(last_offset + 1)
        else:
            _apply(log, segment, last_offset + 1, producers)
    except OSError as error:
        raise log.fail(error) from error
    for view in views:
        if view.leader_epoch >= 0:
            log.epochs.assign(view.leader_epoch, view.base_offset)


def _whole_batches(log: "PartitionLog", data: Buffer, leader_epoch: int, origin: AppendOrigin) -> tuple[list[BatchView], int]:
    """The batches of `data` to be appended, each checked, and how many bytes they have together.

    A fetch response may end in the middle of a batch: that one is left out. So is everything from a batch of a later epoch on:
    the partition has a new leader that this replica does not know of yet.
    """
    views: list[BatchView] = []
    last_offset = -1
    try:
        for view in iterate_batches(data, allow_cut_end=True):
            view.check_crc()
            if origin is AppendOrigin.RAFT_LEADER and view.leader_epoch != leader_epoch:
                raise KafkaError(
                    ErrorCode.INVALID_RECORD,
                    f"a batch for {log.partition} has leader epoch {view.leader_epoch} where {leader_epoch} is in force",
                )
            if origin is AppendOrigin.REPLICATION and view.leader_epoch > leader_epoch:
                logger.info(
                    "%s: left out batches from epoch %d, the epoch here is %d", log.partition, view.leader_epoch, leader_epoch
                )
                break
            if view.base_offset <= last_offset or view.last_offset_delta < 0:
                raise KafkaError(
                    ErrorCode.CORRUPT_MESSAGE,
                    f"batches for {log.partition} are out of order: offset {view.base_offset} comes after {last_offset}",
                )
            views.append(view)
            last_offset = view.last_offset
    except CorruptRecords as error:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{log.partition} got damaged records: {error}") from error
    return views, views[-1].position + views[-1].size if views else 0
