"""SendMarkers: the shard's order to its host to write a transaction's end markers."""

from __future__ import annotations

from typing import NamedTuple

from ottla.coordinator.contract import Producer
from ottla.coordinator.transactions.states import TransactionState
from ottla.coordinator.transactions.transaction import Transaction
from ottla.ids import TopicPartition


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
