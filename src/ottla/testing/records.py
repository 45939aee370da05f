"""The record that the helpers of a test broker return."""

from __future__ import annotations

from typing import NamedTuple


class Record(NamedTuple):
    """One record, with its topic, partition and offset."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp: int
    """Milliseconds since 1970."""
