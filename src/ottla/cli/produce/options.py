"""The options of `ottla produce`, from flags and client settings."""

from __future__ import annotations

from dataclasses import dataclass

from ottla.records.compression import Codec


@dataclass(frozen=True, slots=True)
class ProduceOptions:
    """How records are sent. Names as in Kafka's producer settings."""

    topic: str
    partition: int | None = None
    """The partition of all records; None to choose by key."""
    acks: int = -1
    idempotent: bool = True
    codec: Codec = Codec.NONE
    batch_bytes: int = 512 * 1024
    buffer_bytes: int = 32 * 1024 * 1024
    linger_ms: int = 0
    """How long a batch may wait for more records while there is no input."""
    max_block_ms: int = 10_000
    """How long to wait for the topic to exist."""
    delivery_timeout_ms: int = 120_000
    retries: int = 2**31 - 1
    sync: bool = False
    """Wait for each record to be stored before the next is sent."""
