"""Transaction: the state of one transactional id, its producer and its open or last transaction.

Plain data, converted from and to its record (`TransactionLogValue`). `initialising.py`, `partitions.py`, `ending.py` and
`clockwork.py` decide on changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ottla.coordinator.contract import CoordinatorRecord, Producer, put, tombstone
from ottla.coordinator.transactions.states import TransactionState
from ottla.errors import BrokenInvariant
from ottla.ids import TopicPartition
from ottla.wire.messages.transaction_records import PartitionsSchema, TransactionLogKey, TransactionLogValue

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
