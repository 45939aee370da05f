"""The order that a shard gives its host: end a transaction in these partitions."""

from __future__ import annotations

from typing import NamedTuple

from ottla.coordinator.contract import Producer
from ottla.coordinator.transactions.states import TransactionState
from ottla.coordinator.transactions.transaction import Transaction
from ottla.ids import TopicPartition


class SendMarkers(NamedTuple):
    """Write end markers to the partitions of a transaction, then tell the shard (`TransactionShard.complete`)."""

    transactional_id: str
    producer: Producer
    """With the epoch that the markers have."""
    is_commit: bool
    partitions: tuple[TopicPartition, ...]
    """Sorted."""
    transaction_version: int
    """Decides how strictly partitions compare the markers' epoch with their own."""


def markers_of(transaction: Transaction) -> SendMarkers:
    """What a transaction that has been prepared still needs."""
    return SendMarkers(
        transaction.transactional_id,
        transaction.producer,
        transaction.state == TransactionState.PREPARE_COMMIT,
        tuple(sorted(transaction.partitions)),
        transaction.client_version,
    )
