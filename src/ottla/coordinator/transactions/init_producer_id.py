"""Decides on InitProducerId with a transactional id: the producer takes the id, and the previous one is fenced.

- A new id gets a new producer id, in epoch 0. A known one gets the next epoch, or another producer id when the epochs of its
  producer id are exhausted.
- A producer that names its id and epoch (after an error from which it can recover) must be the latest one. A retry gets the
  same answer again.
- A transaction that is still open is aborted first, in an epoch that no producer gets. That fences the old producer. The new
  one gets CONCURRENT_TRANSACTIONS and retries until the abort is complete.
- Unless the producer asks to keep it (KIP-939): then it becomes the owner of the open transaction, which it may only commit or
  abort. The record has both producers: the transaction's, whose id and epoch its partitions know, and the owner's.

Two-phase commit: the transactions of a producer that asks for it have no timeout.
"""

from __future__ import annotations

import logging

from ottla.coordinator.contract import Effects, Instant, Producer, Reply
from ottla.coordinator.transactions.end_txn import fence
from ottla.coordinator.transactions.refusals import concurrent, fenced
from ottla.coordinator.transactions.table import TransactionTable
from ottla.coordinator.transactions.transaction import (
    ENDING,
    EPOCH_BUMP_SINCE,
    NO_EPOCH,
    NO_ID,
    NO_TIME,
    Transaction,
    TransactionState,
    is_exhausted,
    next_of,
)
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

logger = logging.getLogger("ottla.coordinator")

TIMEOUT_NEVER_MS = 2**31 - 1
"""The timeout of two-phase-commit transactions, which only their client may end."""


def initialise(table: TransactionTable, request: InitProducerIdRequest, reply: Reply, now: Instant) -> Effects:
    """Give a producer its id and epoch."""
    transactional_id = request.transactional_id or ""
    timeout_ms = _checked_timeout_ms(table, request)
    expected = None if request.producer_id == NO_ID else Producer(request.producer_id, request.producer_epoch)
    known = table.by_id.get(transactional_id)
    if known is None:
        table.limit.check_room(f"the new transactional id {transactional_id!r}")
        made = Transaction(transactional_id, table.new_producer_id(), NO_EPOCH, TransactionState.EMPTY, timeout_ms)
        return _granted(table, made, made.producer_id, 0, NO_EPOCH, timeout_ms, reply, now)
    if known.state in ENDING:
        raise concurrent(known)
    if known.state == TransactionState.ONGOING and request.keep_prepared_txn:
        return _kept(table, known, expected, timeout_ms, reply, now)
    if expected is not None and not _is_owner(known, expected):
        raise fenced(known, expected)
    if known.state == TransactionState.ONGOING:
        who = "a new instance of its producer was initialised" if expected is None else "its producer initialised itself again"
        effects = fence(table, known, now, who)
        effects.answers = Effects.answer(reply, concurrent(known)).answers
        return effects
    if known.is_epoch_exhausted and (expected is None or expected.epoch == known.epoch):
        last_epoch = NO_EPOCH if expected is None else known.epoch
        return _granted(table, known, table.new_producer_id(), 0, last_epoch, timeout_ms, reply, now)
    epoch, last_epoch = _next_epoch(table, known, expected)
    return _granted(table, known, known.producer_id, epoch, last_epoch, timeout_ms, reply, now)


def _checked_timeout_ms(table: TransactionTable, request: InitProducerIdRequest) -> int:
    settings, transactional_id = table.settings, request.transactional_id
    if not transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "a transactional id must not be empty: name one, or leave it out")
    if request.enable2_pc and not settings.transaction_two_phase_commit_enable:
        raise KafkaError(
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            f"the producer {transactional_id!r} asks for transactions in two phases, which "
            "transaction.two.phase.commit.enable does not allow here",
        )
    if request.keep_prepared_txn and not settings.transaction_two_phase_commit_enable:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "transactions that were prepared cannot be kept, only aborted")
    if request.keep_prepared_txn and settings.transaction_version < EPOCH_BUMP_SINCE:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"transactions that were prepared can be kept from transaction.version {EPOCH_BUMP_SINCE} on, and the cluster's is "
            f"{settings.transaction_version}: raise that feature",
        )
    if request.enable2_pc:
        return TIMEOUT_NEVER_MS
    timeout_ms = request.transaction_timeout_ms
    if not 0 < timeout_ms <= settings.transaction_max_timeout_ms:
        raise KafkaError(
            ErrorCode.INVALID_TRANSACTION_TIMEOUT,
            f"the producer {transactional_id!r} wants transactions of up to {timeout_ms} ms: transaction.timeout.ms must be "
            f"above 0 and not above the broker's transaction.max.timeout.ms, {settings.transaction_max_timeout_ms}",
        )
    return timeout_ms


def _kept(
    table: TransactionTable, known: Transaction, expected: Producer | None, timeout_ms: int, reply: Reply, now: Instant
) -> Effects:
    """Make the caller the owner of the open transaction. Earlier owners, and the producer that wrote it, are fenced."""
    transactional_id, owner = known.transactional_id, known.owner
    is_retry = False
    if expected is not None and expected != owner:
        # A producer that lost the response has the epoch before, or the last one of its earlier id.
        is_retry = known.is_kept and expected.epoch == table.last_epoch(transactional_id)
        is_retry = is_retry and next_of(expected, lambda: owner.id) == owner
        if not is_retry:
            raise fenced(known, expected)
    records = []
    if not is_retry:
        table.last_epochs[transactional_id] = NO_EPOCH if expected is None else owner.epoch
        owner = next_of(owner, table.new_producer_id)
        logger.info(
            "the open transaction of %r (producer %d, epoch %d) is kept for producer %d in epoch %d, which may only end it",
            transactional_id,
            *known.producer,
            *owner,
        )
        kept = known.step(
            TransactionState.ONGOING,
            next_producer_id=owner.id,
            next_epoch=owner.epoch,
            # Neither the producer that wrote it nor the one that will end it is given less time than it asked for.
            timeout_ms=max(known.timeout_ms, timeout_ms),
            update_ms=now.wall_ms,
        )
        records = [table.record(kept)]
    response = InitProducerIdResponse(
        producer_id=owner.id,
        producer_epoch=owner.epoch,
        ongoing_txn_producer_id=known.producer_id,
        ongoing_txn_producer_epoch=known.epoch,
    )
    return Effects.answer(reply, response, records)


def _is_owner(known: Transaction, expected: Producer) -> bool:
    """Whether the caller may be the producer that has the transactional id. Its epoch is compared later."""
    if known.is_kept:
        return expected == known.owner  # a late request of a producer that was replaced must not abort what was prepared
    if expected.id == known.producer_id:
        return True
    # It may have got the next producer id in a response that was lost.
    return expected.id == known.previous_producer_id and is_exhausted(expected.epoch)


def _next_epoch(table: TransactionTable, known: Transaction, expected: Producer | None) -> tuple[int, int]:
    """(the new epoch, the epoch before it, whose producer may retry)."""
    last_epoch = table.last_epoch(known.transactional_id)
    if expected is not None and expected.epoch != known.epoch:
        if expected.epoch == last_epoch:
            return known.epoch, last_epoch  # a retry: the response with this epoch was lost
        raise fenced(known, expected)
    return known.epoch + 1, NO_EPOCH if expected is None else known.epoch


def _granted(
    table: TransactionTable,
    known: Transaction,
    producer_id: int,
    epoch: int,
    last_epoch: int,
    timeout_ms: int,
    reply: Reply,
    now: Instant,
) -> Effects:
    transactional_id = known.transactional_id
    if known.epoch != NO_EPOCH and epoch != known.epoch:
        logger.info(
            "the transactional id %r goes to producer %d in epoch %d: producer %d in epoch %d is fenced from now on, since "
            "the id was initialised again",
            transactional_id,
            producer_id,
            epoch,
            known.producer_id,
            known.epoch,
        )
    granted = known.step(
        TransactionState.EMPTY,
        producer_id=producer_id,
        epoch=epoch,
        timeout_ms=timeout_ms,
        partitions=frozenset(),
        start_ms=NO_TIME,
        update_ms=now.wall_ms,
    )
    table.last_epochs[transactional_id] = last_epoch
    return Effects.answer(reply, InitProducerIdResponse(producer_id=producer_id, producer_epoch=epoch), [table.record(granted)])
