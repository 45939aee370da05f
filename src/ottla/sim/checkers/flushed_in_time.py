"""With flush.ms, a power loss loses no record that was acknowledged or seen long enough before.

Topics with compaction or retention are not checked.

Long enough is twice flush.ms (the record may arrive just after a round of flushes) plus the time that the disk needs for one
round, all within one life of the node without a fault. Records of earlier lives are not checked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from ottla.sim.checkers.checker import Audit, Batch, Checker, Place, SeenRecord, Violation

ROUND_S = 0.05


class FlushedInTime(Checker):
    """`safe_before_s` maps a flush time to the time before which records must be durable now; None: no record must be."""

    def __init__(self, now_s: Callable[[], float], safe_before_s: Callable[[float], float | None]) -> None:
        self._now_s = now_s
        self._safe_before_s = safe_before_s
        self._came_s: defaultdict[Place, dict[int, float]] = defaultdict(dict)
        self._deleted_below: defaultdict[Place, int] = defaultdict(int)
        self._must_be_there: dict[Place, list[int]] = {}
        self.judged = 0

    def acknowledged(self, batch: Batch, base_offset: int) -> None:
        if _is_judged(batch.place) and batch.acks != 0:
            for offset in range(base_offset, base_offset + len(batch.values)):
                self._came_s[batch.place].setdefault(offset, self._now_s())

    def seen(self, place: Place, records: list[SeenRecord]) -> None:
        if _is_judged(place):
            for record in records:
                self._came_s[place].setdefault(record.offset, self._now_s())

    def deletion_requested(self, place: Place, offset: int) -> None:
        self._deleted_below[place] = max(self._deleted_below[place], offset)

    def power_lost(self) -> None:
        for place, came_s in self._came_s.items():
            wait_s = 2 * int(place.topic.configs["flush.ms"]) / 1000 + ROUND_S
            before_s = self._safe_before_s(wait_s)
            if before_s is not None:
                self._must_be_there[place] = [offset for offset, came in came_s.items() if came < before_s]

    def audited(self, audit: Audit) -> None:
        if not _is_judged(audit.place):
            return
        there = {record.offset for record in audit.records}
        for offset in self._must_be_there.pop(audit.place, ()):
            self.judged += 1
            if offset not in there and offset >= self._deleted_below[audit.place]:
                raise Violation(f"{audit.place} lost offset {offset} with the power, though flush.ms had long been over")
        self._came_s[audit.place] = {offset: came for offset, came in self._came_s[audit.place].items() if offset in there}
        self.seen(audit.place, audit.records)


def _is_judged(place: Place) -> bool:
    topic = place.topic
    return "flush.ms" in topic.configs and not topic.is_compacted and not topic.is_retained
