"""The settings that a consumer's machines read: the real settings have them all, with Kafka's defaults."""

import pytest
from tests.support.machines.consumer_cluster import settings as settings_of_tests

from ottla.client_core.consumer.settings import (
    EARLIEST,
    LATEST,
    NO_RESET,
    READ_COMMITTED,
    FetchSettings,
    OffsetSettings,
    Reset,
    isolation_code,
    reset_of,
)
from ottla.config.client.build import consumer_settings
from ottla.errors import ConfigError


def names_of(protocol: type) -> set[str]:
    return {name for name, value in vars(protocol).items() if isinstance(value, property)}


@pytest.mark.parametrize(("level", "code"), [("read_uncommitted", 0), ("read_committed", 1)])
def test_an_isolation_level_has_its_number_on_the_wire(level: str, code: int) -> None:
    assert isolation_code(consumer_settings("a:1", {"isolation.level": level})) == code


def test_a_consumer_reads_uncommitted_unless_it_says_otherwise() -> None:
    chosen = consumer_settings("a:1")
    assert chosen.isolation_level != READ_COMMITTED
    assert isolation_code(chosen) == 0


def test_a_level_in_other_case_is_refused_not_read_as_uncommitted() -> None:
    with pytest.raises(ConfigError, match=r"isolation\.level"):
        consumer_settings("a:1", {"isolation.level": "READ_COMMITTED"})


@pytest.mark.parametrize("protocol", [FetchSettings, OffsetSettings])
def test_a_consumers_settings_have_everything_that_machines_read(protocol: type) -> None:
    names = names_of(protocol)
    assert "retry_backoff_ms" in names
    chosen, tested = consumer_settings("a:1"), settings_of_tests()
    # The machines' tests run with these values: they must be the defaults that a consumer has.
    assert {name: getattr(chosen, name) for name in names} == {name: getattr(tested, name) for name in names}


# Strategies for partitions without a position: the timestamps that ListOffsets is asked for.

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
