"""Values of settings: durations, and texts and values that lead back to each other."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.config.values import (
    ConfigType,
    InvalidConfig,
    format_value,
    offset_reset,
    offset_reset_or_none,
    parse_duration_ms,
    parse_iso_duration_ms,
    parse_value,
)


@pytest.mark.parametrize(
    ("text", "duration_ms"),
    [("90s", 90_000), ("1h30m", 5_400_000), ("250ms", 250), ("7d", 604_800_000), ("0s", 0), ("1s1s", 2000)],
)
def test_durations(text: str, duration_ms: int) -> None:
    assert parse_duration_ms(text) == duration_ms


@pytest.mark.parametrize("text", ["", "5", "s", "1.5s", "-1s", "1 s", "1y", "1H", "5ms!", "9" * 5000 + "s"])
def test_what_is_no_duration(text: str) -> None:
    assert parse_duration_ms(text) is None


@pytest.mark.parametrize(
    ("text", "duration_ms"),
    [("PT1H", 3_600_000), ("P1DT2H3M4.5S", 93_784_500), ("pt1m", 60_000), ("PT0S", 0), ("PT1.0009S", 1000), ("PT1.S", 1000)],
)
def test_iso_durations(text: str, duration_ms: int) -> None:
    assert parse_iso_duration_ms(text) == duration_ms


@pytest.mark.parametrize("text", ["", "P", "PT", "1h", "-PT1H", "PT-1H", "P1H", "P1Y", "PT1M1H"])
def test_what_is_no_iso_duration(text: str) -> None:
    assert parse_iso_duration_ms(text) is None


@given(st.integers(0, 999), st.integers(0, 99), st.integers(0, 99), st.integers(0, 99), st.integers(0, 999))
def test_the_two_notations_agree(days: int, hours: int, minutes: int, seconds: int, ms: int) -> None:
    short = parse_duration_ms(f"{days}d{hours}h{minutes}m{seconds}s{ms}ms")
    assert short == parse_iso_duration_ms(f"P{days}DT{hours}H{minutes}M{seconds}.{ms:03}S")


def test_offset_resets() -> None:
    assert offset_reset("none") is not None
    assert offset_reset_or_none("none") is None
    assert offset_reset_or_none("by_duration:PT1H") is None
    assert "smallest is earliest here" in (offset_reset_or_none("smallest") or "")


@given(st.integers(-(2**31), 2**31 - 1))
def test_whole_numbers_lead_back(number: int) -> None:
    assert parse_value("x", ConfigType.INT, format_value(number) or "") == number


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_decimal_numbers_lead_back(number: float) -> None:
    assert parse_value("x", ConfigType.DOUBLE, format_value(number) or "") == number


@given(st.booleans())
def test_booleans_lead_back(value: bool) -> None:
    assert parse_value("x", ConfigType.BOOLEAN, format_value(value) or "") is value


@given(st.lists(st.from_regex(r"[a-z0-9.:]+", fullmatch=True)).map(tuple))
def test_lists_lead_back(value: tuple[str, ...]) -> None:
    assert parse_value("x", ConfigType.LIST, format_value(value) or "") == value


@pytest.mark.parametrize(
    ("type_", "text"),
    [(ConfigType.INT, "2147483648"), (ConfigType.SHORT, "32768"), (ConfigType.BOOLEAN, "yes"), (ConfigType.DOUBLE, "NaN")],
)
def test_values_that_cannot_be(type_: ConfigType, text: str) -> None:
    with pytest.raises(InvalidConfig, match=r"^x="):
        parse_value("x", type_, text)
