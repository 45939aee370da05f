"""Adds partitions to a transaction, and verifies that partitions belong to it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ottla.coordinator.contract import Effects, Instant, Producer, Reply
from ottla.coordinator.transactions.refusals import check_current, check_not_kept, check_producer, check_version, concurrent
from ottla.coordinator.transactions.states import ENDING, TransactionState
from ottla.coordinator.transactions.table import TransactionTable
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition


def add(
    table: TransactionTable,
    transactional_id: str,
    producer: Producer,
    partitions: Iterable[TopicPartition],
    client_version: int,
    reply: Reply,
    response: Any,
    now: Instant,
) -> Effects:
    """Add partitions to the transaction, and begin it if none is open; then send `response` to `reply`."""
    known = table.find(transactional_id)
    check_producer(known, producer)
    check_not_kept(known)
    is_ongoing = known.state == TransactionState.ONGOING
    wanted = known.partitions.union(partitions)
    if is_ongoing and len(wanted) == len(known.partitions):
        return Effects.answer(reply, response)
    check_version(client_version, table.settings.transaction_version)
    added = known.step(
        TransactionState.ONGOING,
        partitions=wanted,
        start_ms=known.start_ms if is_ongoing else now.wall_ms,
        update_ms=now.wall_ms,
        client_version=client_version,
    )
    return Effects.answer(reply, response, [table.record(added)])


def verify(
    table: TransactionTable, transactional_id: str, producer: Producer, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, int]:
    """Partition → NONE if it is in the producer's open transaction, TRANSACTION_ABORTABLE if not. `KafkaError` refuses all."""
    known = table.find(transactional_id)
    check_current(known, producer)
    if known.state in ENDING:
        raise concurrent(known)
    check_not_kept(known)
    return {
        partition: ErrorCode.NONE if partition in known.partitions else ErrorCode.TRANSACTION_ABORTABLE
        for partition in partitions
    }
