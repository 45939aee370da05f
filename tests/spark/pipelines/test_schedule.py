"""Schedules as people write them."""

from __future__ import annotations

import pytest

from ottla.spark.pipelines.errors import PipelineError
from ottla.spark.pipelines.spec import Schedule, parse_schedule


@pytest.mark.parametrize(
    ("text", "expected", "shown"),
    [
        ("once", Schedule("once"), "once"),
        (" Continuous ", Schedule("continuous"), "continuous"),
        ("every 30s", Schedule("every", 30), "every 30s"),
        ("every 1.5 minutes", Schedule("every", 90), "every 90s"),
        ("every 2 hours", Schedule("every", 7200), "every 7200s"),
    ],
)
def test_schedule_is_parsed_and_shown(text: str, expected: Schedule, shown: str) -> None:
    assert parse_schedule(text) == expected
    assert str(expected) == shown


@pytest.mark.parametrize("text", ["", "hourly", "every", "every 5", "every 0s", "every 5 weeks", None])
def test_other_text_is_refused_with_an_example(text: object) -> None:
    with pytest.raises(PipelineError, match="it must be once, continuous, or every with a time, such as every 30s"):
        parse_schedule(text)


def test_triggers_are_those_of_spark() -> None:
    assert Schedule().trigger() == {"availableNow": True}
    assert Schedule("every", 1.5).trigger() == {"processingTime": "1500 milliseconds"}
    assert Schedule("continuous").trigger() == {"processingTime": "0 milliseconds"}
