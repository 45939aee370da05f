"""Timeouts of calls: what is taken, what is refused with a sentence, and what looks like milliseconds."""

from __future__ import annotations

import logging
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from math import inf, nan
from typing import Any

import pytest

from ottla.client_core import timeouts
from ottla.client_core.timeouts import seconds


@pytest.mark.parametrize(("given", "taken"), [(None, None), (0, 0.0), (1.5, 1.5), (3, 3.0), (Fraction(1, 2), 0.5), (inf, 1e8)])
def test_numbers_from_zero_on_and_none_are_taken(given: Any, taken: float | None) -> None:
    assert seconds("poll", given) == taken


@pytest.mark.parametrize("given", ["5", True, Decimal(1), b"", [1], object()])
def test_another_type_is_refused_with_what_is_expected(given: Any) -> None:
    with pytest.raises(TypeError, match=r"^poll\(timeout=.*\): a timeout is a number of seconds, or None$"):
        seconds("poll", given)


def test_a_timedelta_is_told_how_to_become_seconds() -> None:
    with pytest.raises(TypeError, match=r"or None; pass its total_seconds\(\)"):
        seconds("poll", timedelta(seconds=1))


@pytest.mark.parametrize("given", [-1, -0.001, nan])
def test_negative_numbers_and_nan_are_refused(given: float) -> None:
    with pytest.raises(ValueError, match=r"^commit\(timeout=.*\): a timeout is a number of seconds from 0 on, or None$"):
        seconds("commit", given)


def test_what_looks_like_milliseconds_is_warned_of_once_per_call(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timeouts, "_warned", set())
    with caplog.at_level(logging.WARNING, "ottla.client"):
        assert [seconds("poll", each) for each in (999.9, 1_000, 5_000, inf)] == [999.9, 1_000, 5_000, 1e8]
        seconds("flush", 3_000)
    assert [record.getMessage() for record in caplog.records] == [
        "poll(timeout=1000) waits for up to 17 minutes, because timeouts are in seconds. If milliseconds were meant, pass 1",
        "flush(timeout=3000) waits for up to 50 minutes, because timeouts are in seconds. If milliseconds were meant, pass 3",
    ]
