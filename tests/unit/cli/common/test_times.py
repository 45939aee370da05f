"""Moments as people write them."""

import click
import pytest

from ottla.cli.common.times import parse_time_ms, show_time

NOW_MS = 1_700_000_000_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("1700000000123", 1_700_000_000_123),
        ("1h", NOW_MS - 3_600_000),
        ("1h30m", NOW_MS - 5_400_000),
        ("90s", NOW_MS - 90_000),
        ("250ms", NOW_MS - 250),
        ("7d", NOW_MS - 7 * 86_400_000),
        ("2023-11-14T22:13:20Z", NOW_MS),
        ("2023-11-14T22:13:20.5+00:00", NOW_MS + 500),
        ("2023-11-14T23:13:20+01:00", NOW_MS),
    ],
)
def test_moments(text: str, expected: int) -> None:
    assert parse_time_ms(text, "--time", NOW_MS) == expected


@pytest.mark.parametrize("text", ["", "soon", "1x", "1h ago", "-5", "2023-13-01", "h", "1.5h"])
def test_what_is_no_moment_is_refused(text: str) -> None:
    with pytest.raises(click.UsageError, match="--time does not understand"):
        parse_time_ms(text, "--time", NOW_MS)


def test_times_for_people() -> None:
    assert show_time(NOW_MS + 7) == "2023-11-14 22:13:20.007"
    assert show_time(-1) == "-"
    assert show_time(2**62) == str(2**62)
