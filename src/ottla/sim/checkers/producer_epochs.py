"""The epoch of a transactional id's producer rises with every initialisation, and requests in older epochs are refused.

A producer id belongs to one transactional id forever. A new producer id replaces it only when the epochs are used up or the
transactional id has expired; the old one does not return. The last epoch is never handed out. Of two concurrent requests it is
unknown which was first, so only answers that arrived before a request was sent are compared with it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from ottla.sim.checkers.checker import Checker, Handed, Violation

LAST_EPOCH = 32_767


class ProducerEpochs(Checker):
    """Remembers producer ids and epochs, by transactional id. `changing` are ids that may get another producer id."""

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
