"""A record as tests look at it."""

from __future__ import annotations

from typing import NamedTuple


class Record(NamedTuple):
    """One record of a topic, with the place it has there."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp: int
    """Milliseconds since 1970."""
