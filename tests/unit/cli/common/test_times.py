"""Times in all verbs: UTC without an offset, and printed times can be pasted back."""

import time
from collections.abc import Iterator

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.cli.common.times import parse_time_ms, show_time
from ottla.cli.consume.command import consume
from ottla.cli.get_offsets import get_offsets, parse_when
from ottla.cli.groups.reset_offsets import Scenario, find_target, reset_offsets

NOW_MS = 1_700_000_000_000


@pytest.fixture
def new_york(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine whose local time is not UTC."""
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def to_datetime_ms(text: str) -> int:
    return find_target(dict.fromkeys(each.value for each in Scenario) | {"to_datetime": text}).number


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
        ("30000d", 0),
        ("2023-11-14T22:13:20", NOW_MS),
        ("2023-11-14T22:13:20.007", NOW_MS + 7),
        ("2023-11-14 22:13:20", NOW_MS),
        ("2023-11-14", 1_699_920_000_000),
        ("2023-11-14T22:13:20Z", NOW_MS),
        ("2023-11-14T22:13:20.5+00:00", NOW_MS + 500),
        ("2023-11-14T23:13:20+01:00", NOW_MS),
        ("2023-11-14T23:13:20.123+0100", NOW_MS + 123),
        ("2023-11-14T17:13:20-05", NOW_MS),
        ("1969-12-31T23:59:59.999Z", 0),
    ],
)
@pytest.mark.usefixtures("new_york")
def test_times_without_an_offset_are_utc(text: str, expected: int) -> None:
    assert parse_time_ms(text, "--time", NOW_MS) == expected


@pytest.mark.parametrize("text", ["", "soon", "1x", "1h ago", "-5", "2023-13-01", "h", "1.5h", "0001-01-01T00:00+25:00"])
def test_text_that_is_not_a_time_is_refused(text: str) -> None:
    with pytest.raises(click.UsageError, match="--time does not understand"):
        parse_time_ms(text, "--time", NOW_MS)


@pytest.mark.parametrize("text", ["2023-11-14T22:13:20.000", "2023-11-14T22:13:20Z", "2023-11-14T23:13:20+0100", str(NOW_MS)])
@pytest.mark.usefixtures("new_york")
def test_all_options_read_a_text_as_the_same_instant(text: str) -> None:
    assert [parse_when(text), parse_time_ms(text, "--from-time"), to_datetime_ms(text)] == [NOW_MS] * 3


@given(st.integers(min_value=0, max_value=2**63 - 1))
def test_printed_times_are_read_back_as_the_same_time(timestamp_ms: int) -> None:
    shown = show_time(timestamp_ms)
    assert [parse_when(shown), parse_time_ms(shown, "--from-time"), to_datetime_ms(shown)] == [timestamp_ms] * 3


def test_times_are_printed_in_iso_8601() -> None:
    assert show_time(NOW_MS + 7) == "2023-11-14T22:13:20.007Z"
    assert show_time(-1) == "-"
    assert show_time(2**62) == str(2**62)


@pytest.mark.parametrize(
    ("command", "name"), [(get_offsets, "--time"), (consume, "--from-time"), (reset_offsets, "--to-datetime")]
)
def test_the_help_of_each_option_says_utc(command: click.Command, name: str) -> None:
    (option,) = (each for each in command.params if name in each.opts)
    assert isinstance(option, click.Option)
    assert "UTC unless it has an offset" in (option.help or "")
