"""What becomes of a record: its metadata once it is stored, and how callers wait for that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ottla.ids import RecordMetadata

if TYPE_CHECKING:
    from ottla.client_core.producer.batch import ProducerBatch

UNKNOWN_OFFSET = -1
"""The offset of a record whose broker did not tell it: acks=0, or a duplicate that the broker no longer remembers."""


class Waiting(Protocol):
    """How a caller of a producer waits for a batch: the synchronous face blocks its thread, the asyncio face awaits."""

    def wait(self, batch: ProducerBatch, timeout_s: float | None) -> None:
        """Block until `batch` is done; `TimeoutError` when the time is up first."""
        ...

    async def wait_async(self, batch: ProducerBatch) -> None:
        """Await until `batch` is done."""
        ...


__all__ = ["UNKNOWN_OFFSET", "RecordMetadata", "Waiting"]
