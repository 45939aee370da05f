"""How much a trigger takes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ottla import TopicPartition
from ottla.spark.source.plan import Delay, limit_offsets

P0, P1, P2 = (TopicPartition("t", number) for number in range(3))


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
