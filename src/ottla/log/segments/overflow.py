"""Splitting a segment that spans more offsets than its indexes can name.

Kafka before 1.1 could write such segments. The parts are written as `.cleaned`, synced, and swapped in like the segments of a
compaction, so a kill at any point leaves either the old segment or all of the parts.
"""

from ottla.config.topic import LogConfig
from ottla.log.names import CLEANED_SUFFIX, DELETED_SUFFIX, SWAP_SUFFIX
from ottla.log.segments.offset_index import RELATIVE_OFFSET_MAX
from ottla.log.segments.scan import damage, headers
from ottla.log.segments.segment import Segment

COPY_CHUNK_BYTES = 1 << 20


async def split_overflowed(segment: Segment, config: LogConfig, now_ms: int) -> None:
    """Replace the files of `segment` by those of several segments. The caller must then reopen the log's segments.

    `CorruptFile` if its offsets do not rise: then the file is damaged, and this is not a segment of an old Kafka.
    """
    parts: list[tuple[int, int]] = []
    """(base offset, first position)"""
    next_offset = segment.base_offset
    for position, view in headers(segment.file, 0, segment.size):
        if view.base_offset < next_offset:
            raise damage(segment.file, position, f"offset {view.base_offset} comes where {next_offset} or more was due")
        next_offset = view.next_offset
        if not parts:
            parts.append((segment.base_offset, position))
        if view.last_offset - parts[-1][0] > RELATIVE_OFFSET_MAX:
            parts.append((view.base_offset, position))
    new = []
    for number, (base_offset, start) in enumerate(parts):
        end = parts[number + 1][1] if number + 1 < len(parts) else segment.size
        part = Segment.create(segment.disk, segment.folder, base_offset, config, now_ms=now_ms, state=CLEANED_SUFFIX)
        for position in range(start, end, COPY_CHUNK_BYTES):
            part.file.append(segment.file.read(position, min(COPY_CHUNK_BYTES, end - position)))
        part.rebuild_indexes()
        await part.sync()
        part.close()
        new.append(part)
    await segment.disk.sync_directory(segment.folder)
    for part in reversed(new):
        await part.change_state(SWAP_SUFFIX)
    await segment.change_state(DELETED_SUFFIX)
    for part in new:
        await part.change_state("")
