"""Topic settings: what Kafka accepts and refuses, and the resulting LogConfig."""

import dataclasses

import pytest

from ottla.config.topic import LogConfig, validate_topic_settings
from ottla.config.values import LONG_MAX, InvalidConfig

# Each was checked with Apache Kafka 4.3.0's own validation, which gave this value.
ACCEPTED = [
    ("cleanup.policy", "", ()),
    ("cleanup.policy", "compact, delete", ("compact", "delete")),
    ("segment.bytes", " 1048576 ", 1048576),
    ("segment.bytes", "+2000000", 2000000),
    ("retention.ms", "-1", -1),
    ("retention.bytes", "-7", -7),
    ("preallocate", "TRUE", True),
    ("preallocate", " true ", True),
    ("min.cleanable.dirty.ratio", "1e-1", 0.1),
    ("min.cleanable.dirty.ratio", ".5", 0.5),
    ("compression.gzip.level", "-1", -1),
    ("compression.gzip.level", "9", 9),
    ("compression.zstd.level", "-131072", -131072),
    ("compression.type", " gzip ", "gzip"),
    ("message.timestamp.type", "LogAppendTime", "LogAppendTime"),
    ("leader.replication.throttled.replicas", "*", ("*",)),
    ("leader.replication.throttled.replicas", "0:1,1:2", ("0:1", "1:2")),
    ("leader.replication.throttled.replicas", "0:1,0:1", ("0:1", "0:1")),
    ("leader.replication.throttled.replicas", "0:1,", ("0:1", "")),
    ("leader.replication.throttled.replicas", "", ()),
]
REFUSED = [
    ("cleanup.policy", "Compact"),
    ("cleanup.policy", "compact,"),
    ("segment.bytes", "1048575"),
    ("segment.bytes", "2147483648"),
    ("segment.bytes", "1e7"),
    ("segment.bytes", ""),
    ("segment.bytes", "1_000_000_0"),
    ("segment.bytes", "٣٣٣٣٣٣٣٣"),
    ("segment.bytes", "9" * 5000),
    ("retention.ms", "-2"),
    ("preallocate", "yes"),
    ("preallocate", ""),
    ("min.cleanable.dirty.ratio", "1.1"),
    ("compression.gzip.level", "0"),
    ("compression.lz4.level", "0"),
    ("compression.type", "GZIP"),
    ("compression.type", "none"),
    ("message.timestamp.type", "createtime"),
    ("leader.replication.throttled.replicas", "0:1,*"),
    ("leader.replication.throttled.replicas", "a:1"),
    ("leader.replication.throttled.replicas", "0:1:2"),
    ("leader.replication.throttled.replicas", "0:-1"),
    ("leader.replication.throttled.replicas", "none"),
    ("segment.index.bytes", "3"),
    ("segment.ms", "0"),
    ("max.compaction.lag.ms", "0"),
    ("flush.messages", "0"),
    ("local.retention.ms", "-3"),
]
# Apache Kafka accepts these; we refuse them on purpose.
REFUSED_BY_US = [("min.cleanable.dirty.ratio", "NaN"), ("min.cleanable.dirty.ratio", "0.5d")]


@pytest.mark.parametrize(("name", "text", "value"), ACCEPTED)
def test_accepts_as_kafka_does(name: str, text: str, value: object) -> None:
    config = validate_topic_settings({name: text})
    assert getattr(config, name.replace(".", "_")) == value


@pytest.mark.parametrize(("name", "text"), REFUSED + REFUSED_BY_US)
def test_refuses_and_says_what_it_must_be(name: str, text: str) -> None:
    with pytest.raises(InvalidConfig, match=f"^{name}=.*must be") as refused:
        validate_topic_settings({name: text})
    assert refused.value.name == name


def test_unknown_name_gets_a_hint() -> None:
    with pytest.raises(InvalidConfig, match=r"unknown topic setting retention\.msec; did you mean retention\.ms\?"):
        validate_topic_settings({"retention.msec": "1"})


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("log.retention.hours", "retention.ms"),
        ("log.roll.ms", "segment.ms"),
        ("log.index.size.max.bytes", "segment.index.bytes"),
    ],
)
def test_a_brokers_name_for_a_topic_setting_gets_the_topics_name(name: str, meant: str) -> None:
    with pytest.raises(InvalidConfig, match=rf"unknown topic setting {name}; did you mean {meant}\?"):
        validate_topic_settings({name: "1"})


def test_compaction_lags_must_not_cross() -> None:
    with pytest.raises(InvalidConfig, match=r"min\.compaction\.lag\.ms=10 is more than max\.compaction\.lag\.ms=5"):
        validate_topic_settings({"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"})


def test_stored_settings_of_a_newer_kafka_are_ignored() -> None:
    assert LogConfig().with_settings({"some.new.setting": "x"}) == LogConfig()


def test_settings_override_defaults() -> None:
    defaults = LogConfig(retention_ms=5, segment_ms=7)
    config = defaults.with_settings({"retention.ms": "9"})
    assert (config.retention_ms, config.segment_ms) == (9, 7)


@pytest.mark.parametrize(
    ("policy", "compact", "delete"),
    [("delete", False, True), ("compact", True, False), ("compact,delete", True, True), ("", False, False)],
)
def test_cleanup_policy_flags(policy: str, compact: bool, delete: bool) -> None:
    config = LogConfig().with_settings({"cleanup.policy": policy})
    assert (config.compact, config.delete) == (compact, delete)


def test_max_compaction_lag_shortens_segments_of_compacted_topics_only() -> None:
    settings = {"segment.ms": "100", "max.compaction.lag.ms": "30"}
    assert LogConfig().with_settings(settings).segment_age_max_ms == 100
    assert LogConfig().with_settings(settings | {"cleanup.policy": "compact"}).segment_age_max_ms == 30
    assert LogConfig().segment_age_max_ms == LogConfig().segment_ms


def test_internal_segment_bytes_wins_over_segment_bytes() -> None:
    config = LogConfig().with_settings({"segment.bytes": "2000000", "internal.segment.bytes": "100"})
    assert config.segment_bytes == 100
    assert config.with_settings({"retention.ms": "1"}).segment_bytes == 100


def test_tests_may_use_values_that_topics_may_not() -> None:
    config = LogConfig(segment_bytes=10, segment_index_bytes=0)
    assert config.with_settings({"flush.ms": "3"}).segment_bytes == 10


def test_a_snapshot_cannot_change() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        LogConfig().retention_ms = 1  # type: ignore[misc]  # that is the point


def test_append_time() -> None:
    assert LogConfig(message_timestamp_type="LogAppendTime").is_append_time
    assert not LogConfig().is_append_time
    assert LogConfig().flush_ms == LONG_MAX
