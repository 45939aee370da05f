"""read_committed consumers see a whole transaction or nothing: nothing before its commit is requested, all after its answer.

What such a consumer has read does not change: a later read of the same offsets finds the same records. This is not checked for
compacted topics.
"""

from __future__ import annotations

from collections import defaultdict

from ottla.sim.checkers.checker import Batch, Checker, Place, SeenRecord, Transaction, Violation


class AtomicTransactions(Checker):
    """Remembers the records of each transaction, and how it ended."""

    def __init__(self) -> None:
        self._of_value: dict[bytes, Transaction] = {}
        self._values: defaultdict[Transaction, dict[Place, dict[bytes, None]]] = defaultdict(lambda: defaultdict(dict))
        self._asked: dict[Transaction, None] = {}
        self._committed: dict[Transaction, None] = {}
        self._passed: defaultdict[Place, dict[int, bytes | None]] = defaultdict(dict)
        self._audited: dict[Place, set[bytes]] = {}
        self.judged = 0

    def power_lost(self) -> None:
        self._passed.clear()  # consumers start again; `NoLoss` checks what must not be lost

    def transaction_wrote(self, transaction: Transaction, batch: Batch) -> None:
        for value in batch.values:
            self._of_value[value] = transaction
            self._values[transaction][batch.place][value] = None

    def commit_requested(self, transaction: Transaction) -> None:
        self._asked[transaction] = None

    def commit_answered(self, transaction: Transaction) -> None:
        self._committed[transaction] = None

    def seen_committed(self, place: Place, start: int, end: int, records: list[SeenRecord]) -> None:
        found: dict[int, bytes | None] = {record.offset: record.value for record in records}
        for record in records:
            transaction = self._of_value.get(record.value)
            if transaction is not None and transaction not in self._asked:
                raise Violation(
                    f"{place} offset {record.offset}: a reader of committed records got one of transaction {transaction.name}, "
                    "whose commit was never requested"
                )
        if place.topic.is_compacted:
            return
        passed = self._passed[place]
        for offset in range(start, end):
            value = found.get(offset)
            if passed.setdefault(offset, value) != value:
                raise Violation(
                    f"{place} offset {offset}: readers of committed records got {passed[offset]!r} there once, and {value!r} "
                    "another time"
                )

    def audited_committed(self, place: Place, records: list[SeenRecord]) -> None:
        if records:
            self.seen_committed(place, records[0].offset, records[-1].offset + 1, records)
        self._audited[place] = {record.value for record in records}
        for transaction, by_place in self._values.items():
            if all(each in self._audited for each in by_place):
                there = [value in self._audited[each] for each, values in by_place.items() for value in values]
                self._judge(transaction, there.count(True), there.count(False))

    def _judge(self, transaction: Transaction, there: int, missing: int) -> None:
        self.judged += 1
        if transaction in self._committed and missing:
            raise Violation(
                f"transaction {transaction.name} was committed and acknowledged, but {missing} of its records are gone"
            )
        if there and missing:
            raise Violation(f"of transaction {transaction.name} {there} records are there, and {missing} are not")
