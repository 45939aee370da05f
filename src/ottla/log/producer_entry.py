"""What a partition remembers of one producer: epoch, the last five batches, the transaction under way.

Plain data; the rules are in `producer_append.py` (may this be appended?) and `producer_state.py` (what has been appended).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

BATCHES_REMEMBERED = 5
"""As many batches as a producer may have in flight, so that a retry of any of them is recognised."""

NO_EPOCH = -1
NO_SEQUENCE = -1
NO_TIMESTAMP = -1
_SEQUENCE_MASK = 0x7FFFFFFF


class BatchMetadata(NamedTuple):
    """Where one batch of a producer went."""

    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp_ms: int
    """The batch's largest timestamp."""

    @classmethod
    def ending_at(cls, last_sequence: int, last_offset: int, offset_delta: int, timestamp_ms: int) -> BatchMetadata:
        """From the four numbers that a snapshot keeps. Sequences go round from 2^31 - 1 to 0."""
        first_sequence = (last_sequence - offset_delta) & _SEQUENCE_MASK
        return cls(first_sequence, last_sequence, last_offset - offset_delta, last_offset, timestamp_ms)


class ProducerEntry:
    """One producer, as the partition knows it."""

    __slots__ = ("batches", "coordinator_epoch", "epoch", "last_timestamp_ms", "producer_id", "transaction_first_offset")

    def __init__(
        self,
        producer_id: int,
        epoch: int = NO_EPOCH,
        coordinator_epoch: int = -1,
        last_timestamp_ms: int = NO_TIMESTAMP,
        transaction_first_offset: int | None = None,
        batches: Iterable[BatchMetadata] = (),
    ) -> None:
        self.producer_id = producer_id
        self.epoch = epoch
        self.coordinator_epoch = coordinator_epoch
        """Of the coordinator that ended the producer's last transaction here; an older one is a zombie."""
        self.last_timestamp_ms = last_timestamp_ms
        self.transaction_first_offset = transaction_first_offset
        """Where the transaction under way began, None if there is none."""
        self.batches: deque[BatchMetadata] = deque(batches, BATCHES_REMEMBERED)

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> int:
        """Of the last data batch; -1 if none is known."""
        return self.batches[-1].last_offset if self.batches else -1

    def find_duplicate(self, epoch: int, first_sequence: int, last_sequence: int) -> BatchMetadata | None:
        """The remembered batch with exactly these sequences, if the producer is still in `epoch`."""
        if epoch == self.epoch:
            for batch in self.batches:
                if batch.first_sequence == first_sequence and batch.last_sequence == last_sequence:
                    return batch
        return None

    def set_epoch(self, epoch: int) -> None:
        """Another epoch starts with no batches: its sequences begin anew."""
        if epoch != self.epoch:
            self.epoch = epoch
            self.batches.clear()

    def fork(self) -> ProducerEntry:
        """The entry that an append builds on: the same producer with no batches of its own yet."""
        return ProducerEntry(
            self.producer_id, self.epoch, self.coordinator_epoch, self.last_timestamp_ms, self.transaction_first_offset
        )

    def merge(self, after: ProducerEntry) -> None:
        """Take over what an append made of a fork of this entry."""
        self.set_epoch(after.epoch)
        self.batches.extend(after.batches)
        self.coordinator_epoch = after.coordinator_epoch
        self.last_timestamp_ms = after.last_timestamp_ms
        self.transaction_first_offset = after.transaction_first_offset

    def __repr__(self) -> str:
        return (
            f"ProducerEntry(producer_id={self.producer_id}, epoch={self.epoch}, coordinator_epoch={self.coordinator_epoch}, "
            f"last_timestamp_ms={self.last_timestamp_ms}, transaction_first_offset={self.transaction_first_offset}, "
            f"batches={list(self.batches)})"
        )
