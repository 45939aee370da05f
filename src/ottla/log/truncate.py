"""Cutting records off a log's end.

A follower truncates when its leader has other records. A kill at any point leaves no gap: the segments above are renamed first,
highest base offset first; then the last remaining segment is cut. In memory the log ends at the new offset at once. Appends are
refused until the files have followed.

The producer state is rebuilt separately, from the newest snapshot left and the records after it, and then swapped in.
"""

import logging
from typing import TYPE_CHECKING

from ottla.errors import BrokenInvariant, CorruptFile
from ottla.log.producers.producer_loading import rebuild_producers
from ottla.log.segments.deletion import retire
from ottla.log.segments.roll import new_segment

if TYPE_CHECKING:
    from ottla.log.partition_log import PartitionLog

logger = logging.getLogger("ottla.log")


async def truncate_to(log: "PartitionLog", offset: int) -> bool:
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


async def truncate_fully_and_start_at(log: "PartitionLog", offset: int, log_start_offset: int | None) -> None:
    """See `PartitionLog.truncate_fully_and_start_at`."""
    async with log.reshaping:
        log.check_writable()
        await _restart_at(log, offset, offset if log_start_offset is None else log_start_offset)


async def _cut(log: "PartitionLog", offset: int) -> None:
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


def _shorten(log: "PartitionLog", end_offset: int) -> None:
    log.truncations += 1
    log.log_end_offset = end_offset
    log.high_watermark = min(log.high_watermark, end_offset)
    log.recovery_point = min(log.recovery_point, end_offset)
    if log.gap_offset is not None and end_offset <= log.gap_offset:
        log.gap_offset = None
    log.epochs.truncate_from_end(end_offset)
    log.flush_wanted_up_to = None
    log.bound_places.clear()


async def _restart_at(log: "PartitionLog", offset: int, log_start_offset: int) -> None:
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


async def _rebuild_producers(log: "PartitionLog") -> None:
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


async def _flush_epochs(log: "PartitionLog") -> None:
    try:
        await log.epochs.flush()
    except OSError as error:
        raise log.fail(error) from error
