"""What the sender of batches needs of the settings and the transaction around it, and the settings of transactions."""

from __future__ import annotations

from typing import Protocol

from ottla.client_core.producer.accumulator import Key
from ottla.errors import KafkaError


class SenderSettings(Protocol):
    """The settings that sending depends on."""

    @property
    def acks(self) -> int: ...
    @property
    def compression_type(self) -> str: ...
    @property
    def delivery_timeout_ms(self) -> int: ...
    @property
    def max_in_flight_requests_per_connection(self) -> int: ...
    @property
    def max_request_size(self) -> int: ...
    @property
    def request_timeout_ms(self) -> int: ...
    @property
    def retries(self) -> int: ...
    @property
    def retry_backoff_ms(self) -> int: ...
    @property
    def retry_backoff_max_ms(self) -> int: ...


class TransactionSettings(Protocol):
    """The settings that transactions depend on."""

    @property
    def transaction_timeout_ms(self) -> int: ...
    @property
    def transaction_two_phase_commit_enable(self) -> bool: ...
    @property
    def retry_backoff_ms(self) -> int: ...
    @property
    def retry_backoff_max_ms(self) -> int: ...


class Gate(Protocol):
    """What a transaction says about sending."""

    @property
    def is_fatal(self) -> bool: ...
    @property
    def is_spoiled(self) -> bool:
        """Whether nothing can be sent: the transaction must be aborted, or the producer is unusable."""
        ...

    @property
    def is_implicit(self) -> bool:
        """Whether Produce adds partitions to the transaction (transaction.version 2)."""
        ...

    def may_send(self, key: Key) -> bool:
        """Whether a partition is part of the transaction; if not, it is going to be added."""
        ...

    def batch_failed(self, error: KafkaError) -> None: ...
