"""The log of one partition: its state, and methods for everything that can be done with it.

Owns the folder `topic-N` below a log directory: segments, producer snapshots and the leader epochs. The work is done by
functions over the log: flushing, truncating and closing below the class, the rest in `append.py`, `read.py`,
`segments/roll.py`, `segments/deletion.py`, `recovery/log_loader.py`. Its offsets, in order: log start ≤ last stable ≤ high
watermark ≤ log end; recovery point ≤ log end.

Loop rules. One event loop owns a log. Appending, reading and rolling are plain calls that go to the page cache. Calls that wait
for the device are awaited: `flush`, `truncate_to`, `delete_segments`, `replace_segments`, `delete_due_files`, `close`. The log
starts no task and sets no timer. Its owner reads here what is due:

- `AppendInfo.flush_needed`: flush.messages is reached; await `flush()` before the append is acknowledged.
- `flush_wanted_up_to`: a segment was rolled; call `flush(that offset)` soon, in the background.
- `flush_deadline_s`: when flush.ms is over. `deletion_deadline_s`: when the next files are removed. Both are monotonic.

The owner checkpoints the recovery point after `flush` and after `truncate_to`. A truncation lowers it: the lower value must be
on disk before the next append, or a power loss could leave torn records below the recovery point, where recovery does not look.

An `OSError` becomes `LogDirectoryFailed`. From then on the log refuses every call with it, since the state of the disk is
unknown.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from ottla.config.topic import LogConfig
from ottla.env import Clock, Disk, Steps, run_to_end
from ottla.errors import (
    BrokenInvariant,
    CorruptFile,
    KafkaError,
    LogDirectoryFailed,
    OttlaError,
    OutOfDescriptors,
    is_out_of_descriptors,
)
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition
from ottla.log import append, read
from ottla.log.fast_path.kernels import LogTail
from ottla.log.leader_epochs import NO_OFFSET, LeaderEpochs
from ottla.log.producers.producer_limit import ProducerLimit
from ottla.log.producers.producer_recovery import rebuild_producers
from ottla.log.producers.producer_snapshot import ProducerSnapshots
from ottla.log.producers.producer_state import ProducerState
from ottla.log.read import Isolation, ReadInfo
from ottla.log.segments import deletion, roll
from ottla.log.segments.deletion import PendingDeletion, retire
from ottla.log.segments.roll import new_segment
from ottla.log.segments.segment import Segment
from ottla.log.segments.segment_list import Segments
from ottla.log.segments.time_lookup import TimedOffset
from ottla.log.segments.txn_index import AbortedTxn
from ottla.records.kernels import BatchLimits, RecordWalk
from ottla.records.produced.inspection import Inspection

if TYPE_CHECKING:
    from ottla.env import File


DAY_MS = 86_400_000


def no_jitter(_below: int) -> int:
    return 0


class LogOptions(NamedTuple):
    """The node's settings for its logs; a topic's own settings are in `LogConfig`."""

    producer_expiration_ms: int = DAY_MS
    """producer.id.expiration.ms"""
    verify_transactions: bool = False
    """transaction.partition.verification.enable: a transaction's first batch must be verified with its coordinator."""
    inspection: Inspection | None = None
    """Chooses the compressed batches that are unpacked before they are appended: one for all logs. None: each has its own."""
    producer_limit: ProducerLimit | None = None
    """How many producers all logs together remember. None: no limit."""
    jitter: Callable[[int], int] = no_jitter
    """A random number from 0 up to, not including, its argument; spreads rolls by segment.jitter.ms."""


class LogParts(NamedTuple):
    """The parts that loading passes to a new log."""

    segments: Segments
    epochs: LeaderEpochs
    producers: ProducerState
    snapshots: ProducerSnapshots
    log_start_offset: int
    log_end_offset: int
    recovery_point: int


class PartitionLog(LogTail):
    """The log of one partition. Get one from `ottla.log.recovery.log_loader.load_log`."""

    __slots__ = (
        "_config",
        "bound_places",
        "clock",
        "cut_place",
        "disk",
        "failure",
        "flushing",
        "folder",
        "gap_offset",
        "last_flush_s",
        "moved_to",
        "name",
        "names_unsynced",
        "options",
        "partition",
        "pending_deletions",
        "replacements",
        "reshaping",
        "snapshots",
        "snapshots_unsynced",
        "truncations",
    )

    epochs: LeaderEpochs
    producers: ProducerState
    segments: Segments
    write_barrier: OttlaError | None
    """Why nothing may be appended now."""

    def __init__(
        self,
        disk: Disk,
        clock: Clock,
        folder: str,
        partition: TopicPartition,
        config: LogConfig,
        options: LogOptions,
        parts: LogParts,
    ) -> None:
        self.disk = disk
        self.clock = clock
        self.folder = folder
        self.partition = partition
        self.name = str(partition)
        self.options = options
        self.config = config
        self.segments = parts.segments
        self.epochs = parts.epochs
        self.producers = parts.producers
        self.snapshots = parts.snapshots
        self.log_start_offset = parts.log_start_offset
        self.log_end_offset = parts.log_end_offset
        self.high_watermark = parts.log_start_offset
        self.recovery_point = parts.recovery_point
        self.last_flush_s = clock.monotonic_s()
        self.flush_wanted_up_to = None
        self.names_unsynced = True
        self.snapshots_unsynced: list[int] = []
        self.pending_deletions: list[PendingDeletion] = []
        self.gap_offset: int | None = None
        """The first offset that recovery found in no segment: a power loss may have taken it. None: there is no such gap.

        Open until the owner knows whether this log leads (then it stays as it is) or is truncated there."""
        self.truncations = 0
        """How often the log was truncated. A flush that overlaps a truncation must not raise the recovery point."""
        self.replacements = 0
        """How often segments were replaced by compacted ones."""
        self.bound_places: dict[int, tuple[int, int]] = {}
        """Cache: offsets that bound reads → (base offset of the segment, position in it)."""
        self.cut_place: tuple[int, int] | None = None
        """During a truncation: where the log ends, though the file is still longer."""
        self.flushing = asyncio.Lock()
        """Held during a flush."""
        self.reshaping = asyncio.Lock()
        """Held while segments are deleted or replaced: one such change at a time."""
        self.failure: OttlaError | None = None
        """Why the log refuses every call; None while it works."""
        self.write_barrier = None
        self.moved_to: PartitionLog | None = None
        """The log in another directory that has replaced this one; None unless the partition was moved."""
        self.producers.on_high_watermark(self.high_watermark)

    def __repr__(self) -> str:
        return (
            f"PartitionLog({self.partition}, start={self.log_start_offset}, high_watermark={self.high_watermark}, "
            f"end={self.log_end_offset}, segments={len(self.segments)})"
        )

    # -- state

    @property
    def config(self) -> LogConfig:
        """The topic's settings; may be changed at any time."""
        return self._config

    @config.setter
    def config(self, config: LogConfig) -> None:
        self._config = config
        # Where schema ids are checked, no batch takes the fast path: so it need not ask whether they are.
        limiting = replace(config, max_message_bytes=-1) if config.checks_schemas else config
        self.limits = BatchLimits(limiting, RecordWalk(), self.options.inspection or Inspection())
        self.segment_bytes = config.segment_bytes
        self.segment_age_max_ms = config.segment_age_max_ms
        self.flush_messages = config.flush_messages

    @property
    def size_bytes(self) -> int:
        return self.segments.size_bytes

    @property
    def history(self) -> tuple[int, int]:
        """Counts truncations and compactions since the log was opened. Unless it changes, records are only added, or expire."""
        return self.truncations, self.replacements

    @property
    def last_stable_offset(self) -> int:
        """The end of what read_committed consumers may read."""
        return self.producers.last_stable_offset(self.high_watermark, self.log_start_offset)

    @property
    def needs_flush(self) -> bool:
        """Whether flush.messages wants the newest records on disk before they are acknowledged."""
        return self.log_end_offset - self.recovery_point >= self.flush_messages

    @property
    def latest_epoch(self) -> int | None:
        """The newest leader epoch the log knows."""
        return self.epochs.latest

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int] | None:
        """(epoch, end offset) of the largest epoch at or below `epoch`; None if it is unknown."""
        found, end_offset = self.epochs.end_offset_for(epoch, self.log_end_offset)
        return None if end_offset == NO_OFFSET else (found, end_offset)

    def assign_epoch(self, epoch: int, start_offset: int) -> None:
        """Note that leader epoch `epoch` begins at `start_offset`, perhaps before its first record."""
        self.epochs.assign(epoch, start_offset)

    # -- appending

    # The functions are the methods: on the hot path one more call costs 3 % (docs/decisions/0005-hot-path.md).
    append_as_leader = append.append_as_leader
    append_as_follower = append.append_as_follower

    def roll(self) -> Segment:
        """Start a new segment at the log end offset, unless the active one is empty."""
        return roll.roll(self)

    # -- reading

    def read(
        self, offset: int, max_bytes: int, isolation: Isolation = Isolation.LOG_END, min_one_batch: bool = True
    ) -> ReadInfo:
        """Read up to `max_bytes` from the batch that holds `offset` on. `KafkaError` OFFSET_OUT_OF_RANGE outside the log.

        The last batch may be cut in the middle; with `min_one_batch` the first one never is.
        """
        return read.read(self, offset, max_bytes, isolation, min_one_batch)

    def aborted_transactions(self, start_offset: int, upper_offset: int) -> list[AbortedTxn]:
        """The aborted transactions with records in [start_offset, upper_offset)."""
        return read.aborted_transactions(self, start_offset, upper_offset)

    def offset_for_time(self, timestamp: int) -> TimedOffset | None:
        """The first record whose timestamp is `timestamp` or later; None if there is none."""
        return run_to_end(self.search_by_time(timestamp))

    def search_by_time(self, timestamp: int) -> Steps[TimedOffset | None]:
        """`offset_for_time` in steps: the search can take long."""
        return read.search_by_time(self, timestamp)

    def earliest_offset(self) -> TimedOffset:
        return read.earliest_offset(self)

    def latest_offset(self) -> TimedOffset:
        return read.latest_offset(self)

    def max_timestamp_offset(self) -> TimedOffset | None:
        """The first record with the largest timestamp in the log."""
        return run_to_end(self.search_max_timestamp())

    def search_max_timestamp(self) -> Steps[TimedOffset | None]:
        """`max_timestamp_offset` in steps."""
        return read.search_max_timestamp(self)

    # -- watermarks

    def update_high_watermark(self, offset: int) -> int:
        """Set the high watermark, limited to the log's offsets; returns the value set. It may fall, as after a truncation."""
        self.high_watermark = max(self.log_start_offset, min(offset, self.log_end_offset))
        self.producers.on_high_watermark(self.high_watermark)
        return self.high_watermark

    def delete_records(self, offset: int) -> bool:
        """Move the log start up to `offset`: records before it are no longer read, and their segments may be deleted.

        Returns whether the log start moved. `KafkaError` OFFSET_OUT_OF_RANGE past the high watermark: those records are not
        yet on all in-sync replicas.
        """
        self.check_usable()
        if offset > self.high_watermark:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"records of {self.partition} cannot be deleted up to offset {offset}: the high watermark is "
                f"{self.high_watermark}. Ask for an offset up to that",
            )
        if offset <= self.log_start_offset:
            return False
        self.log_start_offset = offset
        self.epochs.truncate_from_start(offset)
        self.producers.on_log_start(offset)
        return True

    # -- flushing

    @property
    def flush_deadline_s(self) -> float | None:
        """When (monotonic) flush.ms is over for the records not yet flushed; None if there are none."""
        if self.recovery_point >= self.log_end_offset:
            return None
        return self.last_flush_s + self.config.flush_ms / 1000

    async def flush(self, up_to_offset: int | None = None) -> int:
        """Make everything below `up_to_offset` (default: the log end offset) durable; returns the recovery point."""
        return await flush(self, up_to_offset)

    # -- truncating and deleting

    async def truncate_to(self, offset: int) -> bool:
        """Cut the log so that it ends at `offset`, or before the batch that holds it; False if it already ends there."""
        return await truncate_to(self, offset)

    async def truncate_fully_and_start_at(self, offset: int, log_start_offset: int | None = None) -> None:
        """Drop every record; the next append gets `offset`."""
        await truncate_fully_and_start_at(self, offset, log_start_offset)

    async def delete_segments(self, segments: Sequence[Segment]) -> int:
        """Delete these segments, which must be the oldest of the log, in order; returns how many were deleted."""
        return await deletion.delete_segments(self, segments)

    async def replace_segments(self, new: Iterable[Segment], old: Iterable[Segment]) -> None:
        """Replace `old` segments by the `new` ones that compaction wrote (`.cleaned`). A kill at any point loses nothing."""
        await deletion.replace_segments(self, list(new), list(old))

    @property
    def deletion_deadline_s(self) -> float | None:
        """When (monotonic) the next renamed files may be removed; None if there are none."""
        return min((pending.deadline_s for pending in self.pending_deletions), default=None)

    async def delete_due_files(self) -> int:
        """Remove the files of segments whose file.delete.delay.ms is over; returns how many segments."""
        return await deletion.delete_due_files(self)

    # -- moving, closing, failing

    def move_to(self, folder: str) -> None:
        """Use `folder`, to which the log's folder was renamed. No call may be waiting on a file by its name."""
        self.folder = folder
        self.snapshots.move_to(folder)
        self.epochs.move_to(folder)
        for segment in (*self.segments, *(pending.segment for pending in self.pending_deletions)):
            segment.move_to(folder)
        self.pending_deletions = [pending.in_folder(folder) for pending in self.pending_deletions]

    async def close(self) -> None:
        """Flush, write a producer snapshot, complete the indexes and close. Every later call raises `LogClosed`."""
        await close_all([self])

    def fail(self, error: OSError) -> LogDirectoryFailed:
        """Note that the disk has failed; returns the error to raise."""
        directory = self.folder.rpartition("/")[0]
        failure = LogDirectoryFailed(directory, error)
        if self.failure is None:
            self.failure = self.write_barrier = failure
            for segment in self.segments:
                segment.abandon()
        return failure

    def cannot_read(self, error: OSError) -> OttlaError:
        """The error to raise for a failed read: `OutOfDescriptors` if no file could be opened, else the disk has failed."""
        if is_out_of_descriptors(error):
            return OutOfDescriptors(f"{self.partition} cannot be read")
        return self.fail(error)

    def check_usable(self) -> None:
        if self.failure is not None:
            raise self.failure

    def check_writable(self) -> None:
        if self.write_barrier is not None:
            raise self.write_barrier


# Flushing a log to the device, in the order that recovery relies on.
#
# Before the recovery point passes an offset, all of this is durable: the records and indexes of every segment below it, the
# names of their files, the snapshots written at rolls, and the leader epochs that begin below it. A truncation during the flush
# keeps the recovery point where it is.

logger = logging.getLogger("ottla.log")


async def flush(log: PartitionLog, up_to_offset: int | None) -> int:
    """See `PartitionLog.flush`. One flush at a time: a second one must not count files that the first is still syncing."""
    async with log.flushing:
        if log.moved_to is None:
            return await _flush(log, up_to_offset)
    return await flush(log.moved_to, up_to_offset)  # the partition was moved: that log has the same records


async def _flush(log: PartitionLog, up_to_offset: int | None) -> int:
    log.check_usable()
    target = log.log_end_offset if up_to_offset is None else min(up_to_offset, log.log_end_offset)
    if log.flush_wanted_up_to is not None and log.flush_wanted_up_to <= target:
        log.flush_wanted_up_to = None
    is_dirty = log.names_unsynced or log.snapshots_unsynced or log.epochs.is_dirty_below(target)
    if target <= log.recovery_point and not is_dirty:
        return log.recovery_point
    truncations = log.truncations
    try:
        await _sync_all(log, target)
    except OSError as error:
        raise log.fail(error) from error
    log.check_usable()
    if truncations == log.truncations:
        log.recovery_point = max(log.recovery_point, target)
        log.last_flush_s = log.clock.monotonic_s()
    return log.recovery_point


async def _sync_all(log: PartitionLog, target: int) -> None:
    # Minus 1: if the recovery point is a segment's end, that segment's indexes were completed by the roll and need a sync too.
    for segment in log.segments.between(max(0, log.recovery_point - 1), target):
        if segment not in log.segments:
            continue  # deleted during an await
        await segment.sync()
        if segment is not log.segments.active:
            segment.release_indexes()
    while log.snapshots_unsynced:
        offset = log.snapshots_unsynced[0]
        if offset in log.snapshots.offsets:
            await log.snapshots.sync(offset)
        log.snapshots_unsynced.remove(offset)
    if log.names_unsynced:
        log.names_unsynced = False  # before the await: a roll during it sets this again
        try:
            await log.disk.sync_directory(log.folder)
        except BaseException:  # also when cancelled: the names are not durable
            log.names_unsynced = True
            raise
    if log.epochs.is_dirty_below(target):
        await log.epochs.flush()


# Cutting records off a log's end.
#
# A follower truncates when its leader has other records. A kill at any point leaves no gap: the segments above are renamed
# first, highest base offset first; then the last remaining segment is cut. In memory the log ends at the new offset at once.
# Appends are refused until the files have followed.
#
# The producer state is rebuilt separately, from the newest snapshot left and the records after it, and then swapped in.


async def truncate_to(log: PartitionLog, offset: int) -> bool:
    """See `PartitionLog.truncate_to`."""
    if offset < 0:
        raise BrokenInvariant(f"{log.partition} cannot be truncated to offset {offset}")
    async with log.reshaping:
        log.check_writable()
        if offset >= log.log_end_offset:
            # An epoch may have begun here without a single record, and another leader may have won since.
            log.epochs.truncate_from_end(log.log_end_offset)
            await _flush_epochs(log)
            return False
        if offset < log.segments.first.base_offset:
            await _restart_at(log, offset, offset)
            return True
        await _cut(log, offset)
        return True


async def truncate_fully_and_start_at(log: PartitionLog, offset: int, log_start_offset: int | None) -> None:
    """See `PartitionLog.truncate_fully_and_start_at`."""
    async with log.reshaping:
        log.check_writable()
        await _restart_at(log, offset, offset if log_start_offset is None else log_start_offset)


async def _cut(log: PartitionLog, offset: int) -> None:
    logger.info("%s: truncating from %d to %d", log.partition, log.log_end_offset, offset)
    log.write_barrier = BrokenInvariant(f"{log.partition} was written to while it was being truncated")
    try:
        above = [segment for segment in log.segments if segment.base_offset > offset]
        for segment in above:
            log.segments.remove(segment)
        active = log.segments.active
        place = active.find(offset)
        end_offset = offset if place is None else min(offset, place.base_offset)
        log.cut_place = (active.base_offset, active.size if place is None else place.position)
        _shorten(log, end_offset)
        log.log_start_offset = min(end_offset, log.log_start_offset)
        await retire(log, reversed(above))
        active.activate()
        active.truncate_to(offset, log.clock.now_ms())
        log.cut_place = None
        await active.sync()
        await _rebuild_producers(log)
        await log.epochs.flush()
    except OSError as error:
        raise log.fail(error) from error
    except CorruptFile as damage:
        log.failure = log.write_barrier = damage  # half cut: not usable before the next start has recovered it
        raise
    log.check_usable()
    log.write_barrier = None


def _shorten(log: PartitionLog, end_offset: int) -> None:
    log.truncations += 1
    log.log_end_offset = end_offset
    log.high_watermark = min(log.high_watermark, end_offset)
    log.recovery_point = min(log.recovery_point, end_offset)
    if log.gap_offset is not None and end_offset <= log.gap_offset:
        log.gap_offset = None
    log.epochs.truncate_from_end(end_offset)
    log.flush_wanted_up_to = None
    log.bound_places.clear()


async def _restart_at(log: PartitionLog, offset: int, log_start_offset: int) -> None:
    """Restart the log with one empty segment at `offset`; drop all others.

    Cuts the log first if it holds `offset`, so that the new segment's files do not collide with existing ones.
    """
    logger.info("%s: dropping all records up to %d; the log starts again at %d", log.partition, log.log_end_offset, offset)
    if log.segments.first.base_offset <= offset < log.log_end_offset:
        await _cut(log, offset)
    log.write_barrier = BrokenInvariant(f"{log.partition} was written to while it was being truncated")
    try:
        active = log.segments.active
        keep = active if active.base_offset == offset and not active.size else new_segment(log, offset)
        dropped = [segment for segment in log.segments if segment is not keep]
        for segment in dropped:
            log.segments.remove(segment)
        log.segments.add(keep)
        _shorten(log, offset)
        log.log_start_offset = log_start_offset
        log.high_watermark = offset
        log.epochs.clear()
        await retire(log, reversed(dropped))
        await _rebuild_producers(log)
        await log.epochs.flush()
        await log.disk.sync_directory(log.folder)
    except OSError as error:
        raise log.fail(error) from error
    log.check_usable()
    log.write_barrier = None


async def _rebuild_producers(log: PartitionLog) -> None:
    producers = await rebuild_producers(
        log.segments,
        log.snapshots,
        partition=str(log.partition),
        # Not from the log start offset, as Apache does: its checkpoint may be older, and a crash then makes records before it
        # visible again. An abort that does not cover them would show them to readers of committed records.
        log_start_offset=log.segments.first.base_offset,
        end_offset=log.log_end_offset,
        now_ms=log.clock.now_ms(),
        expiration_ms=log.options.producer_expiration_ms,
    )
    producers.on_high_watermark(log.high_watermark)
    log.producers = producers


async def _flush_epochs(log: PartitionLog) -> None:
    try:
        await log.epochs.flush()
    except OSError as error:
        raise log.fail(error) from error


# Closing logs for a clean shutdown: when it returns, everything that a clean start needs is durable.
#
# Logs are closed in pieces. What has to be synced of all logs of a piece is collected on the loop and synced in one call of a
# worker thread: the first sync writes out much of what the others wait for, and most logs of a large node have nothing to sync.
# A log that never had a record needs no sync at all: if a power loss takes its empty files, the next start makes them again.


class LogClosed(OttlaError):
    """The log was closed by its owner."""


class _Unsynced:
    """What has to be synced before logs count as closed."""

    def __init__(self) -> None:
        self.files: list[File] = []
        self.folders: list[str] = []
        self.epochs: dict[str, bytes] = {}
        self.snapshots: list[File] = []

    def add(self, log: PartitionLog) -> None:
        """Write what is still in memory, and note what is not durable yet."""
        end_offset = log.log_end_offset
        active = log.segments.active
        if not active.is_dormant:
            active.finish()
        if log.snapshots.write(log.producers) is not None:
            log.snapshots_unsynced.append(log.producers.map_end_offset)
        if end_offset == 0:
            return
        # Minus 1: if the recovery point is a segment's end, that segment's indexes were completed by the roll.
        for segment in log.segments.between(max(0, log.recovery_point - 1), end_offset):
            if segment is not active:
                self.files += segment.written_files()
        self.files += active.written_files()
        is_name_unsynced = log.names_unsynced
        for offset in log.snapshots_unsynced:
            if offset in log.snapshots.offsets:
                self.snapshots.append(log.snapshots.open(offset))
                is_name_unsynced = True
        if log.epochs.is_dirty_below(end_offset):
            self.epochs[log.epochs.path] = log.epochs.file_content()  # syncs the folder too
        elif is_name_unsynced:
            self.folders.append(log.folder)


async def close_all(logs: Sequence[PartitionLog]) -> None:
    """Close logs on one disk. Every later call on them raises `LogClosed`. `LogDirectoryFailed` if the disk fails."""
    if not logs:
        return
    disk, unsynced = logs[0].disk, _Unsynced()
    async with AsyncExitStack() as held:
        for log in logs:
            await held.enter_async_context(log.reshaping)
            await held.enter_async_context(log.flushing)
        try:
            for log in logs:
                log.check_usable()
                log.write_barrier = _closed(log)
                unsynced.add(log)
            await disk.sync_all(unsynced.files + unsynced.snapshots, unsynced.folders)
            if unsynced.epochs:
                await disk.replace_files(unsynced.epochs)
            for log in logs:
                log.check_usable()
                log.recovery_point = log.log_end_offset
                for segment in log.segments:
                    segment.close()
        except OSError as error:
            failures = [log.fail(error) for log in logs]
            raise failures[0] from error
        finally:
            for snapshot in unsynced.snapshots:
                snapshot.close()
        for log in logs:
            log.failure = log.write_barrier


def _closed(log: PartitionLog) -> LogClosed:
    return LogClosed(f"the log of {log.partition} is closed: load it again before writing to it")
