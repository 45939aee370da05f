"""Derives the settings of each package (net, controller, compaction) from the node's settings."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from ottla.broker.net.settings import ListenerLimits, NetSettings
from ottla.broker.requests.quotas import Windows
from ottla.broker.settings import BrokerSettings
from ottla.config.broker import BrokerConfig
from ottla.config.broker_log import BrokerLogConfig
from ottla.config.listeners import SECURITY_PROTOCOLS, Listener
from ottla.config.notices import notices
from ottla.log.compaction.plan import CleanerSettings
from ottla.metadata.controller.state import ControllerSettings
from ottla.metadata.delegation_tokens import TokenSettings
from ottla.metadata.image.cluster import Endpoint

logger = logging.getLogger("ottla.node")


def warn_of_settings(settings: Mapping[str, str]) -> None:
    """Log a warning for each setting that has no effect here."""
    for notice in notices(settings):
        logger.warning("%s", notice)


def net_settings(config: BrokerConfig) -> NetSettings:
    return NetSettings(
        socket_request_max_bytes=config.socket_request_max_bytes,
        socket_send_buffer_bytes=config.socket_send_buffer_bytes,
        socket_receive_buffer_bytes=config.socket_receive_buffer_bytes,
        socket_listen_backlog_size=config.socket_listen_backlog_size,
        connections_max_idle_ms=config.connections_max_idle_ms,
        max_connections=config.max_connections,
        max_connections_per_ip=config.max_connections_per_ip,
        max_connections_per_ip_overrides=config.max_connections_per_ip_overrides,
        max_connection_creation_rate=config.max_connection_creation_rate,
        quota_windows=quota_windows(config)[0],
        listener_limits={
            each.name: ListenerLimits(config.max_connections_of(each.name), config.max_connection_creation_rate_of(each.name))
            for each in config.listeners
        },
        listener_security=config.listener_security,
        queued_max_request_bytes=config.queued_max_request_bytes,
    )


def quota_windows(config: BrokerConfig) -> tuple[Windows, Windows]:
    """The windows of clients' quotas, and of those on changes of the metadata."""
    return (
        Windows(config.quota_window_num, config.quota_window_size_seconds),
        Windows(config.controller_quota_window_num, config.controller_quota_window_size_seconds),
    )


def controller_settings(cluster_id: str, settings: BrokerSettings) -> ControllerSettings:
    config = settings.current
    return ControllerSettings(
        cluster_id=cluster_id,
        node_id=config.node_id,
        num_partitions=config.num_partitions,
        default_replication_factor=config.default_replication_factor,
        delete_topic_enable=config.delete_topic_enable,
        session_timeout_ms=config.broker_session_timeout_ms,
        leader_balance_interval_ms=(
            config.leader_imbalance_check_interval_seconds * 1000 if config.auto_leader_rebalance_enable else None
        ),
        unclean_election_interval_ms=config.unclean_leader_election_interval_ms,
        static=settings.static,
        topic_defaults=config.log.topic_defaults,
        tokens=TokenSettings(
            secret_key=config.delegation_token_secret_key or None,
            lifetime_ms_max=config.delegation_token_max_lifetime_ms,
            expiry_ms=config.delegation_token_expiry_time_ms,
            check_interval_ms=config.delegation_token_expiry_check_interval_ms,
        ),
    )


def cleaner_settings(config: BrokerLogConfig) -> CleanerSettings:
    return CleanerSettings(
        dedupe_buffer_bytes=config.log_cleaner_dedupe_buffer_size // max(config.log_cleaner_threads, 1),
        dedupe_load_factor=config.log_cleaner_io_buffer_load_factor,
        io_max_bytes_per_second=config.log_cleaner_io_max_bytes_per_second,
        backoff_ms=config.log_cleaner_backoff_ms,
    )


def endpoints_of(listeners: Sequence[Listener], bound: Mapping[str, tuple[str, int]]) -> list[Endpoint]:
    """The endpoints under which others reach this node; port 0 becomes the port that was bound."""
    return [
        Endpoint(each.name, each.host, each.port or bound[each.name][1], SECURITY_PROTOCOLS[each.security_protocol])
        for each in listeners
    ]


def address_text(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
