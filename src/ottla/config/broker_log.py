"""The settings of a broker's logs, as an immutable snapshot built from the texts of `server.properties`."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ottla.config.broker_keys import BROKER_KEYS
from ottla.config.topic import LogConfig
from ottla.config.topic_keys import TOPIC_KEYS, TOPIC_SYNONYMS
from ottla.config.values import InvalidConfig, Value

_DEDUPE_BYTES_MIN = 1 << 20


@dataclass(frozen=True, slots=True)
class BrokerLogConfig:
    """The broker settings that `ottla.log` uses. Attributes are the settings' names with `_` for `.`."""

    log_dirs: tuple[str, ...] = ("/tmp/kafka-logs",)
    metadata_log_dir: str = "/tmp/kafka-logs"
    """The first of log.dirs unless set."""
    topic_defaults: LogConfig = field(default_factory=LogConfig)
    """The settings of a topic that sets none itself."""
    num_recovery_threads_per_data_dir: int = 2
    log_retention_check_interval_ms: int = 300_000
    log_flush_scheduler_interval_ms: int = 2**63 - 1
    log_flush_offset_checkpoint_interval_ms: int = 60_000
    log_flush_start_offset_checkpoint_interval_ms: int = 60_000
    log_dir_failure_timeout_ms: int = 30_000
    log_cleaner_enable: bool = True
    log_cleaner_threads: int = 1
    log_cleaner_dedupe_buffer_size: int = 128 << 20
    log_cleaner_io_buffer_size: int = 512 << 10
    log_cleaner_io_buffer_load_factor: float = 0.9
    log_cleaner_io_max_bytes_per_second: float = 1.7976931348623157e308
    log_cleaner_backoff_ms: int = 15_000
    ottla_max_producer_ids: int = 200_000
    producer_id_expiration_ms: int = 86_400_000
    transaction_max_timeout_ms: int = 900_000
    transaction_partition_verification_enable: bool = True

    @classmethod
    def from_settings(cls, settings: Mapping[str, str]) -> BrokerLogConfig:
        """From setting name → text; other settings are ignored. Raises `InvalidConfig` for a bad value."""
        parsed = BROKER_KEYS.parse_known(settings)
        log_dirs = _log_dirs(parsed)
        fields: dict[str, Any] = {
            attribute: value
            for name, value in parsed.items()
            if (attribute := name.replace(".", "_")) in cls.__dataclass_fields__
        }
        metadata_log_dir = posixpath.normpath(str(parsed.get("metadata.log.dir") or log_dirs[0]))
        fields |= {"log_dirs": log_dirs, "metadata_log_dir": metadata_log_dir, "topic_defaults": _topic_defaults(parsed)}
        config = cls(**fields)
        if (
            config.log_cleaner_threads
            and config.log_cleaner_dedupe_buffer_size // config.log_cleaner_threads <= _DEDUPE_BYTES_MIN
        ):
            raise InvalidConfig(
                "log.cleaner.dedupe.buffer.size",
                f"log.cleaner.dedupe.buffer.size={config.log_cleaner_dedupe_buffer_size} leaves 1 MiB or less for each of "
                f"log.cleaner.threads={config.log_cleaner_threads}: raise the first or lower the second",
            )
        return config


def _log_dirs(parsed: Mapping[str, Value]) -> tuple[str, ...]:
    name = "log.dirs" if parsed.get("log.dirs") else "log.dir"
    directories = parsed[name] if name in parsed else BROKER_KEYS.default_of(name)
    if not isinstance(directories, tuple) or not directories or "" in directories:
        raise InvalidConfig(name, f"{name} must name at least one directory, and no empty one")
    directories = tuple(posixpath.normpath(directory) for directory in directories)
    if len(set(directories)) != len(directories):
        raise InvalidConfig(name, f"{name}={','.join(directories)} names a directory twice: each may come once")
    return directories


def _topic_defaults(parsed: Mapping[str, Value]) -> LogConfig:
    """The broker's defaults for topic settings. Of several synonyms the first with a value wins: ms, minutes, hours."""
    changes: dict[str, Any] = {}
    for topic_name, synonyms in TOPIC_SYNONYMS.items():
        for name, factor in synonyms:
            value = parsed[name] if name in parsed else BROKER_KEYS.default_of(name)
            if value is None:
                continue
            if isinstance(value, int) and not isinstance(value, bool):
                value *= factor
            if topic_name == "retention.ms" and isinstance(value, int):
                value = _retention(name, value)
            if (must := _broken_rule(topic_name, value)) is not None:
                raise InvalidConfig(name, f"{name}={parsed.get(name)}: {must}")
            changes[TOPIC_KEYS[topic_name].attribute] = value
            break
    return replace(LogConfig(), **changes)


def _retention(name: str, value: int) -> int:
    if value == 0:
        raise InvalidConfig(name, f"{name}=0 would delete everything at once: use -1 for no limit, or at least 1")
    return max(value, -1)


def _broken_rule(topic_name: str, value: Value) -> str | None:
    rule = TOPIC_KEYS[topic_name].rule
    return rule(value) if rule is not None else None
