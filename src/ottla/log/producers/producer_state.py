"""The producer state of one partition: expected sequences, open transactions, the last stable offset.

A pure state machine, stepped per append: `begin` gives a `ProducerAppend` that checks batches and changes nothing; `apply`
applies its result once the bytes are in the log. No clock, no disk; `producer_snapshot.py` writes snapshots of it.

Offsets:
- `first_undecided_offset`: the oldest record of a transaction without an end marker. Compaction stops there.
- `first_unstable_offset`: the oldest record of a transaction without an end marker below the high watermark. read_committed
  consumers stop there: see `last_stable_offset`.
- `map_end_offset`: every batch below it has been applied. A snapshot taken now is named by it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ottla.errors import BrokenInvariant, KafkaError
from ottla.errors.codes import ErrorCode
from ottla.log.fast_path.kernels import ProducersTail
from ottla.log.producers.append_checks import AppendOrigin, CompletedTransaction, ProducerAppend, VerificationState
from ottla.log.producers.producer_entry import ProducerEntry

LATE_TRANSACTION_GRACE_MS = 5 * 60_000


class EndedTransaction(NamedTuple):
    """A transaction that has ended. An aborted one gets an entry in the transaction index."""

    producer_id: int
    first_offset: int
    last_offset: int
    aborted: bool
    last_stable_offset: int
    """The last stable offset once the marker is below the high watermark."""


class ProducerState(ProducersTail):
    """The producers of `partition`, whose name is used in messages only."""

    def __init__(self, partition: str, start_offset: int = 0) -> None:
        self._partition = partition
        self._producers = {}
        self._verifications = {}
        self._ongoing = {}
        self._unreplicated = {}
        self.map_end_offset = start_offset
        self.first_unstable_offset = None

    # Queries

    @property
    def producers(self) -> dict[int, ProducerEntry]:
        """By producer id. Read-only for callers."""
        return self._producers

    @property
    def is_empty(self) -> bool:
        return not self._producers and not self._unreplicated

    @property
    def first_undecided_offset(self) -> int | None:
        return next(iter(self._ongoing), None)

    def last_stable_offset(self, high_watermark: int, log_start_offset: int = 0) -> int:
        """The end of what read_committed consumers may read."""
        unstable = self.first_unstable_offset
        if unstable is None:
            return high_watermark
        return min(high_watermark, max(unstable, log_start_offset))

    def has_ongoing_transaction(self, producer_id: int, epoch: int) -> bool:
        entry = self._producers.get(producer_id)
        return entry is not None and entry.transaction_first_offset is not None and entry.epoch == epoch

    def has_late_transaction(self, now_ms: int, transaction_timeout_max_ms: int) -> bool:
        """Whether the oldest open transaction is older than the largest timeout plus a grace of five minutes."""
        producer_id = next(iter(self._ongoing.values()), None)
        entry = self._producers.get(producer_id) if producer_id is not None else None
        if entry is None or entry.last_timestamp_ms <= 0:
            return False
        return now_ms - entry.last_timestamp_ms > transaction_timeout_max_ms + LATE_TRANSACTION_GRACE_MS

    # Appending: decide, then apply

    def begin(
        self,
        origin: AppendOrigin,
        *,
        transaction_version: int = 0,
        verify: bool = False,
        verified_by: VerificationState | None = None,
    ) -> ProducerAppend:
        """Start to check one append. Nothing here changes until `apply`.

        `transaction_version` is that of the end markers in it. With `verify`, a transaction's first batch needs the
        verification that its coordinator has confirmed.
        """
        return ProducerAppend(self._partition, self, origin, transaction_version, verify, verified_by)

    def apply(self, append: ProducerAppend, end_offset: int, now_ms: int = 0) -> list[EndedTransaction]:
        """Apply an append whose bytes are in the log, which now ends at `end_offset`.

        Returns the transactions that it ended; the caller adds the aborted ones to the transaction index.
        """
        if append.in_line is not None:
            entry, batch = append.in_line
            entry.batches.append(batch)
            entry.last_timestamp_ms = batch.timestamp_ms
            entry.seen_ms = now_ms
            self.map_end_offset = end_offset
            return []
        for producer_id, after in append.updated.items():
            before = self._producers.get(producer_id)
            if before is None:
                before = self._producers[producer_id] = after
            else:
                before.merge(after)
            before.seen_ms = now_ms
        for first_offset, producer_id in append.started:
            self._ongoing[first_offset] = producer_id
        for producer_id in append.transactional_producers:
            self._verifications.pop(producer_id, None)
        ended = [self._complete(transaction) for transaction in append.completed] if append.completed else []
        self.map_end_offset = end_offset
        if append.started or ended:
            self.find_first_unstable()
        return ended

    def advance(self, end_offset: int) -> None:
        """Note that the log has grown to `end_offset` by batches without producers."""
        self.map_end_offset = end_offset

    def _complete(self, transaction: CompletedTransaction) -> EndedTransaction:
        producer_id, first_offset, last_offset, aborted = transaction
        others = (offset for offset, other in self._ongoing.items() if other != producer_id)
        last_stable_offset = next(others, last_offset + 1)
        if self._ongoing.pop(first_offset, None) is None:
            raise BrokenInvariant(
                f"{self._partition}: producer {producer_id} ends a transaction from offset {first_offset} that was never begun"
            )
        self._unreplicated[first_offset] = last_offset
        return EndedTransaction(producer_id, first_offset, last_offset, aborted, last_stable_offset)

    # Expiry, log start, loading

    def on_log_start(self, log_start_offset: int) -> None:
        """Note that records below `log_start_offset` are gone. Producers stay known: their next sequences are still checked."""
        self.on_high_watermark(log_start_offset)
        self.map_end_offset = max(self.map_end_offset, log_start_offset)

    def remove_expired(self, now_ms: int, expiration_ms: int) -> int:
        """Remove producers that have not written for `expiration_ms` and have no open transaction; returns how many."""
        expired = [entry.producer_id for entry in self._producers.values() if is_expired(entry, now_ms, expiration_ms)]
        for producer_id in expired:
            del self._producers[producer_id]
        stale = [i for i, state in self._verifications.items() if now_ms - state.started_ms >= expiration_ms]
        for producer_id in stale:
            del self._verifications[producer_id]
        return len(expired)

    def remove_idle(self, seen_ms: int) -> int:
        """Remove producers that have not written after `seen_ms` and have no transaction open or being verified.

        Returns how many.
        """
        idle = [
            producer_id
            for producer_id, entry in self._producers.items()
            if entry.seen_ms <= seen_ms and entry.transaction_first_offset is None and producer_id not in self._verifications
        ]
        for producer_id in idle:
            del self._producers[producer_id]
        return len(idle)

    def reset(self, offset: int) -> None:
        """Remove all producers; the log continues at `offset`."""
        self._producers.clear()
        self._ongoing.clear()
        self._unreplicated.clear()
        self.first_unstable_offset = None
        self.map_end_offset = offset

    def load(self, entries: Iterable[ProducerEntry], offset: int, now_ms: int, expiration_ms: int) -> None:
        """Replace all state by the snapshot at `offset`, without the producers that have expired since."""
        self.reset(offset)
        for entry in entries:
            if not is_expired(entry, now_ms, expiration_ms):
                self._producers[entry.producer_id] = entry
        open_transactions = (
            (entry.transaction_first_offset, entry.producer_id)
            for entry in self._producers.values()
            if entry.transaction_first_offset is not None
        )
        self._ongoing.update(sorted(open_transactions))
        self.find_first_unstable()

    # Transaction verification

    def begin_verification(
        self, producer_id: int, sequence: int, epoch: int, supports_epoch_bump: bool, now_ms: int
    ) -> VerificationState | None:
        """The verification that a transactional batch must wait for; None if its transaction is known to be open here."""
        entry = self._producers.get(producer_id)
        if entry is not None and epoch < entry.epoch:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"producer {producer_id} writes to {self._partition} in epoch {epoch}, which is older than its epoch "
                f"{entry.epoch} seen here: a newer instance has taken its place",
            )
        if self.has_ongoing_transaction(producer_id, epoch):
            return None
        state = self._verifications.get(producer_id)
        if state is None:
            state = self._verifications[producer_id] = VerificationState(now_ms, sequence, epoch, supports_epoch_bump)
        else:
            state.note(sequence, epoch)
        return state

    def verification(self, producer_id: int) -> VerificationState | None:
        return self._verifications.get(producer_id)


def is_expired(entry: ProducerEntry, now_ms: int, expiration_ms: int) -> bool:
    """Whether a producer has no open transaction and has not written for `expiration_ms`."""
    return entry.transaction_first_offset is None and now_ms - entry.last_timestamp_ms >= expiration_ms
