"""ProducerSettings, ConsumerSettings and AdminSettings: the typed, immutable settings of one client.

An attribute is Kafka's name with `_` for `.`. Whole numbers are ints (milliseconds, bytes), choices are lower-case words, lists
are tuples. TLS and SASL are in `security`. `build` makes the objects. A client shows the warnings in `notices` when it is made.
"""

from __future__ import annotations

from ottla.config.client.classes import Implementation
from ottla.config.client.security import SecuritySettings
from ottla.config.snapshot import Snapshot

Address = tuple[str, int]
"""Host and port."""


class ClientSettings(Snapshot):
    """What every kind of client has."""

    bootstrap_servers: tuple[Address, ...]
    client_dns_lookup: str
    """`use_all_dns_ips` or `resolve_canonical_bootstrap_servers_only`."""
    client_id: str
    """Empty if it was not given."""
    connections_max_idle_ms: int
    enable_metrics_push: bool
    metadata_max_age_ms: int
    metadata_recovery_rebootstrap_trigger_ms: int
    metadata_recovery_strategy: str
    """`rebootstrap` or `none`."""
    metrics_num_samples: int
    metrics_sample_window_ms: int
    receive_buffer_bytes: int
    """-1: what the system chooses. The same holds for `send_buffer_bytes`."""
    reconnect_backoff_max_ms: int
    reconnect_backoff_ms: int
    request_timeout_ms: int
    retry_backoff_max_ms: int
    retry_backoff_ms: int
    send_buffer_bytes: int
    socket_connection_setup_timeout_max_ms: int
    socket_connection_setup_timeout_ms: int

    security: SecuritySettings
    notices: tuple[str, ...]
    """Warnings, one sentence each: settings without effect, and values that were changed to fit the others."""

    __slots__ = tuple(__annotations__)

    def __repr__(self) -> str:
        addresses = ",".join(f"{host}:{port}" for host, port in self.bootstrap_servers)
        return f"{type(self).__name__}({addresses}, client_id={self.client_id!r}, {self.security.protocol})"


class ProducerSettings(ClientSettings):
    """The settings of a producer."""

    acks: int
    """-1 (all in-sync replicas), 0 or 1."""
    batch_size: int
    buffer_memory: int
    compression_gzip_level: int
    compression_lz4_level: int
    compression_type: str
    compression_zstd_level: int
    delivery_timeout_ms: int
    enable_idempotence: bool
    interceptor_classes: tuple[Implementation, ...]
    key_serializer: Implementation
    linger_ms: int
    max_block_ms: int
    max_in_flight_requests_per_connection: int
    max_request_size: int
    metadata_max_idle_ms: int
    partitioner_adaptive_partitioning_enable: bool
    partitioner_availability_timeout_ms: int
    partitioner_class: Implementation
    partitioner_ignore_keys: bool
    retries: int
    sticky_batch_size: int
    """After how many bytes records without a key change their partition: batch.size, but Kafka's default if it is not given."""
    transaction_timeout_ms: int
    transaction_two_phase_commit_enable: bool
    transactional_id: str | None
    value_serializer: Implementation

    __slots__ = tuple(__annotations__)


class ConsumerSettings(ClientSettings):
    """The settings of a consumer."""

    allow_auto_create_topics: bool
    auto_commit_interval_ms: int
    auto_offset_reset: str
    """`earliest`, `latest`, `none` or `by_duration`."""
    auto_offset_reset_duration_ms: int | None
    """How far back `by_duration` begins; None for the others."""
    check_crcs: bool
    client_rack: str
    default_api_timeout_ms: int
    enable_auto_commit: bool
    """Always False without a group."""
    exclude_internal_topics: bool
    fetch_max_bytes: int
    fetch_max_wait_ms: int
    fetch_min_bytes: int
    group_id: str | None
    group_instance_id: str | None
    group_protocol: str
    """`classic` or `consumer`."""
    group_remote_assignor: str | None
    heartbeat_interval_ms: int
    interceptor_classes: tuple[Implementation, ...]
    isolation_level: str
    """`read_uncommitted` or `read_committed`."""
    key_deserializer: Implementation
    max_partition_fetch_bytes: int
    max_poll_interval_ms: int
    max_poll_records: int
    partition_assignment_strategy: tuple[Implementation, ...]
    session_timeout_ms: int
    value_deserializer: Implementation

    __slots__ = tuple(__annotations__)


class AdminSettings(ClientSettings):
    """The settings of an admin client. It has either bootstrap servers or bootstrap controllers."""

    bootstrap_controllers: tuple[Address, ...]
    default_api_timeout_ms: int
    retries: int

    __slots__ = tuple(__annotations__)
