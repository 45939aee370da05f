"""Java's date patterns."""

import time
from datetime import datetime

import click
import pytest
from ottla.cli.perf.date_format import KAFKAS, DateFormat

MOMENT_S = datetime(2026, 3, 4, 15, 6, 7, 89_000).timestamp()


@pytest.mark.parametrize(
    ("pattern", "shown"),
    [
        (KAFKAS, "2026-03-04 15:06:07:089"),
        ("yy/M/d h:m:s", "26/3/4 3:6:7"),
        ("yyyy-MM-dd'T'HH:mm", "2026-03-04T15:06"),
        ("HH 'o''clock'", "15 o'clock"),
        ("EEE, dd MMM yyyy", "Wed, 04 Mar 2026"),
        ("EEEE MMMM a", "Wednesday March PM"),
        ("D u kk KK", "63 3 15 03"),
        ("z", time.strftime("%Z", time.localtime(MOMENT_S))),
    ],
)
def test_pattern_is_shown_as_java_shows_it(pattern: str, shown: str) -> None:
    assert DateFormat(pattern).show(MOMENT_S) == shown


@pytest.mark.parametrize(("pattern", "fault"), [("yyyy-RR", "R is not one of the letters"), ("HH 'o", "has no end")])
def test_pattern_that_is_not_understood_is_refused(pattern: str, fault: str) -> None:
    with pytest.raises(click.UsageError, match=fault):
        DateFormat(pattern)
