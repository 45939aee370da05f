"""The node's side of compaction: chooses a log, runs a pass, swaps the new segments in, writes the checkpoint.

A pass over a large log runs in a helper process; over a small one it runs on the event loop, in slices. The log keeps serving:
its old segments are read until `PartitionLog.replace_segments` replaces them, group by group. The checkpoint is written when
all groups are swapped in; a pass killed before that has lost nothing and is repeated.

Callers that truncate a log, delete its segments or remove it do so inside `async with compactor.paused(partition)`: a running
pass is abandoned between two swaps, and no new one begins inside. After a truncation, call `truncated`.

A log with damaged files is listed in `uncleanable` and skipped from then on; the others are still compacted. A batch that is
undamaged but cannot be unpacked stays as it is, and a log line names it once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.env import Clock, Disk, HelperDied, Helpers
from ottla.env.uninterrupted import uninterrupted
from ottla.errors import BrokenInvariant, CorruptFile, LogDirectoryFailed, OttlaError
from ottla.errors.texts import counted
from ottla.ids import TopicPartition
from ottla.log.compaction.cleaner import MODULE, CleaningPass, NeedsHelper
from ottla.log.compaction.plan import CleanedGroup, CleanerSettings, CompactionPlan, CompactionStats, LastRecord, SegmentPlan
from ottla.log.directories.checkpoint import OffsetCheckpoint
from ottla.log.names import CLEANED_SUFFIX, CLEANER_CHECKPOINT
from ottla.log.partition_log import PartitionLog
from ottla.log.segments.deletion import SegmentsChanged
from ottla.log.segments.offset_index import ENTRY_SIZE as OFFSET_ENTRY_BYTES
from ottla.log.segments.segment import Segment
from ottla.log.segments.sparse_index import CorruptIndex
from ottla.log.segments.time_index import ENTRY_SIZE as TIME_ENTRY_BYTES

if TYPE_CHECKING:
    from ottla.log.partition_log import PartitionLog


logger = logging.getLogger("ottla.log")

FILES_PER_PASS = 24
"""File descriptors a pass may need: pipes to a helper process, or the files read and written on the loop."""

INLINE_BYTES_MAX = 1 << 20
INLINE_RECORDS_MAX = 10_000
"""Up to this size a log is compacted on the loop: starting a helper would take as long (docs/decisions/0004)."""
INLINE_UNPACKED_BYTES_MAX = 1 << 20
"""A log with a batch that unpacks to more is left to a helper."""


class Abandoned(OttlaError):
    """The pass was abandoned, because its log is about to be truncated, deleted or moved."""


class _Pass:
    """A running pass. It also serves as the `HelperWorld` of a pass on the loop."""

    def __init__(self, log: PartitionLog, disk: Disk, clock: Clock) -> None:
        self.log = log
        self.disk = disk
        self.clock = clock
        self.truncations = log.truncations
        self.helper: asyncio.Task[dict[str, object]] | None = None
        self.is_abandoned = False
        self.ended = asyncio.Event()

    def progress(self, report: dict[str, object]) -> None:
        pass  # a pass on the loop yields its groups directly

    async def pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        self.check()

    def check(self) -> None:
        if self.is_abandoned or self.truncations != self.log.truncations:
            raise Abandoned(f"the compaction of {self.log.partition} was abandoned: the log is about to change")

    async def abandon(self) -> None:
        """Ask the pass to stop between two steps, and wait until it has."""
        self.is_abandoned = True
        if self.helper is not None:
            self.helper.cancel()
        await self.ended.wait()


class Compactor:
    """Compacts the logs of one node, on its event loop. Several `run_once` may run at a time, each on another log."""

    def __init__(self, disk: Disk, clock: Clock, helpers: Helpers, settings: CleanerSettings | None = None) -> None:
        self._disk = disk
        self._clock = clock
        self._helpers = helpers
        self.settings = settings if settings is not None else CleanerSettings()
        self.inline_bytes_max = INLINE_BYTES_MAX
        self.uncleanable: dict[TopicPartition, str] = {}
        """Logs that are skipped, and why."""
        self.passes = self.bytes_read = self.bytes_written = 0
        """Totals since the start: completed passes, and the bytes they read and wrote."""
        self._passes: dict[TopicPartition, _Pass] = {}
        self._pauses: dict[TopicPartition, int] = {}
        self._with_large_batches: set[TopicPartition] = set()
        """Logs that only a helper compacts, however small their files are."""
        self._offsets: dict[str, dict[TopicPartition, int]] = {}
        self._writing = asyncio.Lock()

    # Choosing

    def choose(self, logs: Iterable[PartitionLog]) -> Candidate | None:
        """The log to compact next; None if none is due."""
        now_ms = self._clock.now_ms()
        busy = self._passes.keys() | self._pauses.keys() | self.uncleanable.keys()
        candidates = []
        for log in logs:
            if not log.config.compact or log.failure is not None or log.partition in busy:
                continue
            try:
                checkpoint = self.checkpoint_of(log)
                if checkpoint is None and len(log.segments) == 1:
                    continue  # only an active segment, as most logs: skipped early, since every log is looked at every time
                candidates.append(candidate_of(log, checkpoint, now_ms))
            except OSError as error:
                raise log.fail(error) from error
            except CorruptFile as damage:
                self._give_up(log, damage)
        for candidate in candidates:
            if candidate.checkpoint_is_wrong:  # replaced: once the log has grown it would look right
                self._offsets_of(_directory(candidate.log))[candidate.log.partition] = candidate.first_dirty_offset
        return dirtiest(candidates)

    def _give_up(self, log: PartitionLog, reason: OttlaError) -> None:
        self.uncleanable[log.partition] = str(reason)
        logger.error("%s is not compacted until the node is restarted: %s", log.partition, reason)

    async def run_once(self, logs: Mapping[TopicPartition, PartitionLog]) -> CompactionStats | None:
        """Compact the dirtiest of `logs`; None if none was due, or if the pass was abandoned."""
        candidate = self.choose(logs.values())
        if candidate is None or not self._disk.can_open(FILES_PER_PASS):
            return None  # too many open files: the pass waits
        return await self.compact(candidate)

    async def compact(self, candidate: Candidate) -> CompactionStats | None:
        """Run one pass over a log; None if it was abandoned or the log is damaged. `LogDirectoryFailed` if the disk fails."""
        log = candidate.log
        work = self._passes[log.partition] = _Pass(log, self._disk, self._clock)
        try:
            # The map must hold durable records only: else a power loss could take the newer record after the older is gone.
            await log.flush(candidate.first_uncleanable_offset)
            plan = plan_for(candidate, self.settings, self._clock.now_ms())
            stats = await self._run(work, plan)
            work.check()
            await self._write_checkpoint(log, stats.end_offset)
        except (Abandoned, SegmentsChanged, HelperDied, NeedsHelper) as reason:
            if isinstance(reason, NeedsHelper):
                self._with_large_batches.add(log.partition)
            logger.info("%s", reason)
            await self._remove_leftovers(log)
            return None
        except (LogDirectoryFailed, BrokenInvariant):
            raise
        except OSError as error:
            raise log.fail(error) from error
        except OttlaError as error:
            self._give_up(log, error)
            await self._remove_leftovers(log)
            return None
        finally:
            del self._passes[log.partition]
            work.ended.set()
        if stats.first_unreadable is not None:
            offset, why = stats.first_unreadable
            logger.warning(
                "the compaction of %s left %s as it is; the first begins at offset %d: %s. A consumer that stops there can "
                "only seek past it",
                log.partition,
                counted(stats.batches_unreadable, "unreadable batch", "unreadable batches"),
                offset,
                why,
            )
        self.passes += 1
        self.bytes_read += stats.bytes_read
        self.bytes_written += stats.bytes_written
        logger.info("compacted %s up to offset %d: %s", log.partition, stats.end_offset, stats)
        return stats

    # Working

    async def _run(self, work: _Pass, plan: CompactionPlan) -> CompactionStats:
        is_small = plan.size_bytes <= self.inline_bytes_max and plan.records_max <= INLINE_RECORDS_MAX
        if not is_small or work.log.partition in self._with_large_batches:
            return await self._run_in_helper(work, plan)

        cleaning = CleaningPass(plan, work, INLINE_UNPACKED_BYTES_MAX)
        async with aclosing(cleaning.run()) as groups:
            async for group in groups:
                await self._swap(work, group)
        return cleaning.stats

    async def _run_in_helper(self, work: _Pass, plan: CompactionPlan) -> CompactionStats:
        """Swap each group in as soon as the helper reports it, while the helper works on the next."""
        reports: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        work.helper = asyncio.ensure_future(self._helpers.run(MODULE, plan.to_json(), reports.put_nowait))
        work.helper.add_done_callback(lambda _: reports.put_nowait(None))
        try:
            while (report := await reports.get()) is not None:
                await self._swap(work, CleanedGroup(**report))
            result: dict[str, Any] = work.helper.result()
        except asyncio.CancelledError:
            if work.helper.cancelled() and work.is_abandoned:
                work.check()
            raise
        finally:
            if not work.helper.done():
                work.helper.cancel()
                await asyncio.wait([work.helper])
            if not work.helper.cancelled():
                work.helper.exception()  # marks it as retrieved: a swap that failed first is what is raised
        return CompactionStats(**result)

    async def _swap(self, work: _Pass, group: CleanedGroup) -> None:
        """Swap a new segment in. Not interruptible: a cancelled caller waits until the swap is done."""
        work.check()
        log = work.log
        old = [segment for base in group.old_base_offsets if (segment := log.segments.at(base)) is not None]
        if len(old) != len(group.old_base_offsets):
            raise SegmentsChanged(f"segments of {log.partition} were deleted while they were compacted")
        new = Segment(self._disk, log.folder, group.base_offset, log.config, now_ms=self._clock.now_ms(), state=CLEANED_SUFFIX)
        swap = asyncio.ensure_future(log.replace_segments([new], old))
        try:
            await uninterrupted(swap)
        except asyncio.CancelledError:
            await asyncio.wait([swap])
            swap.exception()  # marks it as retrieved: a failed directory is reported by the log itself
            raise

    async def _remove_leftovers(self, log: PartitionLog) -> None:
        if log.failure is not None:
            return
        try:
            for name in self._disk.list_directory(log.folder):
                if name.endswith(CLEANED_SUFFIX):
                    await self._disk.remove(f"{log.folder}/{name}")
        except FileNotFoundError:
            pass  # the whole folder is gone
        except OSError as error:
            raise log.fail(error) from error

    # Pausing

    @asynccontextmanager
    async def paused(self, partition: TopicPartition) -> AsyncIterator[None]:
        """Abandon a running pass over the log of `partition`, and begin none while inside."""
        self._pauses[partition] = self._pauses.get(partition, 0) + 1
        try:
            if (work := self._passes.get(partition)) is not None:
                await work.abandon()
            yield
        finally:
            self._pauses[partition] -= 1
            if not self._pauses[partition]:
                del self._pauses[partition]

    # Checkpoints

    def checkpoint_of(self, log: PartitionLog) -> int | None:
        """Where the last pass over `log` ended; None if there was none."""
        return self._offsets_of(_directory(log)).get(log.partition)

    async def truncated(self, log: PartitionLog) -> None:
        """Note that the log was truncated: offsets from its new end on are dirty again."""
        end = log.segments.active.base_offset
        if (self.checkpoint_of(log) or 0) > end:
            await self._write_checkpoint(log, end)

    async def forget(self, directory: str, partitions: Iterable[TopicPartition]) -> None:
        """Drop the checkpoint entries of `partitions`, which are no longer in `directory`."""
        is_news = False
        for partition in partitions:
            self.uncleanable.pop(partition, None)
            self._with_large_batches.discard(partition)
            is_news |= self._offsets_of(directory).pop(partition, None) is not None
        if is_news:
            await self._write(directory)

    async def moved(self, partition: TopicPartition, source: str, target: str) -> None:
        """Move the checkpoint entry of `partition`, whose log was moved from directory `source` to `target`."""
        offset = self._offsets_of(source).pop(partition, None)
        if offset is not None:
            self._offsets_of(target)[partition] = offset
        elif self._offsets_of(target).pop(partition, None) is None:
            return
        for directory in (target, source):
            try:
                await self._write(directory)
            except OSError as error:
                raise LogDirectoryFailed(directory, error) from error

    async def _write_checkpoint(self, log: PartitionLog, offset: int) -> None:
        directory = _directory(log)
        self._offsets_of(directory)[log.partition] = offset
        try:
            await self._write(directory)
        except OSError as error:
            raise log.fail(error) from error

    async def _write(self, directory: str) -> None:
        async with self._writing:
            await self._checkpoint_in(directory).write(self._offsets_of(directory))

    def _offsets_of(self, directory: str) -> dict[TopicPartition, int]:
        offsets = self._offsets.get(directory)
        if offsets is None:
            try:
                offsets, damage = self._checkpoint_in(directory).read_or_forget()
            except OSError as error:
                raise LogDirectoryFailed(directory, error) from error
            if damage is not None:
                logger.warning("compaction starts over in %s: %s", directory, damage)
            self._offsets[directory] = offsets
        return offsets

    def _checkpoint_in(self, directory: str) -> OffsetCheckpoint:
        return OffsetCheckpoint(self._disk, f"{directory}/{CLEANER_CHECKPOINT}")


def _directory(log: PartitionLog) -> str:
    return log.folder.rpartition("/")[0]


# Which log is compacted next, and which part of it.
#
# A log's dirty part begins where the last pass ended (cleaner-offset-checkpoint). It can be cleaned, in whole segments, up to
# the first of: the active segment, the last stable offset, the first segment with a record younger than min.compaction.lag.ms.
# A log is due if its cleanable share exceeds min.cleanable.dirty.ratio, or if its oldest dirty record is older than
# max.compaction.lag.ms. Among those due, the one with the largest share comes first.


class Candidate(NamedTuple):
    """A log that could be compacted."""

    log: PartitionLog
    first_dirty_offset: int
    first_uncleanable_offset: int
    """The base offset of the first segment that may not be cleaned."""
    clean_bytes: int
    cleanable_bytes: int
    overdue_ms: int
    """How far the oldest dirty record is past max.compaction.lag.ms; 0 if it is not."""
    checkpoint_is_wrong: bool
    """Whether the checkpoint has an offset outside the log."""

    @property
    def dirty_ratio(self) -> float:
        total = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / total if total else 0.0

    @property
    def is_due(self) -> bool:
        if self.overdue_ms > 0 and self.cleanable_bytes > 0:
            return True
        return self.dirty_ratio > self.log.config.min_cleanable_dirty_ratio


def candidate_of(log: PartitionLog, checkpoint: int | None, now_ms: int) -> Candidate:
    """How dirty `log` is. `checkpoint` is where its last pass ended; None: there was none."""
    first_dirty = log.log_start_offset if checkpoint is None else checkpoint
    is_wrong = not log.log_start_offset <= first_dirty <= log.log_end_offset
    if is_wrong:
        first_dirty = log.log_start_offset
    limit = max(first_dirty, _first_uncleanable(log, first_dirty, now_ms))
    first_uncleanable = next(iter(_closed_from(log, limit)), log.segments.active).base_offset
    cleanable = log.segments.between(min(first_dirty, first_uncleanable), first_uncleanable)
    return Candidate(
        log,
        first_dirty,
        first_uncleanable,
        clean_bytes=sum(segment.size for segment in log.segments if segment.base_offset < first_dirty),
        cleanable_bytes=sum(segment.size for segment in cleanable),
        overdue_ms=_overdue_ms(log, first_dirty, now_ms),
        checkpoint_is_wrong=is_wrong,
    )


def _closed_from(log: PartitionLog, offset: int) -> list[Segment]:
    """The segments from the one that holds `offset` up to, not including, the active one."""
    return log.segments.between(offset, log.segments.active.base_offset)


def _first_uncleanable(log: PartitionLog, first_dirty: int, now_ms: int) -> int:
    limit = min(log.last_stable_offset, log.segments.active.base_offset)
    lag_ms = log.config.min_compaction_lag_ms
    if lag_ms > 0:
        for segment in _closed_from(log, first_dirty):
            if segment.largest_timestamp > now_ms - lag_ms:
                return min(limit, segment.base_offset)
    return limit


def _overdue_ms(log: PartitionLog, first_dirty: int, now_ms: int) -> int:
    lag_ms = max(log.config.max_compaction_lag_ms, 0)
    if lag_ms >= now_ms:
        return 0
    timestamps = (segment.first_timestamp for segment in _closed_from(log, first_dirty))
    oldest = min((timestamp for timestamp in timestamps if timestamp > 0), default=None)
    if oldest is None:
        return 0
    return max(0, now_ms - lag_ms - oldest)


def dirtiest(candidates: Iterable[Candidate]) -> Candidate | None:
    """The candidate to compact next; None if none is due."""
    return max((candidate for candidate in candidates if candidate.is_due), key=lambda due: due.dirty_ratio, default=None)


def plan_for(candidate: Candidate, settings: CleanerSettings, now_ms: int) -> CompactionPlan:
    """The plan of a pass over the candidate."""
    log = candidate.log
    config = log.config
    segments = log.segments.between(0, candidate.first_uncleanable_offset)
    first_offset = segments[0].base_offset if segments else 0
    limit = settings.io_max_bytes_per_second
    return CompactionPlan(
        folder=log.folder,
        segments=tuple(_segment_plan(segment) for segment in segments),
        first_dirty_offset=candidate.first_dirty_offset,
        first_uncleanable_offset=candidate.first_uncleanable_offset,
        now_ms=now_ms,
        delete_retention_ms=config.delete_retention_ms,
        segment_bytes=config.segment_bytes,
        segment_index_bytes=config.segment_index_bytes,
        index_interval_bytes=config.index_interval_bytes,
        aborted=tuple(log.aborted_transactions(first_offset, candidate.first_uncleanable_offset)),
        producers={key: LastRecord(entry.last_offset, entry.epoch) for key, entry in log.producers.producers.items()},
        dedupe_buffer_bytes=settings.dedupe_buffer_bytes,
        dedupe_load_factor=settings.dedupe_load_factor,
        bytes_per_second=limit if limit != float("inf") else None,
    )


def _segment_plan(segment: Segment) -> SegmentPlan:
    try:
        segment.offset_index.open()
        segment.time_index.open()
    except CorruptIndex as damage:
        segment.rebuild_indexes(damage)
    offset_entries, time_entries = segment.offset_index.count, segment.time_index.count
    segment.release_indexes()  # a log may have thousands of segments
    return SegmentPlan(segment.base_offset, segment.size, offset_entries * OFFSET_ENTRY_BYTES, time_entries * TIME_ENTRY_BYTES)
