"""Which old segments become one new segment. Without grouping, compaction would leave more and more small segments.

Neighbours are grouped as long as their current sizes fit into segment.bytes and segment.index.bytes, and the last offset is at
most 2^31 - 1 above the base offset: an index stores relative offsets as int32.
"""

from collections.abc import Sequence

from ottla.log.compaction.plan import SegmentPlan
from ottla.log.segments.offset_index import RELATIVE_OFFSET_MAX


def group_segments(
    segments: Sequence[SegmentPlan], segment_bytes: int, segment_index_bytes: int, first_uncleanable_offset: int
) -> list[list[SegmentPlan]]:
    """All segments in groups, in order. A segment that is too large by itself is its own group."""
    groups: list[list[SegmentPlan]] = []
    size = offset_index_size = time_index_size = 0
    for number, segment in enumerate(segments):
        following = segments[number + 1].base_offset if number + 1 < len(segments) else first_uncleanable_offset
        size += segment.size_bytes
        offset_index_size += segment.offset_index_bytes
        time_index_size += segment.time_index_bytes
        fits = (
            bool(groups)
            and size <= segment_bytes
            and offset_index_size <= segment_index_bytes
            and time_index_size <= segment_index_bytes
            and (not segment.size_bytes or following - 1 - groups[-1][0].base_offset <= RELATIVE_OFFSET_MAX)
        )
        if fits:
            groups[-1].append(segment)
        else:
            groups.append([segment])
            size = segment.size_bytes
            offset_index_size, time_index_size = segment.offset_index_bytes, segment.time_index_bytes
    return groups
