"""The state of one producer in a partition: epoch, the last five batches, the open transaction.

Plain data; the rules are in `append_checks.py` (may this be appended?) and `producer_state.py` (what has been appended).
"""

from __future__ import annotations

from collections.abc import Iterable

from ottla.log.fast_path.kernels import BATCHES_REMEMBERED, BatchMetadata, ProducerTail, RecentBatches

__all__ = ["BATCHES_REMEMBERED", "NO_EPOCH", "NO_SEQUENCE", "NO_TIMESTAMP", "BatchMetadata", "ProducerEntry"]

NO_EPOCH = -1
NO_SEQUENCE = -1
NO_TIMESTAMP = -1


class ProducerEntry(ProducerTail):
    """One producer of a partition."""

    __slots__ = ("producer_id",)

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
        self.last_timestamp_ms = last_timestamp_ms
        self.seen_ms = 0
        self.transaction_first_offset = transaction_first_offset
        self.batches = RecentBatches(batches)

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> int:
        """The last offset of the last data batch; -1 if none is known."""
        return self.batches[-1].last_offset if self.batches else -1

    def find_duplicate(self, epoch: int, first_sequence: int, last_sequence: int) -> BatchMetadata | None:
        """The remembered batch with exactly these sequences, if the producer is still in `epoch`."""
        if epoch == self.epoch:
            for batch in self.batches:
                if batch.first_sequence == first_sequence and batch.last_sequence == last_sequence:
                    return batch
        return None

    def fork(self) -> ProducerEntry:
        """A copy without batches, for an append to add to."""
        return ProducerEntry(
            self.producer_id, self.epoch, self.coordinator_epoch, self.last_timestamp_ms, self.transaction_first_offset
        )

    def merge(self, after: ProducerEntry) -> None:
        """Apply `after`, a fork of this entry to which an append was added."""
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
