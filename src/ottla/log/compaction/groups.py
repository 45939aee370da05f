"""Which old segments become one new segment: compaction would else leave ever more, ever smaller ones.

Neighbours go together as long as their sizes, as they are now, fit into segment.bytes and segment.index.bytes, and the last
offset is at most 2^31 - 1 from the base offset, which is as far as an index can say.
"""

from collections.abc import Sequence

from ottla.log.compaction.plan import SegmentPlan
from ottla.log.segments.offset_index import RELATIVE_OFFSET_MAX


def group_segments(
    segments: Sequence[SegmentPlan], segment_bytes: int, segment_index_bytes: int, first_uncleanable_offset: int
) -> list[list[SegmentPlan]]:
    """The segments in groups, in order, none left out. A segment too large by itself is a group of its own."""
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
