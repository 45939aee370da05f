"""Strategies for partitions without a position: the timestamps that ListOffsets is asked for."""

import pytest

from ottla.client_core.consumer.reset import EARLIEST, LATEST, NO_RESET, Reset, reset_of
from ottla.config.client.build import consumer_settings
from ottla.errors import ConfigError

DAY_MS = 86_400_000


def test_the_ends_of_a_log_are_asked_for_by_kafkas_special_timestamps() -> None:
    assert EARLIEST.timestamp(5_000) == -2
    assert LATEST.timestamp(5_000) == -1


def test_a_duration_counts_back_from_now_but_not_before_1970() -> None:
    reset = Reset("by_duration", 2_000)
    assert reset.timestamp(5_000) == 3_000
    assert reset.timestamp(1_500) == 0  # -1 and -2 would mean the ends of the log


def test_a_time_is_asked_for_as_it_is() -> None:
    assert Reset("time", 1_234).timestamp(5_000) == 1_234
    assert Reset("time", 0).timestamp(5_000) == 0


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("earliest", EARLIEST),
        ("latest", LATEST),
        ("none", NO_RESET),
        ("by_duration:P1D", Reset("by_duration", DAY_MS)),
        ("by_duration:PT0S", Reset("by_duration", 0)),
    ],
)
def test_every_value_of_the_setting_names_its_strategy(value: str, expected: Reset) -> None:
    assert reset_of(consumer_settings("a:1", {"auto.offset.reset": value})) == expected


def test_a_consumer_without_the_setting_starts_at_the_end() -> None:
    assert reset_of(consumer_settings("a:1")) == LATEST


def test_an_unknown_value_is_refused_before_there_is_a_strategy() -> None:
    with pytest.raises(ConfigError, match=r"auto\.offset\.reset"):
        consumer_settings("a:1", {"auto.offset.reset": "newest"})


def test_texts_tell_how_far_back_only_where_it_counts() -> None:
    assert (str(EARLIEST), str(NO_RESET)) == ("earliest", "none")
    assert str(Reset("by_duration", 2_000)) == "by_duration:2000 ms"
