"""Checks and errors that several decisions about transactions share."""

from __future__ import annotations

from ottla.coordinator.contract import Producer
from ottla.coordinator.transactions.transaction import ENDING, EPOCH_BUMP_SINCE, NAMES, TAGGED_SINCE, Transaction
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode

END_WITH_BUMP_VERSION = 5
"""The first version of EndTxn that moves the producer to its next epoch."""


def concurrent(known: Transaction) -> KafkaError:
    """The previous transaction has not ended in all its partitions."""
    return KafkaError(
        ErrorCode.CONCURRENT_TRANSACTIONS,
        f"the transaction of {known.transactional_id!r} is still being ended in its partitions: ask again",
    )


def fenced(known: Transaction, asking: Producer) -> KafkaError:
    """Another producer has taken the transactional id."""
    return KafkaError(
        ErrorCode.PRODUCER_FENCED,
        f"the transactional id {known.transactional_id!r} belongs to producer {known.owner.id} in epoch {known.owner.epoch}; "
        f"producer {asking.id} in epoch {asking.epoch} asks: a newer instance has taken its place, or its transaction ran into "
        "transaction.timeout.ms",
    )


def check_producer(known: Transaction, asking: Producer) -> None:
    """Raises `KafkaError` unless this producer may continue the transaction."""
    if known.state in ENDING:
        # Checked before the id: when epochs are exhausted, the producer may already use its next id, not yet in effect here.
        raise concurrent(known)
    check_current(known, asking)


def check_current(known: Transaction, asking: Producer) -> None:
    """Raises `KafkaError` unless this producer has the transactional id, in this epoch."""
    check_id(known, asking)
    if asking.epoch != known.owner.epoch:
        raise fenced(known, asking)


def check_id(known: Transaction, asking: Producer) -> None:
    if asking.id != known.owner.id:
        raise KafkaError(
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
            f"the transactional id {known.transactional_id!r} belongs to producer {known.owner.id}, not to {asking.id}: "
            "initialise the producer again",
        )


def impossible(known: Transaction, is_commit: bool) -> KafkaError:
    """The transaction cannot be committed or aborted in its current state."""
    return KafkaError(
        ErrorCode.INVALID_TXN_STATE,
        f"the transaction of {known.transactional_id!r} cannot be {'committed' if is_commit else 'aborted'}: it is "
        f"{NAMES[known.state]}",
    )


def check_not_kept(known: Transaction) -> None:
    """Raises `KafkaError` if the open transaction was kept for its producer, which may add nothing to it."""
    if known.is_kept:
        raise KafkaError(
            ErrorCode.INVALID_TXN_STATE,
            f"the transaction of {known.transactional_id!r} was prepared by an earlier producer (id {known.producer_id}, epoch "
            f"{known.epoch}): it can only be committed or aborted",
        )


def needs_bump(known: Transaction) -> KafkaError:
    """A kept transaction cannot end without an epoch bump: its owner could not be told from the one that wrote it."""
    return KafkaError(
        ErrorCode.UNSUPPORTED_VERSION,
        f"the transaction of {known.transactional_id!r} was prepared by an earlier producer: end it with EndTxn version "
        f"{END_WITH_BUMP_VERSION} or newer",
    )


def check_version(client_version: int, transaction_version: int) -> None:
    """Raises `KafkaError` if records of the cluster's `transaction_version` cannot hold a change by `client_version`."""
    if client_version >= EPOCH_BUMP_SINCE and transaction_version < TAGGED_SINCE:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"the request is one of transaction.version {client_version}, and the cluster's is {transaction_version}: "
            "raise that feature, or use requests of an older version",
        )
