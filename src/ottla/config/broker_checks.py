"""Combinations of broker settings that cannot stand together, each with one sentence on why and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.config.values import InvalidConfig

if TYPE_CHECKING:
    from ottla.config.broker import BrokerConfig


def check_combinations(config: BrokerConfig) -> None:
    """`InvalidConfig` for the first pair of settings that contradict each other."""
    if 0 < config.queued_max_request_bytes < config.socket_request_max_bytes:
        raise InvalidConfig(
            "queued.max.request.bytes",
            f"queued.max.request.bytes={config.queued_max_request_bytes} has no room for one request of "
            f"socket.request.max.bytes={config.socket_request_max_bytes}: raise the first or lower the second",
        )
    if config.max_connections_per_ip == 0 and not config.max_connections_per_ip_overrides:
        raise InvalidConfig(
            "max.connections.per.ip",
            "max.connections.per.ip=0 would let nobody in: set max.connections.per.ip.overrides for those who may",
        )
    _not_above(config, "replica.fetch.wait.max.ms", "replica.socket.timeout.ms", "fetches would time out while they wait")
    _not_above(
        config, "replica.fetch.wait.max.ms", "replica.lag.time.max.ms", "replicas would fall out of sync while they wait"
    )
    _not_above(config, "group.min.session.timeout.ms", "group.max.session.timeout.ms", "no timeout would be allowed")
    for what in ("heartbeat.interval", "session.timeout"):
        least, given, most = (f"group.consumer.{bound}{what}.ms" for bound in ("min.", "", "max."))
        _not_above(config, least, most, "no value would be allowed")
        _not_above(config, least, given, "the default would be refused")
        _not_above(config, given, most, "the default would be refused")
    _not_above(
        config,
        "group.consumer.heartbeat.interval.ms",
        "group.consumer.session.timeout.ms",
        "members would expire between heartbeats",
    )
    if config.is_broker and config.broker_heartbeat_interval_ms * 2 > config.broker_session_timeout_ms:
        raise InvalidConfig(
            "broker.heartbeat.interval.ms",
            f"broker.heartbeat.interval.ms={config.broker_heartbeat_interval_ms} is more than half of "
            f"broker.session.timeout.ms={config.broker_session_timeout_ms}: one late heartbeat would fence the broker",
        )


def _not_above(config: BrokerConfig, lower: str, upper: str, why: str) -> None:
    small, large = getattr(config, lower.replace(".", "_")), getattr(config, upper.replace(".", "_"))
    if small > large:
        raise InvalidConfig(lower, f"{lower}={small} is more than {upper}={large}: {why}; lower the first or raise the second")
