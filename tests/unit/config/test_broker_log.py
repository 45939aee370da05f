"""The broker's log settings: which synonym wins, units, and invalid values."""

import pytest

from ottla.config.broker_log import BrokerLogConfig
from ottla.config.values import InvalidConfig

HOUR_MS = 3_600_000


def retention_ms(**settings: str) -> int:
    return BrokerLogConfig.from_settings({k.replace("_", "."): v for k, v in settings.items()}).topic_defaults.retention_ms


def test_defaults_are_the_same_with_and_without_texts() -> None:
    assert BrokerLogConfig.from_settings({}) == BrokerLogConfig()


def test_retention_ms_wins_over_minutes_over_hours() -> None:
    assert retention_ms() == 168 * HOUR_MS
    assert retention_ms(log_retention_hours="1") == HOUR_MS
    assert retention_ms(log_retention_hours="1", log_retention_minutes="3") == 180_000
    assert retention_ms(log_retention_hours="1", log_retention_minutes="3", log_retention_ms="7") == 7


@pytest.mark.parametrize("text", ["-1", "-5"])
def test_negative_retention_is_none(text: str) -> None:
    assert retention_ms(log_retention_hours=text) == -1


def test_retention_zero_is_refused() -> None:
    with pytest.raises(InvalidConfig, match=r"log\.retention\.minutes=0 would delete everything"):
        retention_ms(log_retention_minutes="0")


def test_roll_ms_wins_over_hours() -> None:
    config = BrokerLogConfig.from_settings({"log.roll.hours": "2", "log.roll.jitter.hours": "1"}).topic_defaults
    assert (config.segment_ms, config.segment_jitter_ms) == (2 * HOUR_MS, HOUR_MS)
    config = BrokerLogConfig.from_settings(
        {"log.roll.hours": "2", "log.roll.ms": "5", "log.roll.jitter.ms": "1"}
    ).topic_defaults
    assert (config.segment_ms, config.segment_jitter_ms) == (5, 1)


def test_roll_ms_zero_is_refused_by_its_own_name() -> None:
    with pytest.raises(InvalidConfig, match=r"^log\.roll\.ms=0: must be at least 1"):
        BrokerLogConfig.from_settings({"log.roll.ms": "0"})


def test_flush_interval_falls_back_to_the_scheduler() -> None:
    assert BrokerLogConfig.from_settings({"log.flush.scheduler.interval.ms": "9"}).topic_defaults.flush_ms == 9
    both = {"log.flush.scheduler.interval.ms": "9", "log.flush.interval.ms": "4"}
    assert BrokerLogConfig.from_settings(both).topic_defaults.flush_ms == 4


def test_log_dirs_wins_over_log_dir() -> None:
    assert BrokerLogConfig.from_settings({"log.dir": "/a"}).log_dirs == ("/a",)
    config = BrokerLogConfig.from_settings({"log.dir": "/a", "log.dirs": "/b, /c"})
    assert config.log_dirs == ("/b", "/c")
    assert config.metadata_log_dir == "/b"
    assert BrokerLogConfig.from_settings({"log.dirs": "/b", "metadata.log.dir": "/m"}).metadata_log_dir == "/m"


@pytest.mark.parametrize("text", ["/a,,/b", "/a,/a/"])
def test_log_dirs_must_be_different_and_named(text: str) -> None:
    with pytest.raises(InvalidConfig, match=r"^log\.dirs"):
        BrokerLogConfig.from_settings({"log.dirs": text})


def test_cleaner_needs_memory() -> None:
    with pytest.raises(InvalidConfig, match=r"log\.cleaner\.threads=2"):
        BrokerLogConfig.from_settings({"log.cleaner.threads": "2", "log.cleaner.dedupe.buffer.size": "2097152"})


def test_other_settings_are_ignored() -> None:
    config = BrokerLogConfig.from_settings({"listeners": "PLAINTEXT://:9092", "producer.id.expiration.ms": "5"})
    assert config.producer_id_expiration_ms == 5
