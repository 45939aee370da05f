"""TransactionShard: the state of one partition of __transaction_state, its transactional ids and their transactions.

Joins the decisions and implements the contract with the runtime (`ottla.coordinator.contract`). Its orders are `SendMarkers`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Any, NamedTuple

from ottla.coordinator.contract import Answer, CoordinatorRecord, Effects, Instant, Producer, Reply
from ottla.coordinator.transactions.end_txn import complete, end, fence
from ottla.coordinator.transactions.init_producer_id import TIMEOUT_NEVER_MS, initialise
from ottla.coordinator.transactions.refusals import check_current, check_not_kept, check_producer, check_version, concurrent
from ottla.coordinator.transactions.table import TransactionSettings, TransactionTable
from ottla.coordinator.transactions.transaction import (
    AT_REST,
    BY_NAME,
    ENDING,
    NAMES,
    Transaction,
    TransactionState,
    by_topic,
    markers_of,
    tombstone_of,
)
from ottla.coordinator.transactions.transaction_replay import FastTransactionReplay
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition
from ottla.wire.messages.describe_transactions import TopicData
from ottla.wire.messages.describe_transactions import TransactionState as DescribedTransaction
from ottla.wire.messages.end_txn import EndTxnRequest
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.list_transactions import TransactionState as ListedTransaction

logger = logging.getLogger("ottla.coordinator")


# Timeouts of transactions: aborts transactions past their timeout, and expires unused transactional ids.

EXPIRE_PER_BATCH = 500
"""The most ids that expire at a time: their tombstones share a batch."""

ABORTS, EXPIRATIONS = "aborts", "expirations"


class Clockwork:
    """Looks for timed-out transactions and expired ids at the intervals in the settings, while the shard has any."""

    __slots__ = ("_table",)

    def __init__(self, table: TransactionTable) -> None:
        self._table = table

    def watch(self, now: Instant) -> None:
        """Set the timers for both checks, unless they are set. Called when an id or a transaction may be new."""
        table = self._table
        if ABORTS not in table.timers:
            interval_ms = table.settings.transaction_abort_timed_out_transaction_cleanup_interval_ms
            table.timers.set(ABORTS, now.steady_ms + interval_ms, self._look_for_overdue)
        if EXPIRATIONS not in table.timers:
            interval_ms = table.settings.transaction_remove_expired_transaction_cleanup_interval_ms
            table.timers.set(EXPIRATIONS, now.steady_ms + interval_ms, self._expire)

    def _look_for_overdue(self, now: Instant) -> Effects:
        is_any_open = False
        for known in self._table.by_id.values():
            if known.state == TransactionState.ONGOING:
                is_any_open = True
                if _is_overdue(known, now):
                    # A timer for each: the records of all aborts might not fit into one batch.
                    self._table.timers.set((ABORTS, known.transactional_id), now.steady_ms, partial(self._abort, known))
        if is_any_open:
            self.watch(now)
        return Effects()

    def _abort(self, known: Transaction, now: Instant) -> Effects:
        if self._table.by_id.get(known.transactional_id) is not known:
            return Effects()
        why = f"it was open for longer than the transaction.timeout.ms of its producer, {known.timeout_ms} ms"
        try:
            return fence(self._table, known, now, why)
        except KafkaError as refused:
            logger.info("the transaction of %r cannot be aborted yet: %s", known.transactional_id, refused)
            return Effects()

    def _expire(self, now: Instant) -> Effects:
        expiration_ms = self._table.settings.transactional_id_expiration_ms
        oldest_ms = now.wall_ms - expiration_ms
        expired = [known for known in self._table.by_id.values() if known.state in AT_REST and known.update_ms <= oldest_ms]
        for known in expired[:EXPIRE_PER_BATCH]:
            logger.info(
                "the transactional id %r (producer %d, epoch %d) is forgotten: it was not used for "
                "transactional.id.expiration.ms, %d ms",
                known.transactional_id,
                known.producer_id,
                known.epoch,
                expiration_ms,
            )
        if len(expired) > EXPIRE_PER_BATCH:
            self._table.timers.set(EXPIRATIONS, now.steady_ms, self._expire)
        elif len(expired) < len(self._table.by_id):
            self.watch(now)
        return Effects([tombstone_of(known.transactional_id) for known in expired[:EXPIRE_PER_BATCH]])


def _is_overdue(known: Transaction, now: Instant) -> bool:
    return known.timeout_ms != TIMEOUT_NEVER_MS and known.start_ms + known.timeout_ms < now.wall_ms


# Adds partitions to a transaction, and verifies that partitions belong to it.


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


class TransactionShard:
    """Implements `Shard`, and the requests about transactions."""

    def __init__(self, settings: TransactionSettings, new_producer_id: Callable[[], int]) -> None:
        self.table = TransactionTable(settings, new_producer_id)
        self._clockwork = Clockwork(self.table)

    # -- Contract with the runtime

    @property
    def next_deadline_ms(self) -> int | None:
        return self.table.timers.next_deadline_ms

    def replay(self, record: CoordinatorRecord, offset: int, producer: Producer | None) -> None:
        self.table.replay(record)

    def replay_end(self, producer: Producer, is_commit: bool) -> None:
        """Nothing to do: no transaction writes to this topic."""

    def fast_replay(self) -> FastTransactionReplay:
        return FastTransactionReplay(self.table)

    def refuse_waiting(self, failure: KafkaError) -> Iterable[Answer]:
        return ()

    def loaded(self, now: Instant) -> Effects:
        """Send the markers of transactions that were being ended."""
        if self.table.by_id:
            self._clockwork.watch(now)
        return Effects(orders=[markers_of(known) for known in self.table.by_id.values() if known.state in ENDING])

    def expire(self, now: Instant) -> Effects:
        action = self.table.timers.pop_due(now)
        return Effects() if action is None else action(now)

    def follow(self, settings: TransactionSettings) -> None:
        """Use new settings: the broker's or the cluster's transaction version has changed."""
        self.table.settings = settings

    def complete(self, transactional_id: str, producer: Producer, now: Instant) -> Effects:
        """The runtime has carried out the order to send markers."""
        return complete(self.table, transactional_id, producer, now)

    # -- Requests

    def initialise(self, request: InitProducerIdRequest, reply: Reply, now: Instant) -> Effects:
        effects = initialise(self.table, request, reply, now)
        self._clockwork.watch(now)
        return effects

    def add_partitions(
        self,
        transactional_id: str,
        producer: Producer,
        wanted: Iterable[TopicPartition],
        client_version: int,
        reply: Reply,
        response: Any,
        now: Instant,
    ) -> Effects:
        effects = add(self.table, transactional_id, producer, wanted, client_version, reply, response, now)
        self._clockwork.watch(now)
        return effects

    def verify(self, transactional_id: str, producer: Producer, wanted: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return verify(self.table, transactional_id, producer, wanted)

    def end(self, request: EndTxnRequest, client_version: int, reply: Reply, now: Instant) -> Effects:
        return end(self.table, request, client_version, reply, now)


# Answers ListTransactions and DescribeTransactions.


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
