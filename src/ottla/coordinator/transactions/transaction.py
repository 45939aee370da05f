"""Transaction: the state of one transactional id, its producer and its open or last transaction.

Plain data, converted from and to its record (`TransactionLogValue`). `init_producer_id.py`, `end_txn.py` and
`shard.py` decide on changes.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any, NamedTuple

from ottla.coordinator.contract import CoordinatorRecord, Producer, put, tombstone
from ottla.errors import BrokenInvariant
from ottla.ids import TopicPartition
from ottla.wire.messages.transaction_records import PartitionsSchema, TransactionLogKey, TransactionLogValue

# The states of a transaction, with Kafka's numbers and names, and the allowed transitions.
#
# `PREPARE_EPOCH_FENCE` is never written: Kafka uses it between the decision to fence a producer and the abort of its
# transaction, which are one step here. `DEAD` is a tombstone in the log, so no client sees it. Both are listed because
# requests may filter by them.


class TransactionState(IntEnum):
    """The state of a transactional id."""

    EMPTY = 0
    """The id has a producer, which has not begun a transaction yet."""
    ONGOING = 1
    """Partitions have been added."""
    PREPARE_COMMIT = 2
    """The commit is decided. Not every partition has its marker."""
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    """Every partition has its marker."""
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7


_EMPTY, _ONGOING = TransactionState.EMPTY, TransactionState.ONGOING
_COMMITTING, _ABORTING = TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT
_COMMITTED, _ABORTED = TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT

ENDING = frozenset({_COMMITTING, _ABORTING})
"""Decided, but not every partition has its marker."""
AT_REST = frozenset({_EMPTY, _COMMITTED, _ABORTED})
"""No transaction is open: the id may expire, a new transaction may begin."""

FOLLOWS: dict[TransactionState, frozenset[TransactionState]] = {
    _EMPTY: AT_REST,
    _ONGOING: AT_REST | {_ONGOING},
    _COMMITTING: frozenset({_ONGOING}),
    _ABORTING: AT_REST | {_ONGOING},
    _COMMITTED: frozenset({_COMMITTING}),
    _ABORTED: frozenset({_ABORTING}),
    TransactionState.DEAD: AT_REST,
    TransactionState.PREPARE_EPOCH_FENCE: frozenset({_ONGOING}),
}
"""State → the states that it may follow."""

NAMES: dict[TransactionState, str] = {
    _EMPTY: "Empty",
    _ONGOING: "Ongoing",
    _COMMITTING: "PrepareCommit",
    _ABORTING: "PrepareAbort",
    _COMMITTED: "CompleteCommit",
    _ABORTED: "CompleteAbort",
    TransactionState.DEAD: "Dead",
    TransactionState.PREPARE_EPOCH_FENCE: "PrepareEpochFence",
}
"""As ListTransactions and DescribeTransactions name them."""

BY_NAME = {name: state for state, name in NAMES.items()}


NO_ID = -1
NO_EPOCH = -1
NO_TIME = -1
EPOCH_MAX = 2**15 - 1
EPOCH_BUMP_SINCE = 2
"""The first transaction version in which every transaction has an epoch of its own."""
TAGGED_SINCE = 1
"""The first transaction version whose records have tagged fields."""


class Transaction(NamedTuple):
    """The state of a transactional id, as in its record."""

    transactional_id: str
    producer_id: int
    epoch: int
    state: TransactionState
    timeout_ms: int
    partitions: frozenset[TopicPartition] = frozenset()
    """The partitions that the transaction has, or may have, written to."""
    start_ms: int = NO_TIME
    update_ms: int = NO_TIME
    previous_producer_id: int = NO_ID
    """The producer id before the last change. It differs from `producer_id` only after the epochs of an id were exhausted."""
    next_producer_id: int = NO_ID
    """The producer id after the transaction has ended, if the epochs of the current one are exhausted, or if it was kept."""
    client_version: int = 0
    """The transaction version of the request that made the last change."""
    next_epoch: int = NO_EPOCH
    """With `next_producer_id`, the producer that owns a kept transaction; once that is being ended, the producer after it."""

    @property
    def producer(self) -> Producer:
        """The producer of the transaction, as its partitions know it."""
        return Producer(self.producer_id, self.epoch)

    @property
    def is_kept(self) -> bool:
        """Whether InitProducerId has kept the transaction for a later producer, which may only end it (KIP-939)."""
        return self.next_epoch != NO_EPOCH

    @property
    def owner(self) -> Producer:
        """The producer that may go on with the transactional id, or end what is open."""
        return Producer(self.next_producer_id, self.next_epoch) if self.is_kept else self.producer

    @property
    def is_epoch_exhausted(self) -> bool:
        """Whether no later epoch may be given to a producer. The last epoch is reserved for fencing."""
        return is_exhausted(self.epoch)

    def step(self, state: TransactionState, **changes: Any) -> Transaction:
        """The transaction after a change to `state`."""
        return self._replace(state=state, previous_producer_id=self.producer_id, **changes)

    @property
    def next_producer(self) -> Producer:
        """The producer after the transaction, which is being ended, has ended."""
        if self.client_version >= EPOCH_BUMP_SINCE and self.next_producer_id != NO_ID and not self.is_kept:
            return Producer(self.next_producer_id, 0)
        return self.owner

    def completed(self, now_ms: int) -> Transaction:
        """The transaction when every partition has its marker."""
        if self.state == TransactionState.PREPARE_COMMIT:
            state = TransactionState.COMPLETE_COMMIT
        elif self.state == TransactionState.PREPARE_ABORT:
            state = TransactionState.COMPLETE_ABORT
        else:
            raise BrokenInvariant(f"the transaction of {self.transactional_id!r} cannot be complete: it is {self.state.name}")
        producer_id, epoch = self.next_producer
        completed = self.step(
            state,
            producer_id=producer_id,
            epoch=epoch,
            next_producer_id=NO_ID,
            next_epoch=NO_EPOCH,
            partitions=frozenset(),
            update_ms=now_ms,
        )
        # A retry of EndTxn comes from the producer that ended the transaction, not from the one that wrote it.
        return completed._replace(previous_producer_id=self.previous_producer_id) if self.is_kept else completed


def next_of(producer: Producer, new_producer_id: Callable[[], int]) -> Producer:
    """The next epoch of a producer, or another producer id if its epochs are exhausted."""
    if is_exhausted(producer.epoch):
        return Producer(new_producer_id(), 0)
    return Producer(producer.id, producer.epoch + 1)


def is_exhausted(epoch: int) -> bool:
    """Whether no epoch after `epoch` may be given to a producer."""
    return epoch >= EPOCH_MAX - 1


def record_of(transaction: Transaction, transaction_version: int) -> CoordinatorRecord:
    """The record of a transaction; `transaction_version` is the cluster's."""
    value = TransactionLogValue(
        producer_id=transaction.producer_id,
        producer_epoch=transaction.epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state,
        transaction_partitions=None if transaction.state == TransactionState.EMPTY else _grouped(transaction.partitions),
        transaction_last_update_timestamp_ms=transaction.update_ms,
        transaction_start_timestamp_ms=transaction.start_ms,
    )
    key = TransactionLogKey(transactional_id=transaction.transactional_id)
    if transaction_version < TAGGED_SINCE and not transaction.is_kept:
        return put(key, value, 0)
    value.previous_producer_id = transaction.previous_producer_id
    value.next_producer_id = transaction.next_producer_id
    value.client_transaction_version = transaction.client_version
    value.next_producer_epoch = transaction.next_epoch
    return put(key, value, 1)


def tombstone_of(transactional_id: str) -> CoordinatorRecord:
    """The record that removes a transactional id."""
    return tombstone(TransactionLogKey(transactional_id=transactional_id))


def transaction_of(transactional_id: str, value: TransactionLogValue) -> Transaction:
    """The transaction in a record."""
    return Transaction(
        transactional_id=transactional_id,
        producer_id=value.producer_id,
        epoch=value.producer_epoch,
        state=TransactionState(value.transaction_status),
        timeout_ms=value.transaction_timeout_ms,
        partitions=frozenset(
            TopicPartition(topic.topic, index) for topic in value.transaction_partitions or () for index in topic.partition_ids
        ),
        start_ms=value.transaction_start_timestamp_ms,
        update_ms=value.transaction_last_update_timestamp_ms,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        client_version=value.client_transaction_version,
        next_epoch=value.next_producer_epoch,
    )


def by_topic(partitions: frozenset[TopicPartition]) -> dict[str, list[int]]:
    """Topic → indexes, both sorted: the order of a set differs between runs."""
    found: dict[str, list[int]] = {}
    for topic, index in sorted(partitions):
        found.setdefault(topic, []).append(index)
    return found


def _grouped(partitions: frozenset[TopicPartition]) -> list[PartitionsSchema]:
    return [PartitionsSchema(topic=topic, partition_ids=indexes) for topic, indexes in by_topic(partitions).items()]


# SendMarkers: the shard's order to its runtime to write a transaction's end markers.


class SendMarkers(NamedTuple):
    """Write end markers to the partitions of a transaction, then call `TransactionShard.complete`."""

    transactional_id: str
    producer: Producer
    """With the epoch of the markers."""
    is_commit: bool
    partitions: tuple[TopicPartition, ...]
    """Sorted."""
    transaction_version: int
    """Decides how strictly partitions compare the markers' epoch with the producer's."""


def markers_of(transaction: Transaction) -> SendMarkers:
    """The markers of a transaction in PrepareCommit or PrepareAbort."""
    return SendMarkers(
        transaction.transactional_id,
        transaction.producer,
        transaction.state == TransactionState.PREPARE_COMMIT,
        tuple(sorted(transaction.partitions)),
        transaction.client_version,
    )
