"""Ranges of tasks."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from ottla import TopicPartition
from ottla.spark.source.plan import Delay, OffsetRange, limit_offsets, split_ranges

P0, P1, P2 = (TopicPartition("t", number) for number in range(3))


def test_partitions_without_records_have_no_range() -> None:
    assert split_ranges({P0: 3, P1: 7}, {P0: 9, P1: 7}) == [OffsetRange(P0, 3, 9)]


def test_large_partitions_are_cut_until_there_are_enough_ranges() -> None:
    found = split_ranges({P0: 0, P1: 0}, {P0: 900, P1: 100}, partitions_min=10)
    assert len(found) == 10
    assert [each for each in found if each.partition == P1] == [OffsetRange(P1, 0, 100)]
    assert max(map(len, found)) == 100


def test_ranges_hold_no_more_records_than_the_option_says() -> None:
    found = split_ranges({P0: 0}, {P0: 101}, records_per_task_max=25)
    assert len(found) == 5
    assert max(map(len, found)) <= 25


@given(
    st.dictionaries(st.integers(0, 5), st.tuples(st.integers(0, 99), st.integers(0, 5000)), max_size=6),
    st.none() | st.integers(1, 40),
    st.none() | st.integers(1, 3000),
)
def test_ranges_cover_everything_once(sizes: dict[int, tuple[int, int]], least: int | None, most: int | None) -> None:
    starts = {TopicPartition("t", number): first for number, (first, _) in sizes.items()}
    ends = {TopicPartition("t", number): first + count for number, (first, count) in sizes.items()}
    covered: dict[TopicPartition, int] = dict(starts)
    for each in split_ranges(starts, ends, least, most):
        assert each.first == covered[each.partition]
        assert len(each) > 0
        covered[each.partition] = each.end
    assert covered == ends


def test_planning_many_partitions_takes_time_in_proportion() -> None:
    """20,000 partitions took 40 s when every range was compared with every other."""
    count = 20_000
    partitions = [TopicPartition("orders", number) for number in range(count)]
    began_s = time.monotonic()
    assert len(split_ranges(dict.fromkeys(partitions, 0), dict.fromkeys(partitions, 10), count + 10)) == count
    assert time.monotonic() - began_s < 10


def test_a_limit_is_shared_out_by_size_and_starves_nobody() -> None:
    found = limit_offsets({P0: 10, P1: 0, P2: 5}, {P0: 910, P1: 100, P2: 6}, 100)
    assert found == {P0: 99, P1: 9, P2: 6}
    assert limit_offsets({P0: 0}, {P0: 50}, 100) == {P0: 50}


@given(
    st.dictionaries(st.integers(0, 9), st.tuples(st.integers(0, 50), st.integers(0, 10**6)), max_size=10), st.integers(1, 999)
)
def test_limited_batches_reach_the_end(sizes: dict[int, tuple[int, int]], limit: int) -> None:
    starts = {TopicPartition("t", number): first for number, (first, _) in sizes.items()}
    ends = {TopicPartition("t", number): first + count for number, (first, count) in sizes.items()}
    found = limit_offsets(starts, ends, limit)
    assert all(starts[each] <= found[each] <= ends[each] for each in ends)
    taken = sum(found[each] - starts[each] for each in ends)
    assert taken <= limit + len(ends)
    assert taken or starts == ends


def test_a_trigger_is_delayed_until_there_is_enough_or_time_is_up() -> None:
    delay = Delay(10, 1000)
    assert not delay.is_due_later({P0: 0}, {P0: 1}, 0)  # the first of a run
    assert delay.is_due_later({P0: 1}, {P0: 10}, 999)
    assert not delay.is_due_later({P0: 1}, {P0: 11}, 999)
    assert delay.is_due_later({P0: 11}, {P0: 12}, 1998)
    assert not delay.is_due_later({P0: 11}, {P0: 12}, 1999)
    assert not Delay(None, 0).is_due_later({P0: 0}, {P0: 0}, 0)
