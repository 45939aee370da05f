"""Offsets have no gaps, and records are in the order in which their producer sent them.

- The offsets of an audit run from the log start to the high watermark without a gap, except for what compaction removed, and
  for records that were never flushed before a power loss.
- Records are as they were sent: none is invented, cut or mixed.
- An idempotent producer's records appear once each, in order.
- The offsets of a producer that waits for each answer before it sends again rise.
"""

from collections import defaultdict

from ottla.sim.checkers.checker import Audit, Batch, Checker, Place, SeenRecord, Violation


class Order(Checker):
    """Remembers what was sent, in which order."""

    def __init__(self) -> None:
        self._sent: dict[bytes, tuple[str, int, bool, str]] = {}
        """Value → its producer, its number among that producer's records to the partition, whether it may appear twice, and the
        partition by name: a producer knows topics by their names, also when another topic has got the name."""
        self._count: defaultdict[tuple[str, Place], int] = defaultdict(int)
        self._last: dict[tuple[str, Place], tuple[int, int]] = {}
        self._after_power_loss: set[Place] = set()
        self._gaps: dict[Place, set[int]] = {}

    def sent(self, batch: Batch) -> None:
        for value in batch.values:
            if value not in self._sent:
                key = (batch.producer, batch.place)
                self._sent[value] = (batch.producer, self._count[key], not batch.is_idempotent, str(batch.place))
                self._count[key] += 1

    def acknowledged(self, batch: Batch, base_offset: int) -> None:
        if batch.acks == 0:
            return
        key = (batch.producer, batch.place)
        number, offset = self._last.get(key, (-1, -1))
        if batch.number > number and base_offset <= offset:
            raise Violation(
                f"{batch.place}: batch {batch.number} of {batch.producer} is at {base_offset}, but batch {number}, which came "
                f"before it, is at {offset}"
            )
        self._last[key] = (batch.number, base_offset)

    def power_lost(self) -> None:
        self._last.clear()
        self._after_power_loss.update(place for _, place in self._count)

    def seen(self, place: Place, records: list[SeenRecord]) -> None:
        before = -1
        for record in records:
            known = self._sent.get(record.value)
            if known is None or known[3] != str(place):
                raise Violation(f"{place} offset {record.offset} holds {record.value[:40]!r}, which was never sent there")
            if record.offset <= before:
                raise Violation(f"{place}: offset {record.offset} came after {before} in one answer")
            before = record.offset

    def audited(self, audit: Audit) -> None:
        self.seen(audit.place, audit.records)
        offsets = [record.offset for record in audit.records]
        gaps = self._gaps.setdefault(audit.place, set())
        missing = set(range(audit.log_start_offset, audit.high_watermark)).difference(offsets, audit.markers)
        topic = audit.place.topic
        if topic.is_compacted or audit.place in self._after_power_loss:
            gaps |= missing
        self._after_power_loss.discard(audit.place)
        if not missing <= gaps:
            raise Violation(
                f"{audit.place} should hold the offsets {audit.log_start_offset} to {audit.high_watermark}, and holds {offsets}"
            )
        numbers: dict[str, int] = {}
        for record in audit.records:
            producer, number, may_be_twice, _ = self._sent[record.value]
            if may_be_twice:
                continue
            last = numbers.get(producer, -1)
            if number <= last:
                raise Violation(
                    f"{audit.place} offset {record.offset}: record {number} of the idempotent {producer} comes after its {last}"
                )
            numbers[producer] = number
