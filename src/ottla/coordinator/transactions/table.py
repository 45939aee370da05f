"""TransactionTable: the transactional ids of one shard, with the settings and timers that its decisions share."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ottla.coordinator.contract import CoordinatorRecord
from ottla.coordinator.id_limit import IdLimit
from ottla.coordinator.timers import Timers
from ottla.coordinator.transactions.transaction import NO_EPOCH, TAGGED_SINCE, Transaction, record_of, transaction_of
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode

# The settings of the transaction coordinator. The runtime builds them from the broker's, and again when those change.


class TransactionSettings(NamedTuple):
    """Named as the broker's settings; see docs/configuration.md."""

    transaction_max_timeout_ms: int = 900_000
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = 10_000
    transaction_remove_expired_transaction_cleanup_interval_ms: int = 3_600_000
    transactional_id_expiration_ms: int = 604_800_000
    transaction_two_phase_commit_enable: bool = False
    transaction_version: int = 2
    """The cluster's level of the feature transaction.version."""


class TransactionTable:
    """One shard's transactional ids. The runtime replaces `settings` when they change.

    `new_producer_id` returns an unused producer id, or raises `KafkaError` if none is available yet.
    """

    __slots__ = ("_recorded", "by_id", "last_epochs", "limit", "new_producer_id", "settings", "timers")

    def __init__(self, settings: TransactionSettings, new_producer_id: Callable[[], int]) -> None:
        self.settings = settings
        self.new_producer_id = new_producer_id
        self.by_id: dict[str, Transaction] = {}
        self.limit = IdLimit()
        """The runtime sets one for all its shards; without a runtime there is no limit."""
        self.last_epochs: dict[str, int] = {}
        """Transactional id → the epoch before the current one, if its producer may retry.

        It is in no record: a retry that reaches another coordinator is fenced as a zombie, as in Kafka.
        """
        self.timers = Timers()
        self._recorded: tuple[CoordinatorRecord, Transaction] | None = None
        """The last record that was built, and its transaction: the replay that follows need not decode it."""

    def find(self, transactional_id: str) -> Transaction:
        """The transaction of an id; `KafkaError` if the id is empty or unknown."""
        if not transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "a transactional id must not be empty")
        transaction = self.by_id.get(transactional_id)
        if transaction is None:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_ID_MAPPING,
                f"no producer has the transactional id {transactional_id!r}: it has expired, or was never initialised. "
                "Initialise the producer (initTransactions)",
            )
        return transaction

    def last_epoch(self, transactional_id: str) -> int:
        return self.last_epochs.get(transactional_id, NO_EPOCH)

    def record(self, transaction: Transaction) -> CoordinatorRecord:
        """The record of `transaction`."""
        version = self.settings.transaction_version
        record = record_of(transaction, version)
        # Replay nearly always follows. A record without tagged fields lacks some values, so it is decoded.
        self._recorded = (record, transaction) if version >= TAGGED_SINCE else None
        return record

    def replay(self, record: CoordinatorRecord) -> None:
        if self._recorded is not None and record is self._recorded[0]:
            transaction = self._recorded[1]
            self.by_id[transaction.transactional_id] = transaction
            return
        transactional_id = record.key.transactional_id  # type: ignore[attr-defined]  # the one kind of key that this log has
        if record.value is None:
            self.remove(transactional_id)
        else:
            self.by_id[transactional_id] = transaction_of(transactional_id, record.value.message)

    def remove(self, transactional_id: str) -> None:
        """Remove the id: it has expired."""
        self.by_id.pop(transactional_id, None)
        self.last_epochs.pop(transactional_id, None)
