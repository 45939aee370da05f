"""What a use of a client gets: where to send to or to read from, and how much."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

Run = Callable[[], None]
"""What is timed."""


class ProduceJob(NamedTuple):
    """What to send, and where to."""

    bootstrap: str
    topic: str
    value: bytes
    keys: list[bytes] | None
    count: int


class ConsumeJob(NamedTuple):
    """What to read, and from where."""

    bootstrap: str
    topic: str
    partitions: int
    count: int
