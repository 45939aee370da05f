"""A consumer gets every record between two that it gets, and a group commits no offset beyond what its members got.

A gap in what a consumer got is judged when the partition is audited: what an audit finds there was there before. Compaction,
retention, DeleteRecords, markers and aborted transactions leave offsets without a record, which a consumer may pass over.
Replicas are compacted each by itself: what was removed from one leader's log may be in the next one's. So in a compacted topic
only the last record with a key is judged.

A group with automatic commits may get records twice. It must not commit an offset if a record below it was handed to no member.
"""

from __future__ import annotations

from collections import defaultdict

from ottla.sim.checkers.checker import Audit, Checker, Place, SeenRecord, Violation


class NothingSkipped(Checker):
    """Remembers the offsets that consumers have passed over, and what groups got. `is_flushed`: the node flushes first.

    Otherwise a power loss may lose records and keep the offset that was committed behind them.
    """

    def __init__(self, is_flushed: bool = True) -> None:
        self._is_flushed = is_flushed
        self._has_lost = False
        self._skipped: defaultdict[tuple[Place, bool], dict[int, str]] = defaultdict(dict)
        """By partition and isolation level: offset → the consumer that passed over it."""
        self._handed: defaultdict[tuple[str, Place], set[int]] = defaultdict(set)
        self._found: dict[Place, list[int]] = {}
        self.judged = 0

    def passed_over(self, reader: str, place: Place, start: int, end: int, is_committed: bool) -> None:
        self._skipped[place, is_committed].update(dict.fromkeys(range(start, end), reader))

    def power_lost(self) -> None:
        self._skipped.clear()  # other records may get these offsets
        self._has_lost = not self._is_flushed

    def audited(self, audit: Audit) -> None:
        self._found[audit.place] = [record.offset for record in audit.records]
        self._judge(audit.place, False, audit.records)

    def audited_committed(self, place: Place, records: list[SeenRecord]) -> None:
        self._judge(place, True, records)

    def _judge(self, place: Place, is_committed: bool, records: list[SeenRecord]) -> None:
        skipped = self._skipped[place, is_committed]
        newest = {record.key: record.offset for record in records} if place.topic.is_compacted else {}
        for record in records:
            if record.offset in skipped and newest.get(record.key, record.offset) == record.offset:
                raise Violation(
                    f"{skipped[record.offset]} went on behind offset {record.offset} of {place}, and never got the record there"
                )

    def handed_out(self, group: str, place: Place, records: list[SeenRecord]) -> None:
        self._handed[group, place].update(record.offset for record in records)

    def reading_ended(self, group: str, offsets: dict[Place, int]) -> None:
        for place, end in offsets.items():
            if self._has_lost:
                return
            below = [offset for offset in self._found.get(place, ()) if offset < end]
            self.judged += len(below)
            lost = [offset for offset in below if offset not in self._handed[group, place]]
            if lost:
                raise Violation(f"group {group} has committed {end} for {place}, and no member got the record at {lost[0]}")
