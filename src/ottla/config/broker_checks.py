"""Checks combinations of broker settings that contradict each other. Each error says why and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.config.values import InvalidConfig

if TYPE_CHECKING:
    from ottla.config.broker import BrokerConfig


def check_combinations(config: BrokerConfig) -> None:
    """Raise `InvalidConfig` for the first settings that contradict each other."""
    if 0 < config.queued_max_request_bytes < config.socket_request_max_bytes:
        raise InvalidConfig(
            "queued.max.request.bytes",
            f"queued.max.request.bytes={config.queued_max_request_bytes} has no room for one request of "
            f"socket.request.max.bytes={config.socket_request_max_bytes}: raise the first or lower the second",
        )
    if config.max_connections_per_ip == 0 and not config.max_connections_per_ip_overrides:
        raise InvalidConfig(
            "max.connections.per.ip",
            "max.connections.per.ip=0 would refuse every connection: set max.connections.per.ip.overrides for those who may",
        )
    _not_above(config, "replica.fetch.wait.max.ms", "replica.socket.timeout.ms", "fetches would time out while they wait")
    _not_above(
        config, "replica.fetch.wait.max.ms", "replica.lag.time.max.ms", "replicas would fall out of sync while they wait"
    )
    if 0 <= config.connections_max_idle_ms <= config.connection_failed_authentication_delay_ms:
        raise InvalidConfig(
            "connections.max.idle.ms",
            f"connections.max.idle.ms={config.connections_max_idle_ms} must be more than "
            f"connection.failed.authentication.delay.ms={config.connection_failed_authentication_delay_ms}: who fails to log "
            "in would never be told",
        )
    if config.controller_quorum_auto_join_enable and not config.is_controller:
        raise InvalidConfig(
            "controller.quorum.auto.join.enable",
            "controller.quorum.auto.join.enable is for controllers; this node is only a broker",
        )
    for name, port in (
        ("ottla.console.port", config.ottla_console_port),
        ("ottla.schema.registry.port", config.ottla_schema_registry_port),
    ):
        if port >= 0 and not config.is_broker:
            raise InvalidConfig(name, f"{name}={port} is for brokers; this node is only a controller")
    for directory in config.cordoned_log_dirs:
        if directory == "*" and len(config.cordoned_log_dirs) > 1:
            raise InvalidConfig("cordoned.log.dirs", "cordoned.log.dirs has * and others: * stands for all, alone")
        if directory != "*" and directory not in config.log.log_dirs:
            raise InvalidConfig(
                "cordoned.log.dirs",
                f"cordoned.log.dirs has {directory}, which log.dirs does not: only directories of this node count",
            )
    for url in config.confluent_schema_registry_url:
        if not url.startswith(("http://", "https://")) or "@" in url:
            raise InvalidConfig(
                "confluent.schema.registry.url",
                "confluent.schema.registry.url must be a comma-separated list of http://HOST:PORT; a login belongs into "
                "confluent.basic.auth.user.info",
            )
    _check_groups(config)
    topics = config.log.topic_defaults
    if topics.min_compaction_lag_ms > topics.max_compaction_lag_ms:
        raise InvalidConfig(
            "log.cleaner.min.compaction.lag.ms",
            f"log.cleaner.min.compaction.lag.ms={topics.min_compaction_lag_ms} is more than log.cleaner.max.compaction.lag.ms="
            f"{topics.max_compaction_lag_ms}: lower the first or raise the second",
        )


def _check_groups(config: BrokerConfig) -> None:
    if config.offsets_topic_compression_codec not in range(5):
        raise InvalidConfig(
            "offsets.topic.compression.codec",
            f"offsets.topic.compression.codec={config.offsets_topic_compression_codec} is none: 0 nothing, 1 gzip, 2 snappy, "
            "3 lz4, 4 zstd",
        )
    for what in ("heartbeat.interval", "session.timeout", "assignment.interval"):
        least, given, most = (f"group.consumer.{bound}{what}.ms" for bound in ("min.", "", "max."))
        _not_above(config, least, most, "no value would be allowed")
        _not_above(config, least, given, "the default would be refused")
        _not_above(config, given, most, "the default would be refused")
    if config.group_consumer_heartbeat_interval_ms >= config.group_consumer_session_timeout_ms:
        raise InvalidConfig(
            "group.consumer.heartbeat.interval.ms",
            f"group.consumer.heartbeat.interval.ms={config.group_consumer_heartbeat_interval_ms} must be less than "
            f"group.consumer.session.timeout.ms={config.group_consumer_session_timeout_ms}: members would expire",
        )


def _not_above(config: BrokerConfig, lower: str, upper: str, why: str) -> None:
    small, large = getattr(config, lower.replace(".", "_")), getattr(config, upper.replace(".", "_"))
    if small > large:
        raise InvalidConfig(lower, f"{lower}={small} is more than {upper}={large}: {why}; lower the first or raise the second")
