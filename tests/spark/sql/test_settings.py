"""SET and UNSET."""

from __future__ import annotations

import pytest

from ottla.spark.sql.errors import SqlError
from ottla.spark.sql.settings import Settings

CLIENT = {"bootstrap.servers": "h:1", "client.id": "me"}


def test_live_queries_begin_at_the_latest_record_unless_set() -> None:
    settings = Settings(CLIENT)
    assert settings.source("t", True)["startingOffsets"] == "latest"
    settings.set("AUTO.OFFSET.RESET", "Earliest")
    assert settings.source("t", True)["startingOffsets"] == "earliest"
    assert "startingOffsets" not in settings.source("t", False)
    settings.unset("auto.offset.reset")
    assert settings.source("t", True)["startingOffsets"] == "latest"


def test_batch_reads_everything_also_when_live_queries_begin_at_the_end() -> None:
    settings = Settings(CLIENT, {"startingOffsets": "latest"})
    assert "startingOffsets" not in settings.source("t", False)
    assert settings.starts_at(is_live=False) in ("earliest", "startingOffsets=latest")


def test_each_client_gets_the_settings_that_it_has() -> None:
    settings = Settings(CLIENT)
    settings.set("kafka.isolation.level", "read_committed")
    settings.set("kafka.linger.ms", "5")
    source, sink = settings.source("t", False), settings.sink("t")
    assert source["kafka.isolation.level"] == "read_committed"
    assert "kafka.linger.ms" not in source
    assert sink == {"kafka.bootstrap.servers": "h:1", "kafka.client.id": "me", "kafka.linger.ms": "5", "topic": "t"}


def test_options_of_the_source_are_settings() -> None:
    settings = Settings(CLIENT)
    assert settings.set("maxoffsetspertrigger", "7") == "maxOffsetsPerTrigger"
    assert settings.source("t", True)["maxOffsetsPerTrigger"] == "7"
    settings.set("endingOffsets", '{"orders": {"0": 5}}')
    assert "endingOffsets" not in settings.source("orders", True)


def test_settings_of_spark_are_kept_apart() -> None:
    settings = Settings(CLIENT)
    settings.set("spark.sql.shuffle.partitions", "3")
    assert settings.spark == {"spark.sql.shuffle.partitions": "3"}
    assert not any(name.startswith("spark") for name in settings.source("t", False))


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("auto.offset.reset", "begin", "it must be earliest or latest"),
        ("auto.offset.rest", "earliest", "did you mean auto.offset.reset?"),
        ("kafka.auto.offset.reset", "earliest", "write SET 'auto.offset.reset'"),
        ("kafka.isolation.levl", "x", "did you mean kafka.isolation.level?"),
        ("kafka.isolation.level", "none", "isolation.level"),
        ("bad.records", "ignore", "drop or fail"),
        ("maxOffsetsPerTrigger", "many", "a whole number"),
        ("startingOffsets", "somewhere", "startingOffsets is 'somewhere'"),
        ("color", "red", "is no setting"),
    ],
)
def test_wrong_setting_is_refused_and_changes_nothing(name: str, value: str, words: str) -> None:
    settings = Settings(CLIENT)
    with pytest.raises(SqlError) as raised:
        settings.set(name, value)
    assert words in str(raised.value)
    assert settings.values == {}


def test_unset_of_what_is_not_set_says_what_is() -> None:
    with pytest.raises(SqlError, match="nothing is set"):
        Settings(CLIENT).unset("auto.offset.reset")
