"""The lines of a test broker's log by their times."""

import time

from ottla.testing.logs import lines_since, stamp, stamped


def test_lines_of_a_traceback_have_the_time_of_the_line_above() -> None:
    lines = [
        "10:00:00.000 INFO a",
        "10:00:01.000 ERROR b",
        "Traceback (most recent call last):",
        "  File x",
        "10:00:02.000 INFO c",
    ]
    assert [at for at, _ in stamped(lines)] == ["10:00:00.000", *["10:00:01.000"] * 3, "10:00:02.000"]
    one_second = time.mktime((2026, 1, 1, 10, 0, 1, 0, 0, -1))
    assert stamp(one_second + 0.25) == "10:00:01.250"
    assert lines_since(lines, one_second) == lines[1:]
    assert lines_since(lines, one_second + 0.5) == lines[4:]


def test_midnight_is_after_the_evening() -> None:
    evening = time.mktime((2026, 1, 1, 23, 59, 0, 0, 0, -1))
    lines = ["23:58:00.000 INFO a", "23:59:30.000 INFO b", "00:00:10.000 INFO c"]
    assert lines_since(lines, evening) == lines[1:]
    assert lines_since(lines, evening + 65) == lines[2:]
