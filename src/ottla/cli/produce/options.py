"""The options of `ottla produce`, from flags and client settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

MAX_BLOCK_MS = 10_000
RECORD_BYTES_MAX = 1_048_576


@dataclass(frozen=True, slots=True)
class ProduceOptions:
    """Where records go, and what all of them have in common."""

    topic: str | None
    """The topic of all records; None: each record of JSON input names its own."""
    partition: int | None = None
    """The partition of all records; None to choose by key."""
    key: bytes | None = None
    timestamp_ms: int | None = None
    max_block_ms: int = MAX_BLOCK_MS
    """How long to wait for the topic to exist."""
    record_bytes_max: int = RECORD_BYTES_MAX
    """How large the producer lets a record be."""
    sync: bool = False
    """Wait for each record to be stored before the next is sent."""
    client: Mapping[str, Any] = field(default_factory=dict)
    """The settings of the producer, by Kafka's names."""
    login: Mapping[str, Any] = field(default_factory=dict)
    """User name and password, or token, as keywords of the producer."""

    @property
    def shown_topic(self) -> str:
        """The topic's name, for messages."""
        return self.topic or "their topics"
