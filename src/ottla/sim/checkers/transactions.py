"""Invariants of transactions: atomic, exactly once, fenced by epochs, and ended in time."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection

from ottla.sim.checkers.checker import Batch, Checker, Handed, Place, SeenRecord, Transaction, Violation


class AtomicTransactions(Checker):
    """read_committed consumers see a whole transaction or nothing: nothing before its commit is requested, all after its
    answer.

    What such a consumer has read does not change: a later read of the same offsets finds the same records. This is not checked
    for compacted topics.
    """

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


class ExactlyOnce(Checker):
    """Every input record below an app's committed offset has exactly one output, and no other input record has any.

    Output and offsets belong to one transaction, so both take effect or neither does.
    """

    def __init__(self) -> None:
        self._made_of: dict[bytes, tuple[str, Place, int]] = {}
        self._inputs: dict[Place, list[int]] = {}
        self._outputs: defaultdict[tuple[str, Place], Counter[int]] = defaultdict(Counter)
        self.judged = 0

    def transformed(self, app: str, origin: Place, offset: int, value: bytes) -> None:
        self._made_of[value] = (app, origin, offset)

    def audited_committed(self, place: Place, records: list[SeenRecord]) -> None:
        self._inputs[place] = [record.offset for record in records]
        for record in records:
            made_of = self._made_of.get(record.value)
            if made_of is not None:
                app, origin, offset = made_of
                self._outputs[app, origin][offset] += 1

    def app_ended(self, app: str, offsets: dict[Place, int]) -> None:
        for origin, end in offsets.items():
            found = self._outputs[app, origin]
            wanted = [offset for offset in self._inputs[origin] if offset < end]
            self.judged += len(wanted)
            for offset in wanted:
                if found[offset] == 0:
                    raise Violation(f"{app} has committed {end} for {origin}, and nothing was made of the record at {offset}")
            for offset, count in found.items():
                if count > 1:
                    raise Violation(f"{app} made {count} outputs of the record at {offset} of {origin}")
                if offset >= end:
                    raise Violation(f"{app} has committed {end} for {origin}, but made something of the record at {offset}")


LAST_EPOCH = 32_767


class ProducerEpochs(Checker):
    """The epoch of a transactional id's producer rises with every initialisation, and requests in older epochs are refused.

    A producer id belongs to one transactional id forever. A new producer id replaces it only when the epochs are used up or the
    transactional id has expired; the old one does not return. The last epoch is never handed out. Of two concurrent requests it
    is unknown which was first, so only answers that arrived before a request was sent are compared with it.

    Remembers producer ids and epochs, by transactional id. `changing` are ids that may get another producer id.
    """

    def __init__(self, changing: Collection[str] = ()) -> None:
        self._changing = changing
        self._handed: defaultdict[str, list[Handed]] = defaultdict(list)
        self._owners: dict[int, str] = {}
        self.judged = 0

    @property
    def changes(self) -> int:
        """How often a producer id was replaced by another."""
        return sum(len({handed.producer_id for handed in known}) - 1 for known in self._handed.values())

    def producer_id_given(self, producer_id: int, epoch: int) -> None:
        self._owned(producer_id, "a plain producer")

    def producer_handed(self, handed: Handed) -> None:
        name = handed.transactional_id
        self._owned(handed.producer_id, name)
        if handed.epoch >= LAST_EPOCH:
            raise Violation(
                f"{name} was handed producer {handed.producer_id} in epoch {handed.epoch}, which is for fencing only"
            )
        for before in self._handed[name]:
            if before.answered_s >= handed.requested_s:
                continue
            if before.producer_id == handed.producer_id:
                is_older = before.epoch >= handed.epoch
            else:
                is_older = self._is_after(before, handed.producer_id)
                if name not in self._changing:
                    raise Violation(
                        f"{name} was handed producer {handed.producer_id} in the place of {before.producer_id}, which has "
                        "epochs left"
                    )
            if is_older:
                raise Violation(
                    f"{name} was handed producer {before.producer_id} in epoch {before.epoch}, and then producer "
                    f"{handed.producer_id} in {handed.epoch}"
                )
        self._handed[name].append(handed)

    def _is_after(self, handed: Handed, producer_id: int) -> bool:
        """Whether `handed` was requested after an answer with `producer_id` had arrived."""
        known = self._handed[handed.transactional_id]
        return any(each.producer_id == producer_id and each.answered_s < handed.requested_s for each in known)

    def _owned(self, producer_id: int, name: str) -> None:
        owner = self._owners.setdefault(producer_id, name)
        if owner != name:
            raise Violation(f"producer id {producer_id} was given to {owner} and to {name}")

    def producer_obeyed(self, transactional_id: str, producer_id: int, epoch: int, sent_s: float) -> None:
        self.judged += 1
        for handed in self._handed[transactional_id]:
            if handed.answered_s >= sent_s:
                continue
            is_newer = handed.epoch > epoch if handed.producer_id == producer_id else self._is_after(handed, producer_id)
            if is_newer:
                raise Violation(
                    f"{transactional_id}: what producer {producer_id} sent in epoch {epoch} was done, after producer "
                    f"{handed.producer_id} had been handed out in epoch {handed.epoch}"
                )


class TimelyEndings(Checker):
    """Every transaction ends: within `bound_s` after clients stop writing, the last stable offset reaches the high watermark.

    `bound_s`: the longest transaction timeout, plus the interval of the checks for it, plus the error of the clocks.
    """

    def __init__(self, bound_s: float) -> None:
        self._bound_s = bound_s

    def stability_answered(self, place: Place, last_stable_offset: int, high_watermark: int, waited_s: float) -> None:
        if last_stable_offset < high_watermark and waited_s > self._bound_s:
            raise Violation(
                f"{place} is stable up to {last_stable_offset} of {high_watermark} only: some transaction has not ended in "
                f"{waited_s:.1f} s"
            )
