"""Rolling a log: completes the active segment, starts a new one, and writes a producer snapshot. The owner flushes later.

The snapshot is named by the new segment's base offset. It lets recovery begin with that segment instead of the log start.
"""

from typing import TYPE_CHECKING

from ottla.errors import BrokenInvariant, OutOfDescriptors
from ottla.log.segments.segment import Segment

if TYPE_CHECKING:
    from ottla.log.partition_log import PartitionLog


FILES_PER_SEGMENT = 5
"""File descriptors a roll needs: the log file, three indexes and a producer snapshot."""


def roll(log: "PartitionLog", expected_next_offset: int = 0) -> Segment:
    """Start a segment at the log end offset, or at `expected_next_offset` if that is later; an empty active one is kept.

    `OutOfDescriptors`, with nothing changed, if too many files are open: the caller then keeps appending to the active one.
    """
    log.check_writable()
    base_offset = max(expected_next_offset, log.log_end_offset)
    active = log.segments.active
    if active.size == 0 and active.base_offset == base_offset:
        return active
    if base_offset <= active.base_offset:
        raise BrokenInvariant(f"{log.partition}: a segment at {base_offset} cannot follow one at {active.base_offset}")
    if not log.disk.can_open(FILES_PER_SEGMENT):
        raise OutOfDescriptors(f"{log.partition} cannot begin a segment")
    try:
        active.finish()
        segment = new_segment(log, base_offset)
        log.segments.add(segment)
        log.producers.advance(base_offset)
        if log.snapshots.write(log.producers) is not None:
            log.snapshots_unsynced.append(base_offset)
    except OSError as error:
        raise log.fail(error) from error
    log.flush_wanted_up_to = base_offset
    return segment


def new_segment(log: "PartitionLog", base_offset: int) -> Segment:
    """Create an empty segment. The caller adds it to the log's segments."""
    config = log.config
    jitter_ms = min(config.segment_jitter_ms, config.segment_ms)
    log.names_unsynced = True
    return Segment.create(
        log.disk,
        log.folder,
        base_offset,
        config,
        now_ms=log.clock.now_ms(),
        roll_jitter_ms=log.options.jitter(jitter_ms) if jitter_ms > 0 else 0,
    )
