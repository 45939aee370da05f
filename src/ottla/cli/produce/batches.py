"""Rows on their way to a partition, gathered into batches, in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from ottla.records.builder import build_produce_batch
from ottla.records.compression import Codec
from ottla.records.kernels import Row

RECORD_OVERHEAD_BYTES = 12
"""About what a record takes beside its key and value."""


class Batch:
    """Records that travel together. Keeps its sequence number and its bytes however often it is sent."""

    __slots__ = ("data", "deadline_s", "failures", "partition", "rows", "sequence", "size_bytes")

    def __init__(self, partition: int, rows: list[Row], size_bytes: int) -> None:
        self.partition = partition
        self.rows = rows
        self.size_bytes = size_bytes
        self.sequence = -1
        self.data: bytearray | None = None
        self.failures = 0
        self.deadline_s = 0.0

    def halves(self) -> tuple[Batch, Batch]:
        """Two batches for one that was too large, with the sequence numbers its records had."""
        middle = len(self.rows) // 2
        first = Batch(self.partition, self.rows[:middle], self.size_bytes // 2)
        second = Batch(self.partition, self.rows[middle:], self.size_bytes - self.size_bytes // 2)
        for half, offset in ((first, 0), (second, middle)):
            half.deadline_s = self.deadline_s
            half.sequence = -1 if self.sequence < 0 else (self.sequence + offset) & 0x7FFFFFFF
        return first, second


class PartitionQueue:
    """What waits for one partition: full batches, then one that still grows. One batch at a time is on its way."""

    __slots__ = ("_full", "_growing", "_growing_bytes", "in_flight", "next_sequence", "partition", "rest_until_s")

    def __init__(self, partition: int) -> None:
        self.partition = partition
        self.in_flight: Batch | None = None
        self.next_sequence = 0
        self.rest_until_s = 0.0
        """Not to be sent before, after a failure."""
        self._full: deque[Batch] = deque()
        self._growing: list[Row] = []
        self._growing_bytes = 0

    def add(self, rows: Sequence[Row], size_bytes: int, batch_bytes: int) -> bool:
        """Append rows of `size_bytes` in all; True if that completed a batch."""
        self._growing.extend(rows)
        self._growing_bytes += size_bytes
        if self._growing_bytes < batch_bytes:
            return False
        self.complete()
        return True

    def complete(self) -> None:
        """Let the batch that grows go as it is."""
        if self._growing:
            self._full.append(Batch(self.partition, self._growing, self._growing_bytes))
            self._growing, self._growing_bytes = [], 0

    @property
    def has_batch(self) -> bool:
        return bool(self._full)

    @property
    def is_empty(self) -> bool:
        return not self._full and not self._growing and self.in_flight is None

    def take(self) -> Batch:
        self.in_flight = self._full.popleft()
        return self.in_flight

    def put_back(self, *batches: Batch) -> None:
        """Batches to send next, before all others."""
        self.in_flight = None
        self._full.extendleft(reversed(batches))


class Encoder:
    """From batches to bytes, with the producer's identity."""

    def __init__(self, codec: Codec, level: int | None, producer_id: int, producer_epoch: int) -> None:
        self._codec = codec
        self._level = level
        self.producer_id = producer_id
        self._producer_epoch = producer_epoch

    def encode(self, queue: PartitionQueue, batch: Batch) -> bytearray:
        """The bytes of a batch; its records get their sequence numbers the first time."""
        if batch.data is None:
            if self.producer_id >= 0 and batch.sequence < 0:
                batch.sequence = queue.next_sequence
                queue.next_sequence = (queue.next_sequence + len(batch.rows)) & 0x7FFFFFFF
            batch.data = build_produce_batch(
                batch.rows,
                codec=self._codec,
                level=self._level,
                producer_id=self.producer_id,
                producer_epoch=self._producer_epoch,
                base_sequence=batch.sequence,
            )
        return batch.data
