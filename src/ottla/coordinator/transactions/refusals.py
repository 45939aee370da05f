"""Refusals that more than one decision about transactions gives."""

from __future__ import annotations

from ottla.coordinator.contract import Producer
from ottla.coordinator.transactions.states import ENDING, NAMES
from ottla.coordinator.transactions.transaction import EPOCH_BUMP_SINCE, TAGGED_SINCE, Transaction
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode


def concurrent(known: Transaction) -> KafkaError:
    """The transaction before has not quite ended."""
    return KafkaError(
        ErrorCode.CONCURRENT_TRANSACTIONS,
        f"the transaction of {known.transactional_id!r} is still being ended in its partitions: ask again",
    )


def fenced(known: Transaction, asking: Producer) -> KafkaError:
    """Another producer has taken the transactional id."""
    return KafkaError(
        ErrorCode.PRODUCER_FENCED,
        f"the transactional id {known.transactional_id!r} belongs to producer {known.producer_id} in epoch {known.epoch}; "
        f"producer {asking.id} in epoch {asking.epoch} asks: a newer instance has taken its place, or its transaction ran into "
        "transaction.timeout.ms",
    )


def check_producer(known: Transaction, asking: Producer) -> None:
    """May this producer go on with the transaction? `KafkaError` if it is another's."""
    if known.state in ENDING:
        # First of all: when epochs are used up, it may have been given an id that is not in force yet.
        raise concurrent(known)
    check_current(known, asking)


def check_current(known: Transaction, asking: Producer) -> None:
    """Has this producer the transactional id now, and in this epoch? `KafkaError` if not."""
    check_id(known, asking)
    if asking.epoch != known.epoch:
        raise fenced(known, asking)


def check_id(known: Transaction, asking: Producer) -> None:
    if asking.id != known.producer_id:
        raise KafkaError(
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
            f"the transactional id {known.transactional_id!r} belongs to producer {known.producer_id}, not to {asking.id}: "
            "initialise the producer again",
        )


def impossible(known: Transaction, is_commit: bool) -> KafkaError:
    """The transaction cannot end in this way, as it is."""
    return KafkaError(
        ErrorCode.INVALID_TXN_STATE,
        f"the transaction of {known.transactional_id!r} cannot be {'committed' if is_commit else 'aborted'}: it is "
        f"{NAMES[known.state]}",
    )


def check_version(client_version: int, transaction_version: int) -> None:
    """May a client of `client_version` take a step in a cluster of `transaction_version`, whose records have to tell it?"""
    if client_version >= EPOCH_BUMP_SINCE and transaction_version < TAGGED_SINCE:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"the request is one of transaction.version {client_version}, and the cluster's is {transaction_version}: "
            "raise that feature, or use the requests of before",
        )
