"""Durations and times as Kafka reads them."""

from typing import Any

import pytest

from ottla.cli.groups.reset_offsets import Scenario, find_target, parse_java_duration_ms

NOTHING: dict[str, Any] = dict.fromkeys(each.value for each in Scenario)


@pytest.mark.parametrize(
    ("text", "duration_ms"),
    [
        ("PT0S", 0),
        ("PT1H30M", 5_400_000),
        ("P7D", 604_800_000),
        ("P1DT2H3M4.5S", 93_784_500),
        ("pt5m", 300_000),
        ("PT-5M", -300_000),
        ("-PT5M", -300_000),
        ("PT-0.5S", -500),
        ("P", None),
        ("PT", None),
        ("P1DT", None),
        ("P1Y", None),
        ("1h", None),
    ],
)
def test_java_durations_are_parsed(text: str, duration_ms: int | None) -> None:
    assert parse_java_duration_ms(text) == duration_ms


@pytest.mark.parametrize(
    ("text", "time_ms"),
    [
        ("2020-01-01T00:00:00.000", 1_577_836_800_000),
        ("2020-01-01T00:00:00.000Z", 1_577_836_800_000),
        ("2020-01-01T00:00:00.000+02:00", 1_577_829_600_000),
        ("2020-01-01T00:00:00.000+0200", 1_577_829_600_000),
    ],
)
def test_times_without_a_zone_are_utc(text: str, time_ms: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    assert find_target(NOTHING | {"to_datetime": text}).number == time_ms


def test_zero_is_a_valid_number() -> None:
    assert find_target(NOTHING | {"to_offset": 0}) == (Scenario.OFFSET, 0, "")
    assert find_target(NOTHING | {"shift_by": 0}) == (Scenario.SHIFT, 0, "")
