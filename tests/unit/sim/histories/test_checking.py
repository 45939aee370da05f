"""All checks in one run, and how a report reads."""

from typing import Any

import pytest

from ottla.sim.histories.checks import check


def test_a_report_counts_what_was_checked(story: Any) -> None:
    one = story.history.transaction("p", "one")
    story.stored("a", 0, one)
    story.commit(one)
    story.read((0, "a"))
    report = check(story.history, is_read_whole=True)
    assert (report.sends, report.stored, report.seen, report.transactions) == (1, 1, 1, 1)
    assert report.lag_s_max == 3.0
    report.raise_findings()


def test_findings_are_raised_and_the_first_ones_shown(story: Any) -> None:
    for number in range(25):
        story.stored(f"v{number}", number)
    story.read((24, "v24"))
    report = check(story.history, is_read_whole=True)
    with pytest.raises(AssertionError, match="lost write: p was told that 'v0' is at t-0 offset 0") as raised:
        report.raise_findings()
    assert "and 4 more findings" in str(raised.value)
