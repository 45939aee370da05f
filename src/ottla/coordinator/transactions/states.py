"""The states of a transaction, with Kafka's numbers and names, and the allowed transitions.

`PREPARE_EPOCH_FENCE` is never written: Kafka uses it between the decision to fence a producer and the abort of its transaction,
which are one step here. `DEAD` is a tombstone in the log, so no client sees it. Both are listed because requests may filter by
them.
"""

from __future__ import annotations

from enum import IntEnum


class TransactionState(IntEnum):
    """The state of a transactional id."""

    EMPTY = 0
    """The id has a producer, which has not begun a transaction yet."""
    ONGOING = 1
    """Partitions have been added."""
    PREPARE_COMMIT = 2
    """The commit is decided. Not every partition has its marker."""
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    """Every partition has its marker."""
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7


_EMPTY, _ONGOING = TransactionState.EMPTY, TransactionState.ONGOING
_COMMITTING, _ABORTING = TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT
_COMMITTED, _ABORTED = TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT

ENDING = frozenset({_COMMITTING, _ABORTING})
"""Decided, but not every partition has its marker."""
AT_REST = frozenset({_EMPTY, _COMMITTED, _ABORTED})
"""No transaction is open: the id may expire, a new transaction may begin."""

FOLLOWS: dict[TransactionState, frozenset[TransactionState]] = {
    _EMPTY: AT_REST,
    _ONGOING: AT_REST | {_ONGOING},
    _COMMITTING: frozenset({_ONGOING}),
    _ABORTING: AT_REST | {_ONGOING},
    _COMMITTED: frozenset({_COMMITTING}),
    _ABORTED: frozenset({_ABORTING}),
    TransactionState.DEAD: AT_REST,
    TransactionState.PREPARE_EPOCH_FENCE: frozenset({_ONGOING}),
}
"""State → the states that it may follow."""

NAMES: dict[TransactionState, str] = {
    _EMPTY: "Empty",
    _ONGOING: "Ongoing",
    _COMMITTING: "PrepareCommit",
    _ABORTING: "PrepareAbort",
    _COMMITTED: "CompleteCommit",
    _ABORTED: "CompleteAbort",
    TransactionState.DEAD: "Dead",
    TransactionState.PREPARE_EPOCH_FENCE: "PrepareEpochFence",
}
"""As ListTransactions and DescribeTransactions name them."""

BY_NAME = {name: state for state, name in NAMES.items()}
