"""The transactional ids of one shard, and what all that decide about them share."""

from __future__ import annotations

from collections.abc import Callable

from ottla.coordinator.contract import CoordinatorRecord
from ottla.coordinator.timers import Timers
from ottla.coordinator.transactions.settings import TransactionSettings
from ottla.coordinator.transactions.transaction import NO_EPOCH, TAGGED_SINCE, Transaction, record_of, transaction_of
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode


class TransactionTable:
    """One shard's transactional ids. The host swaps `settings` when they change.

    `new_producer_id` gives an id that nobody has had, or raises `KafkaError` where none is to be had right now.
    """

    __slots__ = ("_recorded", "by_id", "last_epochs", "new_producer_id", "settings", "timers")

    def __init__(self, settings: TransactionSettings, new_producer_id: Callable[[], int]) -> None:
        self.settings = settings
        self.new_producer_id = new_producer_id
        self.by_id: dict[str, Transaction] = {}
        self.last_epochs: dict[str, int] = {}
        """Transactional id → the epoch before the present one, if its producer may ask again for what it was given.

        No record tells it: a repeat that meets another coordinator is taken for a zombie, as with Kafka.
        """
        self.timers = Timers()
        self._recorded: tuple[CoordinatorRecord, Transaction] | None = None
        """The last record that was made, and all that it says."""

    def find(self, transactional_id: str) -> Transaction:
        """`KafkaError` if the id is empty or not known."""
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
        """The record that makes `transaction` so."""
        version = self.settings.transaction_version
        record = record_of(transaction, version)
        # Nearly always it is replayed next. Without tagged fields it does not say everything.
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
        """Nothing is known of the id any more."""
        self.by_id.pop(transactional_id, None)
        self.last_epochs.pop(transactional_id, None)
