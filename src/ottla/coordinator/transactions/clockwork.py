"""Timeouts of transactions: aborts transactions past their timeout, and expires unused transactional ids."""

from __future__ import annotations

import logging
from functools import partial

from ottla.coordinator.contract import Effects, Instant
from ottla.coordinator.transactions.ending import fence
from ottla.coordinator.transactions.initialising import TIMEOUT_NEVER_MS
from ottla.coordinator.transactions.states import AT_REST, TransactionState
from ottla.coordinator.transactions.table import TransactionTable
from ottla.coordinator.transactions.transaction import Transaction, tombstone_of
from ottla.errors import KafkaError

logger = logging.getLogger("ottla.coordinator")

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
