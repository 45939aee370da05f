"""Records that are due at a rate."""

from hypothesis import given
from hypothesis import strategies as st
from ottla.cli.perf.pace import PAUSE_S_MIN, Pace


def test_negative_rate_has_no_limit() -> None:
    assert Pace(-1, 0.0).due(10**9, 0.0) is None


def test_records_become_due_one_after_the_other() -> None:
    pace = Pace(5, 100.0)
    assert [pace.due(0, 100.0), pace.due(1, 100.0), pace.due(1, 100.21), pace.due(2, 101.01)] == [1, 0, 1, 4]
    assert pace.pause_s(1, 100.05) == 100.2 - 100.05
    assert pace.pause_s(1, 100.5) == PAUSE_S_MIN


@given(st.floats(0.5, 1e6), st.floats(0, 100), st.integers(0, 1000))
def test_after_the_pause_a_record_is_due(rate: float, start_s: float, sent: int) -> None:
    pace = Pace(rate, start_s)
    now_s = start_s
    now_s += pace.pause_s(sent, now_s)
    due = pace.due(sent, now_s + 1e-6)
    assert due is not None
    assert due >= 1
