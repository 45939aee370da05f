"""Waits between attempts."""

from hypothesis import given
from hypothesis import strategies as st

from ottla.link import backoff_ms


def test_waits_double_up_to_the_limit() -> None:
    assert [backoff_ms(failures, 100, 1000) for failures in range(7)] == [0, 100, 200, 400, 800, 1000, 1000]


@given(st.integers(1, 1000), st.integers(1, 10_000), st.integers(1, 100_000), st.floats(0, 1, exclude_max=True))
def test_waits_stay_within_their_spread(failures: int, first_ms: int, max_ms: int, chance: float) -> None:
    middle = backoff_ms(failures, first_ms, max_ms)
    assert 0.79 * middle - 1 <= backoff_ms(failures, first_ms, max_ms, chance) <= 1.21 * middle + 1
    assert middle <= max_ms
