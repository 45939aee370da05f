"""Lines that clients can cause are logged once a minute, with the number of those left out."""

import logging

import pytest

from ottla.env.repeated_lines import WINDOW_S, RepeatedLines
from ottla.sim.world import ManualClock


def test_one_line_per_key_and_window(caplog: pytest.LogCaptureFixture) -> None:
    clock = ManualClock()
    lines = RepeatedLines(clock, logging.getLogger("ottla.test"))
    for number in range(1000):
        lines.log(logging.ERROR, "full", "no room for %d", number)
    lines.log(logging.WARNING, "other", "another thing")
    assert [record.getMessage() for record in caplog.records] == ["no room for 0", "another thing"]
    clock.advance(WINDOW_S * 1000)
    lines.log(logging.ERROR, "full", "no room for %d", 7)
    assert caplog.records[-1].getMessage() == "no room for 7 (999 such lines were left out since the last one)"
    clock.advance(WINDOW_S * 1000)
    lines.log(logging.ERROR, "full", "no room for %d", 8)
    assert caplog.records[-1].getMessage() == "no room for 8"
