"""Flushing a log to the device, in the order that recovery relies on.

Before the recovery point passes an offset, all of this is durable: the records and indexes of every segment below it, the names
of their files, the snapshots written at rolls, and the leader epochs that begin below it. A truncation during the flush keeps
the recovery point where it is.
"""

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.log.partition_log import PartitionLog

logger = logging.getLogger("ottla.log")


async def flush(log: "PartitionLog", up_to_offset: int | None) -> int:
    """See `PartitionLog.flush`. One flush at a time: a second one must not count files that the first is still syncing."""
    async with log.flushing:
        if log.moved_to is None:
            return await _flush(log, up_to_offset)
    return await flush(log.moved_to, up_to_offset)  # the partition was moved: that log has the same records


async def _flush(log: "PartitionLog", up_to_offset: int | None) -> int:
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


async def _sync_all(log: "PartitionLog", target: int) -> None:
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
