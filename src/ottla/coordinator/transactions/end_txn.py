"""Ends transactions: EndTxn from the producer, or a forced abort that fences it.

An end takes two records. The first is the decision (PrepareCommit, PrepareAbort); EndTxn is answered once it is committed. Then
the runtime writes markers to the partitions, and the second record (CompleteCommit, CompleteAbort) says that all have theirs.
After a crash in between, loading the shard sends the markers again.

From transaction version 2 on every end moves the producer to its next epoch, so that a late request of an ended transaction
cannot be mistaken for one of the next. The request's epoch shows whether it is a retry ("again"):

    state           | abort, again | abort      | commit, again | commit
    Empty           | fenced       | next epoch | fenced        | invalid
    CompleteAbort   | same answer  | next epoch | invalid       | invalid
    CompleteCommit  | invalid      | next epoch | same answer   | invalid

A transaction that InitProducerId has kept (KIP-939) is ended by its owner, whose epoch is later than the transaction's. Its
markers have the transaction's producer id and next epoch; the owner goes on in the epoch after its own. So an EndTxn of the
owner that arrives late cannot end a later transaction.
"""

from __future__ import annotations

import logging

from ottla.coordinator.contract import Answer, Effects, Instant, Producer, Reply
from ottla.coordinator.transactions.refusals import (
    check_current,
    check_id,
    check_version,
    concurrent,
    fenced,
    impossible,
    needs_bump,
)
from ottla.coordinator.transactions.table import TransactionTable
from ottla.coordinator.transactions.transaction import (
    ENDING,
    EPOCH_BUMP_SINCE,
    EPOCH_MAX,
    NO_EPOCH,
    NO_ID,
    Transaction,
    TransactionState,
    markers_of,
    next_of,
)
from ottla.errors.texts import counted
from ottla.wire.messages.end_txn import EndTxnRequest, EndTxnResponse

logger = logging.getLogger("ottla.coordinator")

_ONGOING, _EMPTY = TransactionState.ONGOING, TransactionState.EMPTY
_COMMITTED, _ABORTED = TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT


def end(table: TransactionTable, request: EndTxnRequest, client_version: int, reply: Reply, now: Instant) -> Effects:
    """Commit or abort a producer's transaction; `client_version` is the transaction version of its request."""
    known = table.find(request.transactional_id)
    producer = Producer(request.producer_id, request.producer_epoch)
    if client_version >= EPOCH_BUMP_SINCE:
        return _end_with_bump(table, known, producer, request.committed, reply, now)
    check_current(known, producer)
    if known.state in ENDING:
        raise concurrent(known)
    if known.is_kept:
        raise needs_bump(known)
    if known.state == _ONGOING:
        return _prepare(table, known, request.committed, 0, now, Answer(reply, EndTxnResponse()))
    if known.state == (_COMMITTED if request.committed else _ABORTED):
        return Effects.answer(reply, EndTxnResponse())
    raise impossible(known, request.committed)


def _end_with_bump(
    table: TransactionTable, known: Transaction, producer: Producer, is_commit: bool, reply: Reply, now: Instant
) -> Effects:
    if known.state in ENDING:
        # Checked before the id: when epochs are exhausted, the producer may already use its next id, not yet in effect here.
        raise concurrent(known)
    epoch = known.owner.epoch
    had_last_epoch = known.previous_producer_id == producer.id and producer.epoch == EPOCH_MAX - 1 and epoch == 0
    is_again = had_last_epoch or epoch == producer.epoch + 1
    if not had_last_epoch:
        check_id(known, producer)
    if epoch != producer.epoch and not (is_again and known.state in (_COMMITTED, _ABORTED)):
        raise fenced(known, producer)
    if is_again:
        if known.state != (_COMMITTED if is_commit else _ABORTED):
            raise impossible(known, is_commit)
        return Effects.answer(reply, EndTxnResponse(producer_id=known.producer_id, producer_epoch=known.epoch))
    if is_commit and known.state != _ONGOING:
        raise impossible(known, is_commit)
    check_version(EPOCH_BUMP_SINCE, table.settings.transaction_version)
    return _prepare(table, known, is_commit, EPOCH_BUMP_SINCE, now, Answer(reply, None))


def _prepare(
    table: TransactionTable, known: Transaction, is_commit: bool, version: int, now: Instant, answer: Answer | None
) -> Effects:
    """Decide the end. An `answer` without a response gets one with the producer's next id and epoch."""
    epoch, last_epoch, after = known.epoch, table.last_epoch(known.transactional_id), {"next_producer_id": NO_ID}
    if version >= EPOCH_BUMP_SINCE:
        epoch, last_epoch = min(known.epoch + 1, EPOCH_MAX), known.owner.epoch
        if known.is_kept:
            next_id, next_epoch = next_of(known.owner, table.new_producer_id)
            after = {"next_producer_id": next_id, "next_epoch": next_epoch}
        elif known.is_epoch_exhausted:
            after = {"next_producer_id": table.new_producer_id()}
    prepared = known.step(
        TransactionState.PREPARE_COMMIT if is_commit else TransactionState.PREPARE_ABORT,
        epoch=epoch,
        # An abort may come before any partition was added; the record needs a start time even then.
        start_ms=known.start_ms if known.state == _ONGOING else now.wall_ms,
        update_ms=now.wall_ms,
        client_version=version,
        **after,
    )
    if known.is_kept:
        prepared = prepared._replace(previous_producer_id=known.owner.id)
    table.last_epochs[known.transactional_id] = last_epoch
    effects = Effects([table.record(prepared)], orders=[markers_of(prepared)])
    if answer is not None:
        if answer.response is None:
            producer_id, next_epoch = prepared.next_producer
            answer = Answer(answer.reply, EndTxnResponse(producer_id=producer_id, producer_epoch=next_epoch))
        effects.answers.append(answer)
    return effects


def fence(table: TransactionTable, known: Transaction, now: Instant, why: str) -> Effects:
    """Abort an open transaction in the next epoch, which its producer does not learn: it is fenced."""
    logger.info(
        "the transaction of %r (producer %d, epoch %d, %s, open for %d ms) is aborted and its producer fenced: %s",
        known.transactional_id,
        *known.owner,
        counted(len(known.partitions), "partition"),
        now.wall_ms - known.start_ms,
        why,
    )
    version = table.settings.transaction_version
    if version >= EPOCH_BUMP_SINCE or known.is_kept:
        return _prepare(table, known, False, max(version, EPOCH_BUMP_SINCE), now, None)
    effects = _prepare(table, known._replace(epoch=min(known.epoch + 1, EPOCH_MAX)), False, 0, now, None)
    table.last_epochs[known.transactional_id] = NO_EPOCH
    return effects


def complete(table: TransactionTable, transactional_id: str, producer: Producer, now: Instant) -> Effects:
    """Write the end of the transaction: every partition has its marker for `producer`."""
    known = table.by_id.get(transactional_id)
    if known is None or known.state not in ENDING or known.producer != producer:
        return Effects()  # the runtime reported it before
    return Effects([table.record(known.completed(now.wall_ms))])
