"""The settings of one partition log, as an immutable snapshot that hot paths read as plain attributes.

`LogConfig(...)` takes any values, also ones that a topic may not have (tests need small segments). `with_settings` parses
texts and checks each against its rule. `validate_topic_settings` checks a topic's creation or change before anything is
stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from ottla.config.topic_keys import DAY_MS, HOUR_MS, MINUTE_MS, SUBJECT_STRATEGIES, TOPIC_KEYS
from ottla.config.values import LONG_MAX, InvalidConfig


@dataclass(frozen=True, slots=True)
class LogConfig:
    """The settings of a partition log. Attributes are the topic settings' names with `_` for `.`."""

    cleanup_policy: tuple[str, ...] = ("delete",)
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_type: str = "producer"
    compression_zstd_level: int = 3
    confluent_key_schema_validation: bool = False
    confluent_key_subject_name_strategy: str = SUBJECT_STRATEGIES[0]
    confluent_value_schema_validation: bool = False
    confluent_value_subject_name_strategy: str = SUBJECT_STRATEGIES[0]
    delete_retention_ms: int = DAY_MS
    file_delete_delay_ms: int = MINUTE_MS
    flush_messages: int = LONG_MAX
    flush_ms: int = LONG_MAX
    follower_replication_throttled_replicas: tuple[str, ...] = ()
    index_interval_bytes: int = 4096
    internal_segment_bytes: int | None = None
    leader_replication_throttled_replicas: tuple[str, ...] = ()
    local_retention_bytes: int = -2
    local_retention_ms: int = -2
    max_compaction_lag_ms: int = LONG_MAX
    max_message_bytes: int = 1048588
    message_timestamp_after_max_ms: int = HOUR_MS
    message_timestamp_before_max_ms: int = LONG_MAX
    message_timestamp_type: str = "CreateTime"
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    min_insync_replicas: int = 1
    preallocate: bool = False
    remote_log_copy_disable: bool = False
    remote_log_delete_on_disable: bool = False
    remote_storage_enable: bool = False
    retention_bytes: int = -1
    retention_ms: int = 7 * DAY_MS
    segment_bytes: int = 1 << 30
    segment_index_bytes: int = 10 << 20
    segment_jitter_ms: int = 0
    segment_ms: int = 7 * DAY_MS
    unclean_leader_election_enable: bool = False

    checks_schemas: bool = field(init=False)
    """Whether the schema ids of keys or values are checked before records are appended."""
    compact: bool = field(init=False)
    """Whether cleanup.policy has `compact`."""
    delete: bool = field(init=False)
    """Whether cleanup.policy has `delete`."""
    is_append_time: bool = field(init=False)
    """Whether records get the broker's time instead of the producer's."""
    segment_age_max_ms: int = field(init=False)
    """The age at which a segment is rolled: segment.ms, or max.compaction.lag.ms if that is less and the topic is compacted."""

    def __post_init__(self) -> None:
        derive = object.__setattr__  # the class is frozen; these five follow from the fields above
        derive(self, "checks_schemas", self.confluent_key_schema_validation or self.confluent_value_schema_validation)
        derive(self, "compact", "compact" in self.cleanup_policy)
        derive(self, "delete", "delete" in self.cleanup_policy)
        derive(self, "is_append_time", self.message_timestamp_type == "LogAppendTime")
        shortened = self.compact and self.max_compaction_lag_ms > 0
        derive(self, "segment_age_max_ms", min(self.segment_ms, self.max_compaction_lag_ms) if shortened else self.segment_ms)
        if self.internal_segment_bytes is not None:
            derive(self, "segment_bytes", self.internal_segment_bytes)

    def to_json(self) -> dict[str, object]:
        """This snapshot as a JSON object for a helper process; `from_json` reads it back."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.init}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> LogConfig:
        parsed: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
        return cls(**parsed)

    def with_settings(self, settings: Mapping[str, str]) -> LogConfig:
        """This snapshot with `settings` (topic setting name → text) applied.

        Unknown names are ignored, because a newer Kafka may have stored some. Raises `InvalidConfig` for a value that breaks
        its rule.
        """
        changes: dict[str, Any] = {
            TOPIC_KEYS[name].attribute: value for name, value in TOPIC_KEYS.parse_known(settings).items()
        }
        return replace(self, **changes) if changes else self


def validate_topic_settings(settings: Mapping[str, str], defaults: LogConfig | None = None) -> LogConfig:
    """The `LogConfig` that `settings` give. Raises `InvalidConfig` if a topic may not have them."""
    TOPIC_KEYS.require_known(settings)
    config = (defaults or LogConfig()).with_settings(settings)
    if config.min_compaction_lag_ms > config.max_compaction_lag_ms:
        raise InvalidConfig(
            "min.compaction.lag.ms",
            f"min.compaction.lag.ms={config.min_compaction_lag_ms} is more than max.compaction.lag.ms="
            f"{config.max_compaction_lag_ms}: lower the first or raise the second",
        )
    if config.remote_storage_enable:
        raise InvalidConfig(
            "remote.storage.enable", "remote.storage.enable=true: there is no remote storage to keep segments in"
        )
    return config
