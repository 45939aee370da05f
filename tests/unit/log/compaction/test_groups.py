"""Which segments are grouped into one."""

from hypothesis import given
from hypothesis import strategies as st

from ottla.log.compaction.plan import SegmentPlan, group_segments
from ottla.log.segments.offset_index import RELATIVE_OFFSET_MAX

MANY = 1 << 40


def bases(groups: list[list[SegmentPlan]]) -> list[list[int]]:
    return [[segment.base_offset for segment in group] for group in groups]


def plans(*segments: tuple[int, int]) -> list[SegmentPlan]:
    return [SegmentPlan(base, size, 8, 12) for base, size in segments]


def test_small_neighbours_are_grouped_up_to_the_segment_size() -> None:
    segments = plans((0, 40), (10, 40), (20, 40), (30, 20), (40, 200), (50, 1))
    assert bases(group_segments(segments, 100, MANY, 60)) == [[0, 10], [20, 30], [40], [50]]
    assert bases(group_segments(segments, 10**6, MANY, 60)) == [[0, 10, 20, 30, 40, 50]]
    assert bases(group_segments(segments, 1, MANY, 60)) == [[0], [10], [20], [30], [40], [50]]


def test_index_sizes_limit_a_group() -> None:
    segments = plans((0, 1), (10, 1), (20, 1), (30, 1))
    assert bases(group_segments(segments, MANY, 24, 60)) == [[0, 10], [20, 30]]


def test_a_group_spans_no_more_offsets_than_an_index_can_name() -> None:
    far = RELATIVE_OFFSET_MAX
    assert bases(group_segments(plans((0, 1), (10, 1)), MANY, MANY, far + 1)) == [[0, 10]]
    assert bases(group_segments(plans((0, 1), (10, 1)), MANY, MANY, far + 2)) == [[0], [10]]
    assert bases(group_segments(plans((0, 1), (10, 1), (far + 2, 1)), MANY, MANY, far + 9)) == [[0], [10, far + 2]]
    assert bases(group_segments(plans((0, 1), (far + 5, 0)), MANY, MANY, far + 9)) == [[0, far + 5]]


@given(st.lists(st.tuples(st.integers(1, 2**31), st.integers(0, 200))), st.integers(1, 500), st.integers(1, 100))
def test_nothing_is_left_out_and_no_limit_passed(steps: list[tuple[int, int]], size_max: int, index_max: int) -> None:
    segments, base = [], 0
    for step, size in steps:
        segments.append(SegmentPlan(base, size, size // 10, size // 8))
        base += step
    groups = group_segments(segments, size_max, index_max, base)
    assert [segment for group in groups for segment in group] == segments
    for number, group in enumerate(groups):
        following = groups[number + 1][0].base_offset if number + 1 < len(groups) else base
        if len(group) > 1:
            assert sum(segment.size_bytes for segment in group) <= size_max
            assert sum(segment.offset_index_bytes for segment in group) <= index_max
            assert group[-1].size_bytes == 0 or following - 1 - group[0].base_offset <= RELATIVE_OFFSET_MAX
