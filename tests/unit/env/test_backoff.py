"""Waits between attempts: doubling, bounded, and spread by the jitter."""

from hypothesis import given
from hypothesis import strategies as st

from ottla.env.backoff import JITTER_PERCENT, Backoff


def waits(draw: int, count: int) -> list[int]:
    backoff = Backoff(100, 1000, lambda limit: min(draw, limit - 1))
    return [backoff.failed() for _ in range(count)]


def test_waits_double_up_to_the_limit() -> None:
    assert waits(1_000, 6) == [100, 200, 400, 800, 1000, 1000]


def test_jitter_reaches_a_fifth_to_either_side() -> None:
    assert waits(0, 2) == [80, 160]
    assert waits(2_000, 2) == [120, 240]


def test_success_starts_over() -> None:
    backoff = Backoff(100, 1000, lambda limit: 1_000)
    assert [backoff.failed(), backoff.failed()] == [100, 200]
    backoff.succeeded()
    assert backoff.failed() == 100


@given(st.integers(0, 10_000), st.integers(0, 100_000), st.integers(1, 200), st.integers(0, 2_000))
def test_waits_stay_in_bounds(first_ms: int, max_ms: int, failures: int, draw: int) -> None:
    backoff = Backoff(first_ms, max_ms, lambda limit: draw % limit)
    for _ in range(failures):
        wait_ms = backoff.failed()
    limit_ms = max(first_ms, max_ms)
    assert 0 <= wait_ms <= limit_ms + limit_ms * JITTER_PERCENT // 100
