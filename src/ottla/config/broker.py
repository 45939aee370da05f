"""A node's settings as one immutable snapshot: `server.properties` and run-time changes, checked and typed.

`BrokerConfig.from_settings` builds it from texts. It ignores unknown names (`notices` warns the operator about them). An
invalid value or combination raises `InvalidConfig`, with one sentence for the operator. Attributes are the settings' names with
`_` for `.`; structured settings (listeners, voters, overrides) are parsed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ottla.config.authorizer import AuthorizerConfig
from ottla.config.broker_checks import check_combinations
from ottla.config.broker_keys import BROKER_KEYS
from ottla.config.broker_log import BrokerLogConfig
from ottla.config.broker_network import network_values
from ottla.config.broker_security import ListenerSecurity
from ottla.config.listeners import Listener, Voter
from ottla.config.snapshot import Snapshot
from ottla.config.values import Value


class BrokerConfig(Snapshot):
    """All settings of a node. Replaced as a whole when a setting changes; never changed in place."""

    # Identity and listeners.
    node_id: int
    process_roles: tuple[str, ...]
    broker_rack: str | None
    listeners: tuple[Listener, ...]
    """The addresses to listen on, including the controller's."""
    advertised_listeners: tuple[Listener, ...]
    """The addresses that Metadata gives to clients, without the controller's listeners. Port 0 means the bound port."""
    advertised_controller_listeners: tuple[Listener, ...]
    listener_security_protocol_map: Mapping[str, str]
    listener_security: Mapping[str, ListenerSecurity]
    """Of each listener that this node opens or connects to, by its name."""
    controller_listener_names: tuple[str, ...]
    inter_broker_listener_name: str
    controller_quorum_voters: tuple[Voter, ...]
    controller_quorum_bootstrap_servers: tuple[tuple[str, int], ...]

    # Connections.
    connection_failed_authentication_delay_ms: int
    connections_max_idle_ms: int
    max_connection_creation_rate: int
    max_connections: int
    max_connections_per_ip: int
    max_connections_per_ip_overrides: Mapping[str, int]
    listener_max_connections: Mapping[str, int]
    """Listener name → its own limit, where `listener.name.NAME.max.connections` sets one."""
    listener_max_connection_creation_rate: Mapping[str, int]
    queued_max_request_bytes: int
    queued_max_requests: int
    socket_listen_backlog_size: int
    socket_receive_buffer_bytes: int
    socket_request_max_bytes: int
    socket_send_buffer_bytes: int

    # Delegation tokens.
    delegation_token_expiry_check_interval_ms: int
    delegation_token_expiry_time_ms: int
    delegation_token_max_lifetime_ms: int
    delegation_token_secret_key: str | None

    # Topics, produce and fetch.
    auto_create_topics_enable: bool
    cordoned_log_dirs: tuple[str, ...]
    default_replication_factor: int
    delete_topic_enable: bool
    fetch_max_bytes: int
    log_initial_task_delay_ms: int
    max_incremental_fetch_session_cache_slots: int
    max_request_partition_size_limit: int
    message_max_bytes: int
    min_insync_replicas: int
    num_partitions: int
    request_timeout_ms: int
    unclean_leader_election_enable: bool
    auto_leader_rebalance_enable: bool
    leader_imbalance_check_interval_seconds: int
    unclean_leader_election_interval_ms: int

    # Log directories. The other settings of the log are in `log`.
    alter_log_dirs_replication_quota_window_num: int
    alter_log_dirs_replication_quota_window_size_seconds: int
    num_replica_alter_log_dirs_threads: int | None
    replica_alter_log_dirs_io_max_bytes_per_second: int

    # The schema registry that topics' schema ids are checked with.
    confluent_basic_auth_user_info: str | None
    confluent_schema_registry_url: tuple[str, ...]

    # Ottla's own.
    ottla_check_enable: bool
    ottla_command_config: str | None
    """A file of client settings, for the services beside the node."""
    ottla_console_host: str
    ottla_console_port: int
    """-1: none."""
    ottla_max_groups: int
    ottla_max_transactional_ids: int
    ottla_metrics_host: str | None
    """None: the address of the first listener for clients."""
    ottla_metrics_port: int
    """-1: none."""
    ottla_schema_registry_host: str
    ottla_schema_registry_port: int
    """-1: none."""

    # Quotas of clients.
    controller_quota_window_num: int
    controller_quota_window_size_seconds: int
    quota_window_num: int
    quota_window_size_seconds: int

    # The metadata log and the quorum.
    broker_heartbeat_interval_ms: int
    broker_session_timeout_ms: int
    controlled_shutdown_enable: bool
    controller_quorum_append_linger_ms: int
    controller_quorum_auto_join_enable: bool
    controller_quorum_election_backoff_max_ms: int
    controller_quorum_election_timeout_ms: int
    controller_quorum_fetch_max_bytes: int
    controller_quorum_fetch_snapshot_max_bytes: int
    controller_quorum_fetch_timeout_ms: int
    controller_quorum_request_timeout_ms: int
    controller_quorum_retry_backoff_ms: int
    initial_broker_registration_timeout_ms: int
    metadata_log_max_record_bytes_between_snapshots: int
    metadata_log_max_snapshot_interval_ms: int
    metadata_log_segment_bytes: int
    metadata_log_segment_ms: int
    metadata_max_idle_interval_ms: int
    metadata_max_retention_bytes: int
    metadata_max_retention_ms: int

    # Replication.
    follower_replication_throttled_rate: int
    leader_replication_throttled_rate: int
    num_replica_fetchers: int
    replica_fetch_backoff_ms: int
    replica_fetch_max_bytes: int
    replica_fetch_min_bytes: int
    replica_fetch_response_max_bytes: int
    replica_fetch_wait_max_ms: int
    replica_high_watermark_checkpoint_interval_ms: int
    replica_lag_time_max_ms: int
    replica_selector_class: str | None
    replica_socket_receive_buffer_bytes: int
    replica_socket_timeout_ms: int
    replication_quota_window_num: int
    replication_quota_window_size_seconds: int

    # Groups and their offsets.
    group_consumer_assignment_interval_ms: int
    group_consumer_assignors: tuple[str, ...]
    group_consumer_heartbeat_interval_ms: int
    group_consumer_max_assignment_interval_ms: int
    group_consumer_max_heartbeat_interval_ms: int
    group_consumer_max_session_timeout_ms: int
    group_consumer_max_size: int
    group_consumer_migration_policy: str
    group_consumer_min_assignment_interval_ms: int
    group_consumer_min_heartbeat_interval_ms: int
    group_consumer_min_session_timeout_ms: int
    group_consumer_session_timeout_ms: int
    group_coordinator_append_linger_ms: int
    group_coordinator_rebalance_protocols: tuple[str, ...]
    group_initial_rebalance_delay_ms: int
    group_max_session_timeout_ms: int
    group_max_size: int
    group_min_session_timeout_ms: int
    offset_metadata_max_bytes: int
    offsets_commit_timeout_ms: int
    offsets_load_buffer_size: int
    offsets_retention_check_interval_ms: int
    offsets_retention_minutes: int
    offsets_topic_compression_codec: int
    offsets_topic_num_partitions: int
    offsets_topic_replication_factor: int
    offsets_topic_segment_bytes: int

    # Transactions. Those that the log uses are in `log`.
    add_partitions_to_txn_retry_backoff_max_ms: int
    add_partitions_to_txn_retry_backoff_ms: int
    producer_id_expiration_check_interval_ms: int
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int
    transaction_remove_expired_transaction_cleanup_interval_ms: int
    transaction_state_log_load_buffer_size: int
    transaction_state_log_min_isr: int
    transaction_state_log_num_partitions: int
    transaction_state_log_replication_factor: int
    telemetry_max_bytes: int
    transaction_state_log_segment_bytes: int
    transaction_two_phase_commit_enable: bool
    transactional_id_expiration_ms: int

    log: BrokerLogConfig
    """The settings of the log, including topic defaults."""
    authorizer: AuthorizerConfig | None
    """None: everything is allowed."""

    __slots__ = tuple(__annotations__)

    @classmethod
    def from_settings(cls, settings: Mapping[str, str], *, hostname: str = "localhost") -> BrokerConfig:
        """From setting name → text. `hostname` is advertised for a listener without a host.

        Raises `InvalidConfig` for the first invalid value or combination of values.
        """
        if not settings.get("process.roles"):
            from ottla.config import zookeeper_era  # late: few files need it

            if zookeeper_era.is_of_zookeeper_era(settings):
                raise zookeeper_era.refuse(settings)
        parsed = BROKER_KEYS.parse_known(settings)

        def value_of(name: str) -> Value:
            return parsed[name] if name in parsed else BROKER_KEYS.default_of(name)

        values: dict[str, Any] = {}
        for name in BROKER_KEYS:
            attribute = name.replace(".", "_")
            if attribute in _ATTRIBUTES:
                values[attribute] = value_of(name)
        values |= network_values(settings, value_of, hostname)
        values["log"] = BrokerLogConfig.from_settings(settings)
        values["authorizer"] = AuthorizerConfig.from_settings(settings)
        config = cls(values)
        check_combinations(config)
        return config

    @property
    def is_broker(self) -> bool:
        return "broker" in self.process_roles

    @property
    def is_controller(self) -> bool:
        return "controller" in self.process_roles

    @property
    def broker_listeners(self) -> tuple[Listener, ...]:
        """The listeners for clients and other brokers."""
        return tuple(each for each in self.listeners if each.name not in self.controller_listener_names)

    @property
    def controller_listeners(self) -> tuple[Listener, ...]:
        """The listeners at which other nodes reach this node's controller."""
        return tuple(each for each in self.listeners if each.name in self.controller_listener_names)

    @property
    def metrics_address(self) -> tuple[str, int] | None:
        """Where metrics and health are served; None if they are not."""
        if self.ottla_metrics_port < 0:
            return None
        listener = self.broker_listeners[0] if self.is_broker else self.listeners[0]
        return listener.host if self.ottla_metrics_host is None else self.ottla_metrics_host, self.ottla_metrics_port

    @property
    def schema_registry_urls(self) -> tuple[str, ...]:
        """The registry that schema ids are checked with: the one that is named, or that beside this node."""
        if self.confluent_schema_registry_url or self.ottla_schema_registry_port <= 0:
            return self.confluent_schema_registry_url
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.ottla_schema_registry_host, self.ottla_schema_registry_host)
        return (f"http://{f'[{host}]' if ':' in host else host}:{self.ottla_schema_registry_port}",)

    @property
    def brokers_security(self) -> ListenerSecurity:
        """The security of the listener at which brokers reach each other."""
        return self.listener_security[self.inter_broker_listener_name]

    @property
    def controllers_security(self) -> ListenerSecurity:
        """The security of the listener at which nodes reach controllers."""
        return self.listener_security[self.controller_listener_names[0]]

    def max_connections_of(self, listener: str) -> int:
        """The most connections that `listener` may have at a time."""
        return self.listener_max_connections.get(listener, self.max_connections)

    def max_connection_creation_rate_of(self, listener: str) -> int:
        """The most new connections that `listener` accepts in a second."""
        return self.listener_max_connection_creation_rate.get(listener, self.max_connection_creation_rate)

    def __repr__(self) -> str:
        return f"BrokerConfig(node.id={self.node_id}, listeners={','.join(map(str, self.listeners))})"


_ATTRIBUTES = frozenset(BrokerConfig.attributes)
