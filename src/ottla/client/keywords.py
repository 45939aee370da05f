"""The keywords that the clients take, for type checkers: nothing imports this at run time.

Written by `tools/generate_client_keywords.py` from the tables in `src/ottla/config/client`: do not edit. Settings that Ottla
refuses are left out. The form of keys and values tells their types: `Unpack[ProducerBytesText]` are the keywords of a producer
whose keys are bytes and whose values are text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypedDict

from ottla.client.type_parameters import AsBytes, AsNamed, AsText, Deserializing, K_own, Serializing, Servers, V_own
from ottla.client.world import ClientWorld


class ProducerKeywords(TypedDict, total=False):
    """The settings of a producer, with `_` for `.`. None: not given."""

    acks: int | str | None
    batch_size: int | str | None
    buffer_memory: int | str | None
    client_dns_lookup: str | None
    client_id: str | None
    compression_gzip_level: int | str | None
    compression_lz4_level: int | str | None
    compression_type: str | None
    compression_zstd_level: int | str | None
    connections_max_idle_ms: int | str | None
    delivery_timeout_ms: int | str | None
    enable_idempotence: bool | str | None
    enable_metrics_push: bool | str | None
    interceptor_classes: object
    linger_ms: int | str | None
    max_block_ms: int | str | None
    max_in_flight_requests_per_connection: int | str | None
    max_request_size: int | str | None
    metadata_max_age_ms: int | str | None
    metadata_max_idle_ms: int | str | None
    metadata_recovery_rebootstrap_trigger_ms: int | str | None
    metadata_recovery_strategy: str | None
    metrics_num_samples: int | str | None
    metrics_recording_level: str | None
    metrics_sample_window_ms: int | str | None
    partitioner_adaptive_partitioning_enable: bool | str | None
    partitioner_availability_timeout_ms: int | str | None
    partitioner_class: object
    partitioner_ignore_keys: bool | str | None
    receive_buffer_bytes: int | str | None
    reconnect_backoff_max_ms: int | str | None
    reconnect_backoff_ms: int | str | None
    request_timeout_ms: int | str | None
    retries: int | str | None
    retry_backoff_max_ms: int | str | None
    retry_backoff_ms: int | str | None
    sasl_jaas_config: str | None
    sasl_kerberos_kinit_cmd: str | None
    sasl_kerberos_min_time_before_relogin: int | str | None
    sasl_kerberos_service_name: str | None
    sasl_kerberos_ticket_renew_jitter: float | str | None
    sasl_kerberos_ticket_renew_window_factor: float | str | None
    sasl_login_callback_handler_class: object
    sasl_login_connect_timeout_ms: int | str | None
    sasl_login_read_timeout_ms: int | str | None
    sasl_login_refresh_buffer_seconds: int | str | None
    sasl_login_refresh_min_period_seconds: int | str | None
    sasl_login_refresh_window_factor: float | str | None
    sasl_login_refresh_window_jitter: float | str | None
    sasl_login_retry_backoff_max_ms: int | str | None
    sasl_login_retry_backoff_ms: int | str | None
    sasl_mechanism: str | None
    sasl_oauthbearer_client_credentials_client_id: str | None
    sasl_oauthbearer_client_credentials_client_secret: str | None
    sasl_oauthbearer_clock_skew_seconds: int | str | None
    sasl_oauthbearer_expected_audience: str | Sequence[str] | None
    sasl_oauthbearer_expected_issuer: str | None
    sasl_oauthbearer_header_urlencode: bool | str | None
    sasl_oauthbearer_jwks_endpoint_refresh_ms: int | str | None
    sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms: int | str | None
    sasl_oauthbearer_jwks_endpoint_retry_backoff_ms: int | str | None
    sasl_oauthbearer_jwks_endpoint_url: str | None
    sasl_oauthbearer_jwt_retriever_class: object
    sasl_oauthbearer_jwt_validator_class: object
    sasl_oauthbearer_scope: str | None
    sasl_oauthbearer_scope_claim_name: str | None
    sasl_oauthbearer_sub_claim_name: str | None
    sasl_oauthbearer_token_endpoint_url: str | None
    security_protocol: str | None
    send_buffer_bytes: int | str | None
    socket_connection_setup_timeout_max_ms: int | str | None
    socket_connection_setup_timeout_ms: int | str | None
    ssl_cipher_suites: str | Sequence[str] | None
    ssl_enabled_protocols: str | Sequence[str] | None
    ssl_endpoint_identification_algorithm: str | None
    ssl_key_password: str | None
    ssl_keymanager_algorithm: str | None
    ssl_keystore_certificate_chain: str | None
    ssl_keystore_key: str | None
    ssl_keystore_location: str | None
    ssl_keystore_password: str | None
    ssl_keystore_type: str | None
    ssl_protocol: str | None
    ssl_provider: str | None
    ssl_secure_random_implementation: str | None
    ssl_trustmanager_algorithm: str | None
    ssl_truststore_certificates: str | None
    ssl_truststore_location: str | None
    ssl_truststore_password: str | None
    ssl_truststore_type: str | None
    transaction_timeout_ms: int | str | None
    transaction_two_phase_commit_enable: bool | str | None
    transactional_id: str | None
    sasl_plain_username: str | None
    sasl_plain_password: str | None
    sasl_oauth_token: Callable[[], Any] | None
    interceptors: object
    partitioner: object
    world: ClientWorld | None


class ProducerKeyBytes(TypedDict, total=False):
    key_serializer: AsBytes


class ProducerKeyText(TypedDict):
    key_serializer: AsText


class ProducerKeyOwn(TypedDict, Generic[K_own]):
    key_serializer: Serializing[K_own]


class ProducerKeyNamed(TypedDict):
    key_serializer: AsNamed


class ProducerValueBytes(TypedDict, total=False):
    value_serializer: AsBytes


class ProducerValueText(TypedDict):
    value_serializer: AsText


class ProducerValueOwn(TypedDict, Generic[V_own]):
    value_serializer: Serializing[V_own]


class ProducerValueNamed(TypedDict):
    value_serializer: AsNamed


class ProducerBytesBytes(ProducerKeywords, ProducerKeyBytes, ProducerValueBytes): ...


class ProducerBytesText(ProducerKeywords, ProducerKeyBytes, ProducerValueText): ...


class ProducerBytesOwn(ProducerKeywords, ProducerKeyBytes, ProducerValueOwn[V_own]): ...


class ProducerBytesNamed(ProducerKeywords, ProducerKeyBytes, ProducerValueNamed): ...


class ProducerTextBytes(ProducerKeywords, ProducerKeyText, ProducerValueBytes): ...


class ProducerTextText(ProducerKeywords, ProducerKeyText, ProducerValueText): ...


class ProducerTextOwn(ProducerKeywords, ProducerKeyText, ProducerValueOwn[V_own]): ...


class ProducerTextNamed(ProducerKeywords, ProducerKeyText, ProducerValueNamed): ...


class ProducerOwnBytes(ProducerKeywords, ProducerKeyOwn[K_own], ProducerValueBytes): ...


class ProducerOwnText(ProducerKeywords, ProducerKeyOwn[K_own], ProducerValueText): ...


class ProducerOwnOwn(ProducerKeywords, ProducerKeyOwn[K_own], ProducerValueOwn[V_own]): ...


class ProducerOwnNamed(ProducerKeywords, ProducerKeyOwn[K_own], ProducerValueNamed): ...


class ProducerNamedBytes(ProducerKeywords, ProducerKeyNamed, ProducerValueBytes): ...


class ProducerNamedText(ProducerKeywords, ProducerKeyNamed, ProducerValueText): ...


class ProducerNamedOwn(ProducerKeywords, ProducerKeyNamed, ProducerValueOwn[V_own]): ...


class ProducerNamedNamed(ProducerKeywords, ProducerKeyNamed, ProducerValueNamed): ...


class ProducerAny(ProducerKeywords, total=False):
    key_serializer: Any
    value_serializer: Any


class ConsumerKeywords(TypedDict, total=False):
    """The settings of a consumer, with `_` for `.`. None: not given."""

    allow_auto_create_topics: bool | str | None
    auto_commit_interval_ms: int | str | None
    auto_offset_reset: str | None
    check_crcs: bool | str | None
    client_dns_lookup: str | None
    client_id: str | None
    client_rack: str | None
    connections_max_idle_ms: int | str | None
    default_api_timeout_ms: int | str | None
    enable_auto_commit: bool | str | None
    enable_metrics_push: bool | str | None
    exclude_internal_topics: bool | str | None
    fetch_max_bytes: int | str | None
    fetch_max_wait_ms: int | str | None
    fetch_min_bytes: int | str | None
    group_id: str | None
    group_instance_id: str | None
    group_protocol: str | None
    group_remote_assignor: str | None
    heartbeat_interval_ms: int | str | None
    interceptor_classes: object
    isolation_level: str | None
    max_partition_fetch_bytes: int | str | None
    max_poll_interval_ms: int | str | None
    max_poll_records: int | str | None
    metadata_max_age_ms: int | str | None
    metadata_recovery_rebootstrap_trigger_ms: int | str | None
    metadata_recovery_strategy: str | None
    metrics_num_samples: int | str | None
    metrics_recording_level: str | None
    metrics_sample_window_ms: int | str | None
    partition_assignment_strategy: object
    receive_buffer_bytes: int | str | None
    reconnect_backoff_max_ms: int | str | None
    reconnect_backoff_ms: int | str | None
    request_timeout_ms: int | str | None
    retry_backoff_max_ms: int | str | None
    retry_backoff_ms: int | str | None
    sasl_jaas_config: str | None
    sasl_kerberos_kinit_cmd: str | None
    sasl_kerberos_min_time_before_relogin: int | str | None
    sasl_kerberos_service_name: str | None
    sasl_kerberos_ticket_renew_jitter: float | str | None
    sasl_kerberos_ticket_renew_window_factor: float | str | None
    sasl_login_callback_handler_class: object
    sasl_login_connect_timeout_ms: int | str | None
    sasl_login_read_timeout_ms: int | str | None
    sasl_login_refresh_buffer_seconds: int | str | None
    sasl_login_refresh_min_period_seconds: int | str | None
    sasl_login_refresh_window_factor: float | str | None
    sasl_login_refresh_window_jitter: float | str | None
    sasl_login_retry_backoff_max_ms: int | str | None
    sasl_login_retry_backoff_ms: int | str | None
    sasl_mechanism: str | None
    sasl_oauthbearer_client_credentials_client_id: str | None
    sasl_oauthbearer_client_credentials_client_secret: str | None
    sasl_oauthbearer_clock_skew_seconds: int | str | None
    sasl_oauthbearer_expected_audience: str | Sequence[str] | None
    sasl_oauthbearer_expected_issuer: str | None
    sasl_oauthbearer_header_urlencode: bool | str | None
    sasl_oauthbearer_jwks_endpoint_refresh_ms: int | str | None
    sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms: int | str | None
    sasl_oauthbearer_jwks_endpoint_retry_backoff_ms: int | str | None
    sasl_oauthbearer_jwks_endpoint_url: str | None
    sasl_oauthbearer_jwt_retriever_class: object
    sasl_oauthbearer_jwt_validator_class: object
    sasl_oauthbearer_scope: str | None
    sasl_oauthbearer_scope_claim_name: str | None
    sasl_oauthbearer_sub_claim_name: str | None
    sasl_oauthbearer_token_endpoint_url: str | None
    security_protocol: str | None
    send_buffer_bytes: int | str | None
    session_timeout_ms: int | str | None
    socket_connection_setup_timeout_max_ms: int | str | None
    socket_connection_setup_timeout_ms: int | str | None
    ssl_cipher_suites: str | Sequence[str] | None
    ssl_enabled_protocols: str | Sequence[str] | None
    ssl_endpoint_identification_algorithm: str | None
    ssl_key_password: str | None
    ssl_keymanager_algorithm: str | None
    ssl_keystore_certificate_chain: str | None
    ssl_keystore_key: str | None
    ssl_keystore_location: str | None
    ssl_keystore_password: str | None
    ssl_keystore_type: str | None
    ssl_protocol: str | None
    ssl_provider: str | None
    ssl_secure_random_implementation: str | None
    ssl_trustmanager_algorithm: str | None
    ssl_truststore_certificates: str | None
    ssl_truststore_location: str | None
    ssl_truststore_password: str | None
    ssl_truststore_type: str | None
    sasl_plain_username: str | None
    sasl_plain_password: str | None
    sasl_oauth_token: Callable[[], Any] | None
    interceptors: object
    world: ClientWorld | None


class ConsumerKeyBytes(TypedDict, total=False):
    key_deserializer: AsBytes


class ConsumerKeyText(TypedDict):
    key_deserializer: AsText


class ConsumerKeyOwn(TypedDict, Generic[K_own]):
    key_deserializer: Deserializing[K_own]


class ConsumerKeyNamed(TypedDict):
    key_deserializer: AsNamed


class ConsumerValueBytes(TypedDict, total=False):
    value_deserializer: AsBytes


class ConsumerValueText(TypedDict):
    value_deserializer: AsText


class ConsumerValueOwn(TypedDict, Generic[V_own]):
    value_deserializer: Deserializing[V_own]


class ConsumerValueNamed(TypedDict):
    value_deserializer: AsNamed


class ConsumerBytesBytes(ConsumerKeywords, ConsumerKeyBytes, ConsumerValueBytes): ...


class ConsumerBytesText(ConsumerKeywords, ConsumerKeyBytes, ConsumerValueText): ...


class ConsumerBytesOwn(ConsumerKeywords, ConsumerKeyBytes, ConsumerValueOwn[V_own]): ...


class ConsumerBytesNamed(ConsumerKeywords, ConsumerKeyBytes, ConsumerValueNamed): ...


class ConsumerTextBytes(ConsumerKeywords, ConsumerKeyText, ConsumerValueBytes): ...


class ConsumerTextText(ConsumerKeywords, ConsumerKeyText, ConsumerValueText): ...


class ConsumerTextOwn(ConsumerKeywords, ConsumerKeyText, ConsumerValueOwn[V_own]): ...


class ConsumerTextNamed(ConsumerKeywords, ConsumerKeyText, ConsumerValueNamed): ...


class ConsumerOwnBytes(ConsumerKeywords, ConsumerKeyOwn[K_own], ConsumerValueBytes): ...


class ConsumerOwnText(ConsumerKeywords, ConsumerKeyOwn[K_own], ConsumerValueText): ...


class ConsumerOwnOwn(ConsumerKeywords, ConsumerKeyOwn[K_own], ConsumerValueOwn[V_own]): ...


class ConsumerOwnNamed(ConsumerKeywords, ConsumerKeyOwn[K_own], ConsumerValueNamed): ...


class ConsumerNamedBytes(ConsumerKeywords, ConsumerKeyNamed, ConsumerValueBytes): ...


class ConsumerNamedText(ConsumerKeywords, ConsumerKeyNamed, ConsumerValueText): ...


class ConsumerNamedOwn(ConsumerKeywords, ConsumerKeyNamed, ConsumerValueOwn[V_own]): ...


class ConsumerNamedNamed(ConsumerKeywords, ConsumerKeyNamed, ConsumerValueNamed): ...


class ConsumerAny(ConsumerKeywords, total=False):
    key_deserializer: Any
    value_deserializer: Any


class AdminKeywords(TypedDict, total=False):
    """The settings of an admin, with `_` for `.`. None: not given."""

    bootstrap_controllers: Servers | None
    client_dns_lookup: str | None
    client_id: str | None
    connections_max_idle_ms: int | str | None
    default_api_timeout_ms: int | str | None
    enable_metrics_push: bool | str | None
    metadata_max_age_ms: int | str | None
    metadata_recovery_rebootstrap_trigger_ms: int | str | None
    metadata_recovery_strategy: str | None
    metrics_num_samples: int | str | None
    metrics_recording_level: str | None
    metrics_sample_window_ms: int | str | None
    receive_buffer_bytes: int | str | None
    reconnect_backoff_max_ms: int | str | None
    reconnect_backoff_ms: int | str | None
    request_timeout_ms: int | str | None
    retries: int | str | None
    retry_backoff_max_ms: int | str | None
    retry_backoff_ms: int | str | None
    sasl_jaas_config: str | None
    sasl_kerberos_kinit_cmd: str | None
    sasl_kerberos_min_time_before_relogin: int | str | None
    sasl_kerberos_service_name: str | None
    sasl_kerberos_ticket_renew_jitter: float | str | None
    sasl_kerberos_ticket_renew_window_factor: float | str | None
    sasl_login_callback_handler_class: object
    sasl_login_connect_timeout_ms: int | str | None
    sasl_login_read_timeout_ms: int | str | None
    sasl_login_refresh_buffer_seconds: int | str | None
    sasl_login_refresh_min_period_seconds: int | str | None
    sasl_login_refresh_window_factor: float | str | None
    sasl_login_refresh_window_jitter: float | str | None
    sasl_login_retry_backoff_max_ms: int | str | None
    sasl_login_retry_backoff_ms: int | str | None
    sasl_mechanism: str | None
    sasl_oauthbearer_client_credentials_client_id: str | None
    sasl_oauthbearer_client_credentials_client_secret: str | None
    sasl_oauthbearer_clock_skew_seconds: int | str | None
    sasl_oauthbearer_expected_audience: str | Sequence[str] | None
    sasl_oauthbearer_expected_issuer: str | None
    sasl_oauthbearer_header_urlencode: bool | str | None
    sasl_oauthbearer_jwks_endpoint_refresh_ms: int | str | None
    sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms: int | str | None
    sasl_oauthbearer_jwks_endpoint_retry_backoff_ms: int | str | None
    sasl_oauthbearer_jwks_endpoint_url: str | None
    sasl_oauthbearer_jwt_retriever_class: object
    sasl_oauthbearer_jwt_validator_class: object
    sasl_oauthbearer_scope: str | None
    sasl_oauthbearer_scope_claim_name: str | None
    sasl_oauthbearer_sub_claim_name: str | None
    sasl_oauthbearer_token_endpoint_url: str | None
    security_protocol: str | None
    send_buffer_bytes: int | str | None
    socket_connection_setup_timeout_max_ms: int | str | None
    socket_connection_setup_timeout_ms: int | str | None
    ssl_cipher_suites: str | Sequence[str] | None
    ssl_enabled_protocols: str | Sequence[str] | None
    ssl_endpoint_identification_algorithm: str | None
    ssl_key_password: str | None
    ssl_keymanager_algorithm: str | None
    ssl_keystore_certificate_chain: str | None
    ssl_keystore_key: str | None
    ssl_keystore_location: str | None
    ssl_keystore_password: str | None
    ssl_keystore_type: str | None
    ssl_protocol: str | None
    ssl_provider: str | None
    ssl_secure_random_implementation: str | None
    ssl_trustmanager_algorithm: str | None
    ssl_truststore_certificates: str | None
    ssl_truststore_location: str | None
    ssl_truststore_password: str | None
    ssl_truststore_type: str | None
    sasl_plain_username: str | None
    sasl_plain_password: str | None
    sasl_oauth_token: Callable[[], Any] | None
