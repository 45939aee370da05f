"""The sorted collection of segments, against plain filters."""

from hypothesis import given
from hypothesis import strategies as st

from ottla.config.topic import LogConfig
from ottla.log.segments.segment import Segment
from ottla.log.segments.segment_list import Segments
from ottla.sim.disk import MemoryDisk


def segment(disk: MemoryDisk, base_offset: int) -> Segment:
    return Segment.create(disk, "", base_offset, LogConfig(), now_ms=0)


@given(bases=st.sets(st.integers(0, 40), min_size=1, max_size=8), offset=st.integers(0, 45), end=st.integers(0, 45))
def test_looking_up_against_filters(bases: set[int], offset: int, end: int) -> None:
    disk = MemoryDisk()
    segments = Segments(segment(disk, base) for base in bases)
    ordered = sorted(bases)
    below = [base for base in ordered if base <= offset]
    assert segments.base_offsets == ordered
    assert segments.active.base_offset == ordered[-1]
    assert segments.first.base_offset == ordered[0]
    floor, above = segments.floor(offset), segments.above(offset)
    assert (floor.base_offset if floor else None) == (below[-1] if below else None)
    assert (above.base_offset if above else None) == next((base for base in ordered if base > offset), None)
    start = below[-1] if below else 0
    assert [each.base_offset for each in segments.all_from(offset)] == [base for base in ordered if base >= start]
    wanted = [base for base in ordered if start <= base < end] if offset < end else []
    assert [each.base_offset for each in segments.between(offset, end)] == wanted


def test_adding_and_taking_out() -> None:
    disk = MemoryDisk()
    segments = Segments([segment(disk, 0), segment(disk, 10)])
    last = segment(disk, 20)
    assert segments.add(last) is None
    assert segments.active is last
    other = segment(disk, 10)
    replaced = segments.add(other)
    assert replaced is not None
    assert replaced is not other
    assert other in segments
    assert replaced not in segments
    segments.remove(replaced)
    assert segments.base_offsets == [0, 10, 20], "another segment with that base offset stays"
    segments.remove(last)
    assert segments.active is other
    assert len(segments) == 2
