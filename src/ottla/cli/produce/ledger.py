"""Counts what becomes of the records that were read, batch by batch."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from ottla.client_core.producer.batch import ProducerBatch
from ottla.errors import KafkaError
from ottla.errors.texts import counted


@dataclass(slots=True)
class Stored:
    """What one partition has acknowledged. Offsets are -1 if the broker has told none."""

    records: int = 0
    first_offset: int = -1
    last_offset: int = -1


class Ledger:
    """What was read, and what is stored. It outlives the event loop, so that the total can be shown however that ends."""

    def __init__(self) -> None:
        self.read = 0
        """How many records were read and given to the producer, or are about to be."""
        self.stored = 0
        self.refused = 0
        """How many a broker has refused for good."""
        self.lost = 0
        """How many have failed in another way: they may be stored."""
        self.partitions: dict[tuple[str, int], Stored] = {}
        self.failure: KafkaError | None = None
        """Why the first record that was not stored was not."""
        self.failed = asyncio.Event()

    @property
    def pending(self) -> int:
        """How many records are neither stored nor given up."""
        return self.read - self.stored - self.refused - self.lost

    def finished(self, batch: ProducerBatch) -> None:
        """The producer is done with a batch. It says so of the parts of a split batch, too."""
        if batch.parts:
            return
        if batch.error is not None:
            self._count_failed(batch, batch.error)
            return
        self.stored += batch.count
        stored = self.partitions.setdefault(batch.key, Stored())
        stored.records += batch.count
        if batch.base_offset >= 0:
            first = stored.first_offset
            stored.first_offset = batch.base_offset if first < 0 else min(first, batch.base_offset)
            stored.last_offset = max(stored.last_offset, batch.base_offset + batch.count - 1)

    def _count_failed(self, batch: ProducerBatch, error: KafkaError) -> None:
        if error.code > 0 and not error.is_retriable and not batch.is_uncertain:
            self.refused += batch.count
        else:
            self.lost += batch.count
        if self.failure is None:
            # What is wrong with the first bad record of the batch says more than that there is one.
            self.failure = batch.error_of(min(batch.record_errors)) if batch.record_errors else error
        self.failed.set()

    def total(self, topic: str, verb: str = "stored in") -> str:
        """`5 records stored in orders, 2 refused, 3 not known to be stored`."""
        unknown = self.read - self.stored - self.refused
        parts = [f"{counted(self.stored, 'record')} {verb} {topic}"]
        parts += [f"{self.refused:,} refused"] if self.refused else []
        parts += [f"{unknown:,} not known to be stored"] if unknown > 0 else []
        return ", ".join(parts)
