"""Deleting segments from the start of a log, and replacing segments by those that compaction wrote.

Files are not removed at once. They are renamed to `.deleted`, so that a restart does not load them, and removed after
file.delete.delay.ms. File ranges that readers hold stay readable. The change in memory happens in one step without an await, so
readers never see half of it.

A replacement survives a kill at any point (`folder_repair.py` is the other half). The new segments are renamed from `.cleaned`
to `.swap`, highest base offset first. While any `.cleaned` is left, a start drops them all; after that, a start completes the
swap. Then the old files are renamed to `.deleted`, and the new ones lose their `.swap`.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ottla.errors import BrokenInvariant, OttlaError, OutOfDescriptors
from ottla.errors.texts import counted
from ottla.log.names import CLEANED_SUFFIX, DELETED_SUFFIX, SWAP_SUFFIX
from ottla.log.segments.roll import roll
from ottla.log.segments.segment import Segment

if TYPE_CHECKING:
    from ottla.log.partition_log import PartitionLog

logger = logging.getLogger("ottla.log")


class PendingDeletion(NamedTuple):
    """Files that are renamed but not yet removed."""

    deadline_s: float
    segment: Segment
    snapshot_path: str | None

    def in_folder(self, folder: str) -> "PendingDeletion":
        """The same, once the folder that holds the files has been renamed to `folder`."""
        if self.snapshot_path is None:
            return self
        return self._replace(snapshot_path=f"{folder}/{self.snapshot_path.rpartition('/')[2]}")


class SegmentsChanged(OttlaError):
    """Segments that were being compacted are no longer in the log: the result must be discarded."""


async def delete_segments(log: "PartitionLog", segments: Sequence[Segment]) -> int:
    """See `PartitionLog.delete_segments`."""
    return await delete_chosen(log, lambda: segments)


async def delete_chosen(log: "PartitionLog", choose: Callable[[], Sequence[Segment]]) -> int:
    """`delete_segments`, but `choose` is called under the lock: compaction may have swapped segments while this waited."""
    async with log.reshaping:
        doomed = _take_out(log, choose())
        await retire(log, doomed)
    return len(doomed)


def _take_out(log: "PartitionLog", segments: Sequence[Segment]) -> list[Segment]:
    """Let the log begin after `segments`; returns those that were taken out of it."""
    log.check_writable()
    doomed = [segment for segment in segments if segment in log.segments]
    if not doomed:
        return []
    if doomed != list(log.segments)[: len(doomed)]:
        raise BrokenInvariant(f"{log.partition}: segments are deleted from the log's start on, none is left out")
    if doomed[-1] is log.segments.active:
        if doomed[-1].size == 0:
            doomed.pop()  # the active segment is empty already: no need for another
        else:
            try:
                roll(log)
            except OutOfDescriptors:
                doomed.pop()  # no files for a new active segment: this one is deleted another time
    if not doomed:
        return []
    above = log.segments.above(doomed[-1].base_offset)
    assert above is not None, "the active segment stays"
    if above.base_offset > log.high_watermark:
        raise BrokenInvariant(f"{log.partition}: segments up to {above.base_offset} reach past the high watermark")
    log.delete_records(above.base_offset)
    for segment in doomed:
        log.segments.remove(segment)
    log.bound_places.clear()
    logger.info(
        "%s: deleting %s, the log now starts at %d", log.partition, counted(len(doomed), "segment"), log.log_start_offset
    )
    return doomed


async def retire(log: "PartitionLog", segments: Iterable[Segment], keep_snapshots: frozenset[int] = frozenset()) -> None:
    """Rename the files of segments taken out of the log, and schedule their removal."""
    try:
        for segment in segments:
            await segment.change_state(DELETED_SUFFIX)
            snapshot_path = None
            if segment.base_offset not in keep_snapshots:
                snapshot_path = await log.snapshots.mark_deleted(segment.base_offset)
            deadline_s = log.clock.monotonic_s() + log.config.file_delete_delay_ms / 1000
            log.pending_deletions.append(PendingDeletion(deadline_s, segment, snapshot_path))
    except OSError as error:
        raise log.fail(error) from error


async def delete_due_files(log: "PartitionLog") -> int:
    """See `PartitionLog.delete_due_files`."""
    log.check_usable()
    now_s = log.clock.monotonic_s()
    due = [pending for pending in log.pending_deletions if pending.deadline_s <= now_s]
    log.pending_deletions = [pending for pending in log.pending_deletions if pending.deadline_s > now_s]
    try:
        for pending in due:
            await pending.segment.delete()
            if pending.snapshot_path is not None:
                await log.disk.remove(pending.snapshot_path)
    except OSError as error:
        raise log.fail(error) from error
    return len(due)


async def replace_segments(log: "PartitionLog", new: list[Segment], old: list[Segment]) -> None:
    """See `PartitionLog.replace_segments`."""
    new = sorted(new, key=lambda segment: segment.base_offset)
    old = sorted(old, key=lambda segment: segment.base_offset)
    async with log.reshaping:
        log.check_writable()
        _check_replacement(log, new, old)
        try:
            for segment in new:
                segment.hold()  # `sync` skips indexes that are not open; a helper process may have written these
                segment.finish()
                await segment.sync()
            await log.disk.sync_directory(log.folder)
            for segment in reversed(new):
                await segment.change_state(SWAP_SUFFIX)
            log.check_usable()
            for segment in old:
                log.segments.remove(segment)
            for segment in new:
                log.segments.add(segment)
            log.replacements += 1
            log.bound_places.clear()
            await retire(log, old, frozenset(segment.base_offset for segment in new))
            for segment in new:
                await segment.change_state("")
                segment.release_held()
        except OSError as error:
            raise log.fail(error) from error


def _check_replacement(log: "PartitionLog", new: list[Segment], old: list[Segment]) -> None:
    if not new or not old:
        raise BrokenInvariant(f"{log.partition}: compaction replaces at least one segment by at least one")
    if any(segment not in log.segments for segment in old):
        raise SegmentsChanged(f"segments of {log.partition} were deleted or cut while they were compacted: compact it again")
    if any(segment.state != CLEANED_SUFFIX for segment in new):
        raise BrokenInvariant(f"{log.partition}: only segments named {CLEANED_SUFFIX} replace others")
    if old[-1] is log.segments.active:
        raise BrokenInvariant(f"{log.partition}: the active segment is never replaced")
    if new[0].base_offset != old[0].base_offset:
        raise BrokenInvariant(
            f"{log.partition}: segments from {old[0].base_offset} cannot be replaced by ones from {new[0].base_offset}"
        )
