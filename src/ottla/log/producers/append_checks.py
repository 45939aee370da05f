"""Checks the producer epochs, sequences and transactions of an append. Decides; changes nothing.

One `ProducerAppend` takes the batches of one append in order. It refuses with a `KafkaError`, or recognises a batch that is
already in the log, or collects what `ProducerState.apply` applies once the bytes are in the log. The rules are those of Kafka
4.3:

- An unknown producer may begin at any sequence: its earlier records may have been deleted. After verification of a transaction
  of version 2 it must begin at 0.
- A known producer continues with the next sequence; in a new epoch it begins at 0. An older epoch is refused.
- An end marker needs the producer's epoch or a later one; from transaction version 2 on a later one, since every
  transaction ends with a new epoch. A repeat of a marker whose transaction has ended is accepted.
- Replicated batches were checked by the leader and are not checked again.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.log.fast_path.kernels import ProducersTail
from ottla.log.producers.producer_entry import NO_EPOCH, NO_SEQUENCE, BatchMetadata, ProducerEntry
from ottla.records.batch import BatchView
from ottla.records.control import parse_end_marker
from ottla.records.reader import read_records

# The proof that a transaction coordinator knows of a transaction in this partition.
#
# Between the request to the coordinator and its response, an end marker may be written and a new transaction begin. The
# response must count only for the verification that sent the request. So the object's identity is the token: an append is
# verified if it carries the same object that the partition still holds.


class VerificationState:
    """One verification: waiting for the coordinator, or confirmed and not yet used."""

    __slots__ = ("epoch", "lowest_sequence", "started_ms", "supports_epoch_bump")

    def __init__(self, started_ms: int, sequence: int, epoch: int, supports_epoch_bump: bool) -> None:
        self.started_ms = started_ms
        self.lowest_sequence = sequence
        """The lowest first sequence that waits for this verification. A batch above it must not be appended before it."""
        self.epoch = epoch
        self.supports_epoch_bump = supports_epoch_bump
        """Whether the producer uses transaction version 2, where each transaction has its own epoch."""

    def note(self, sequence: int, epoch: int) -> None:
        """Note another batch that waits for this verification."""
        if epoch == self.epoch:
            self.lowest_sequence = min(self.lowest_sequence, sequence)
        elif epoch > self.epoch:
            self.epoch = epoch
            self.lowest_sequence = sequence


# The origin of an append: client, coordinator or replication. It decides how much is checked before the append.


class AppendOrigin(Enum):
    """Where an append comes from."""

    CLIENT = "client"
    """A producer: everything is checked."""
    COORDINATOR = "coordinator"
    """A group or transaction coordinator on this node: producer epochs are checked. Its batches have no sequences."""
    REPLICATION = "replication"
    """The leader's log, or this log's own bytes at recovery. They were checked when first written and are not checked again."""
    RAFT_LEADER = "raft leader"
    """The leader of the metadata quorum. Its batches have no producers."""


SEQUENCE_MAX = 2**31 - 1
EPOCH_MAX = 2**15 - 1


class CompletedTransaction(NamedTuple):
    """A transaction that an append ends: the offsets of its first record and of its marker."""

    producer_id: int
    first_offset: int
    last_offset: int
    aborted: bool


def _metadata(batch: BatchView, first_offset: int, timestamp_ms: int | None) -> BatchMetadata:
    time_ms = batch.max_timestamp if timestamp_ms is None else timestamp_ms
    last_offset = first_offset + batch.last_offset_delta
    return BatchMetadata(batch.base_sequence, batch.last_sequence, first_offset, last_offset, time_ms)


class ProducerAppend:
    """The producer checks of one append, batch by batch. Get one from `ProducerState.begin`."""

    __slots__ = (
        "_known",
        "_origin",
        "_partition",
        "_tail",
        "_transaction_version",
        "_verifications",
        "_verified_by",
        "_verify",
        "completed",
        "in_line",
        "started",
        "transactional_producers",
        "updated",
    )

    def __init__(
        self,
        partition: str,
        tail: ProducersTail,
        origin: AppendOrigin,
        transaction_version: int,
        verify: bool,
        verified_by: VerificationState | None,
    ) -> None:
        self._partition = partition
        self._tail = tail
        self._known: dict[int, ProducerEntry] = tail._producers
        self._verifications: dict[int, VerificationState] = tail._verifications
        self._origin = origin
        self._transaction_version = transaction_version
        self._verify = verify
        self._verified_by = verified_by
        self.in_line: tuple[ProducerEntry, BatchMetadata] | None = None
        """The only batch of this append so far, if it has its producer's next sequence: needs no further check."""
        self.updated: dict[int, ProducerEntry] = {}
        """The entries of this append's producers as they will be after it."""
        self.started: list[tuple[int, int]] = []
        """(first offset, producer id) of the transactions that this append begins."""
        self.completed: list[CompletedTransaction] = []
        """The transactions that this append ends, in order."""
        self.transactional_producers: list[int] = []
        """Producers whose verification is used up by this append."""

    def add(self, batch: BatchView, first_offset: int, timestamp_ms: int | None = None) -> BatchMetadata | None:
        """Check a batch that will be at `first_offset`, and add it to this append.

        If it is a duplicate, returns the batch already in the log: the caller then appends nothing and answers with its
        offsets. `timestamp_ms` is the batch's largest timestamp if the log sets it. `KafkaError` if the batch is refused.
        """
        producer_id = batch.producer_id
        if producer_id < 0:
            return None
        if self.in_line is None and not self.updated:
            entry = self._tail.next_in_line(producer_id, batch.producer_epoch, batch.attributes, batch.base_sequence)
            if entry is not None:
                self.in_line = entry, _metadata(batch, first_offset, timestamp_ms)
                return None
        known = self._known.get(producer_id)
        if known is not None and self._origin is AppendOrigin.CLIENT:
            duplicate = known.find_duplicate(batch.producer_epoch, batch.base_sequence, batch.last_sequence)
            if duplicate is not None:
                return duplicate
        if self.in_line is not None:
            self._leave_line(*self.in_line)
        if batch.is_transactional:
            if self._origin is not AppendOrigin.REPLICATION:
                self._require_transaction(batch)
            self.transactional_producers.append(producer_id)
        if not batch.is_control:
            self.add_data(
                batch.producer_id,
                batch.producer_epoch,
                _metadata(batch, first_offset, timestamp_ms),
                batch.is_transactional,
            )
        elif batch.count > 0:  # compaction leaves an empty control batch of a transaction it removed
            record = read_records(batch)[0]
            marker = parse_end_marker(record)
            self.add_marker(
                batch.producer_id,
                batch.producer_epoch,
                marker.coordinator_epoch,
                not marker.is_commit,
                first_offset,
                record.timestamp if timestamp_ms is None else timestamp_ms,
            )
        return None

    def _leave_line(self, known: ProducerEntry, batch: BatchMetadata) -> None:
        """Check the batch in `in_line` like any other, since more batches follow it."""
        self.in_line = None
        entry = self._entry(known.producer_id)
        entry.batches.append(batch)
        entry.last_timestamp_ms = batch.timestamp_ms

    def add_data(self, producer_id: int, epoch: int, batch: BatchMetadata, transactional: bool) -> None:
        """Check a data batch and add it to this append."""
        entry = self._entry(producer_id)
        self._check_epoch(entry, epoch)
        if self._origin is AppendOrigin.CLIENT:
            self._check_sequence(entry, epoch, batch)
        if entry.transaction_first_offset is None:
            if transactional:
                entry.transaction_first_offset = batch.first_offset
                self.started.append((batch.first_offset, producer_id))
        elif not transactional:
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE,
                f"producer {producer_id} writes outside a transaction at offset {batch.first_offset} of {self._partition}, but "
                f"its transaction from offset {entry.transaction_first_offset} is open: commit or abort that first",
            )
        entry.set_epoch(epoch)
        entry.batches.append(batch)
        entry.last_timestamp_ms = batch.timestamp_ms

    def add_marker(
        self, producer_id: int, epoch: int, coordinator_epoch: int, aborted: bool, offset: int, timestamp_ms: int
    ) -> None:
        """Check an end marker and add it to this append."""
        entry = self._entry(producer_id)
        self._check_marker_epoch(entry, epoch)
        if coordinator_epoch < entry.coordinator_epoch and self._origin is not AppendOrigin.REPLICATION:
            raise KafkaError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"a transaction coordinator in epoch {coordinator_epoch} ends a transaction of producer {producer_id} in "
                f"{self._partition}, where one in epoch {entry.coordinator_epoch} has been seen: it has been replaced and must "
                "resign",
            )
        if entry.transaction_first_offset is not None:
            self.completed.append(CompletedTransaction(producer_id, entry.transaction_first_offset, offset, aborted))
        entry.set_epoch(epoch)
        entry.coordinator_epoch = coordinator_epoch
        entry.last_timestamp_ms = timestamp_ms
        entry.transaction_first_offset = None

    def _entry(self, producer_id: int) -> ProducerEntry:
        entry = self.updated.get(producer_id)
        if entry is None:
            known = self._known.get(producer_id)
            entry = self.updated[producer_id] = ProducerEntry(producer_id) if known is None else known.fork()
        return entry

    def _require_transaction(self, batch: BatchView) -> None:
        known = self._known.get(batch.producer_id)
        if known is not None:
            if known.transaction_first_offset is not None and known.epoch == batch.producer_epoch:
                return
            if batch.producer_epoch < known.epoch:
                raise self._stale_epoch(batch.producer_id, batch.producer_epoch, known.epoch, "older than")
        if not self._verify or batch.is_control:
            return
        verification = self._verifications.get(batch.producer_id)
        if verification is None or verification is not self._verified_by:
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE,
                f"producer {batch.producer_id} writes to {self._partition} within a transaction that its coordinator has not "
                "confirmed for this partition: abort the transaction and begin it again",
            )

    def _check_epoch(self, entry: ProducerEntry, epoch: int) -> None:
        if epoch < entry.epoch and self._origin is not AppendOrigin.REPLICATION:
            raise self._stale_epoch(entry.producer_id, epoch, entry.epoch, "older than")

    def _check_marker_epoch(self, entry: ProducerEntry, epoch: int) -> None:
        if self._transaction_version < 2 or epoch > entry.epoch or self._origin is AppendOrigin.REPLICATION:
            self._check_epoch(entry, epoch)
            return
        is_repeat = epoch == entry.epoch and (entry.transaction_first_offset is None or epoch == EPOCH_MAX)
        if not is_repeat:
            raise self._stale_epoch(entry.producer_id, epoch, entry.epoch, "not above")

    def _stale_epoch(self, producer_id: int, epoch: int, known_epoch: int, how: str) -> KafkaError:
        return KafkaError(
            ErrorCode.INVALID_PRODUCER_EPOCH,
            f"producer {producer_id} writes to {self._partition} in epoch {epoch}, which is {how} its epoch {known_epoch} seen "
            "here: a newer instance has taken its place, or its transaction was ended for it",
        )

    def _check_sequence(self, entry: ProducerEntry, epoch: int, batch: BatchMetadata) -> None:
        producer_id = entry.producer_id
        sequence = batch.first_sequence
        known = self._known.get(producer_id)
        verification = self._verifications.get(producer_id)
        if verification is not None:
            if verification.supports_epoch_bump and sequence != 0 and (known is None or not known.batches):
                raise self._out_of_order(producer_id, batch, "its first batch here must begin at 0")
            if sequence > verification.lowest_sequence:
                raise self._out_of_order(
                    producer_id, batch, f"a batch that begins at {verification.lowest_sequence} is still to come"
                )
        if epoch != entry.epoch:
            if sequence != 0 and entry.epoch != NO_EPOCH:
                raise self._out_of_order(
                    producer_id, batch, f"epoch {epoch} follows epoch {entry.epoch}, so it must begin at 0"
                )
            return
        if known is None or known.epoch == NO_EPOCH:
            return  # all its records may have been deleted, so any sequence is accepted
        if entry.batches:
            last = entry.batches[-1].last_sequence
        else:
            last = known.last_sequence if known.epoch == epoch else NO_SEQUENCE
        if sequence != last + 1 and not (sequence == 0 and last == SEQUENCE_MAX):
            raise self._out_of_order(producer_id, batch, f"the last one here ends at {last}")

    def _out_of_order(self, producer_id: int, batch: BatchMetadata, why: str) -> KafkaError:
        return KafkaError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"producer {producer_id} sends {self._partition} a batch from sequence {batch.first_sequence} on, but {why}: "
            "send the missing batches first, or begin again with a new producer epoch",
        )
