"""Answers ListTransactions and DescribeTransactions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from ottla.coordinator.contract import Instant
from ottla.coordinator.transactions.states import BY_NAME, NAMES, TransactionState
from ottla.coordinator.transactions.table import TransactionTable
from ottla.coordinator.transactions.transaction import Transaction, by_topic
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.wire.messages.describe_transactions import TopicData
from ottla.wire.messages.describe_transactions import TransactionState as DescribedTransaction
from ottla.wire.messages.list_transactions import TransactionState as ListedTransaction


class Filters(NamedTuple):
    """The filters of ListTransactions; an empty one, except `states`, lets everything pass."""

    states: Collection[TransactionState] | None = None
    """None: every state. Empty: none, since the request named only unknown states."""
    producer_ids: Collection[int] = ()
    running_for_ms: int = -1
    """Only transactions that started longer ago than this; negative: all."""
    is_wanted_id: Callable[[str], bool] | None = None

    def wants(self, transaction: Transaction, now: Instant) -> bool:
        return (
            (not self.producer_ids or transaction.producer_id in self.producer_ids)
            and (self.states is None or transaction.state in self.states)
            and (self.running_for_ms < 0 or now.wall_ms - transaction.start_ms > self.running_for_ms)
            and (self.is_wanted_id is None or self.is_wanted_id(transaction.transactional_id))
        )


def states_named(names: Collection[str]) -> tuple[Collection[TransactionState] | None, list[str]]:
    """(the states to filter by, unknown names). Without names the filter is None."""
    known = frozenset(BY_NAME[name] for name in names if name in BY_NAME)
    unknown = [name for name in dict.fromkeys(names) if name not in BY_NAME]
    return (known if names else None), unknown


def list_transactions(table: TransactionTable, ids: Iterable[str], filters: Filters, now: Instant) -> list[ListedTransaction]:
    """One entry for each of the transactional ids that exists and passes `filters`."""
    return [
        ListedTransaction(
            transactional_id=known.transactional_id,
            producer_id=known.producer_id,
            transaction_state=NAMES[known.state],
        )
        for known in map(table.by_id.get, ids)
        if known is not None and filters.wants(known, now)
    ]


def describe(table: TransactionTable, transactional_id: str) -> DescribedTransaction:
    """The description of a transactional id; `KafkaError` if it is unknown."""
    known = table.by_id.get(transactional_id)
    if known is None:
        raise KafkaError(
            ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, f"there is no transactional id {transactional_id!r}: it may have expired"
        )
    return DescribedTransaction(
        transactional_id=transactional_id,
        transaction_state=NAMES[known.state],
        transaction_timeout_ms=known.timeout_ms,
        transaction_start_time_ms=known.start_ms,
        # Of a kept transaction, the producer that can end it.
        producer_id=known.owner.id,
        producer_epoch=known.owner.epoch,
        topics=[TopicData(topic=topic, partitions=indexes) for topic, indexes in by_topic(known.partitions).items()],
    )
