"""The epochs of a transactional id's producer rise with every hand-over, and who has an older one is not obeyed.

A producer id belongs to one transactional id for good. Of two that ask at once it is not known who was first: only what was
told before something was asked for counts.
"""

from __future__ import annotations

from collections import defaultdict

from ottla.sim.checkers.checker import Checker, Handed, Violation


class ProducerEpochs(Checker):
    """Remembers what was handed to whom, by transactional id."""

    def __init__(self) -> None:
        self._handed: defaultdict[str, list[Handed]] = defaultdict(list)
        self._owners: dict[int, str] = {}
        self.judged = 0

    def producer_id_given(self, producer_id: int, epoch: int) -> None:
        self._owned(producer_id, "nobody")

    def producer_handed(self, handed: Handed) -> None:
        name = handed.transactional_id
        self._owned(handed.producer_id, name)
        for before in self._handed[name]:
            is_older = before.producer_id == handed.producer_id and before.epoch >= handed.epoch
            if is_older and before.told_s < handed.asked_s:
                raise Violation(
                    f"{name} was handed producer {handed.producer_id} in epoch {before.epoch}, and then in {handed.epoch}"
                )
        self._handed[name].append(handed)

    def _owned(self, producer_id: int, name: str) -> None:
        owner = self._owners.setdefault(producer_id, name)
        if owner != name:
            raise Violation(f"producer id {producer_id} was given to {owner} and to {name}")

    def producer_obeyed(self, transactional_id: str, producer_id: int, epoch: int, sent_s: float) -> None:
        self.judged += 1
        for handed in self._handed[transactional_id]:
            is_newer = handed.producer_id == producer_id and handed.epoch > epoch
            if is_newer and handed.told_s < sent_s:
                raise Violation(
                    f"{transactional_id}: what producer {producer_id} sent in epoch {epoch} was done, after epoch "
                    f"{handed.epoch} had been handed out"
                )
