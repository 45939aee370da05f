"""The epochs of a transactional id's producer rise with every hand-over, and who has an older one is not obeyed.

A producer id belongs to one transactional id for good. Another takes its place only where epochs are used up, or where the
transactional id has expired, and stays there; the last epoch is handed to nobody. Of two that ask at once it is not known who
was first: only what was told before something was asked for counts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from ottla.sim.checkers.checker import Checker, Handed, Violation

LAST_EPOCH = 32_767


class ProducerEpochs(Checker):
    """Remembers what was handed to whom, by transactional id. `changing` are ids that may come to have another producer."""

    def __init__(self, changing: Collection[str] = ()) -> None:
        self._changing = changing
        self._handed: defaultdict[str, list[Handed]] = defaultdict(list)
        self._owners: dict[int, str] = {}
        self.judged = 0

    @property
    def changes(self) -> int:
        """How often another producer id has taken the place of one."""
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
        """Whether it was asked for when somebody had been told of `producer_id`."""
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
