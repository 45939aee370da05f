"""No acknowledged record is ever lost, and no record that was seen changes or disappears.

An offset always holds the record that was acknowledged or seen there. The exceptions are Kafka's:

- in a compacted topic a record may be removed once there is a later one with its key; retention may remove the oldest;
- DeleteRecords may remove records below its offset, and they may return after a kill;
- a power loss may lose records that were never flushed, at the end and in between (docs/decisions/0003). Later records may
  then get the offsets of those lost at the end. If every record is flushed first (flush.messages=1), none are lost.
"""

from collections import defaultdict

from ottla.sim.checkers.checker import Audit, Batch, Checker, Place, SeenRecord, Violation


class NoLoss(Checker):
    """Remembers which record is at which offset."""

    def __init__(self) -> None:
        self._known: defaultdict[Place, dict[int, bytes]] = defaultdict(dict)
        self._keys: defaultdict[Place, dict[int, bytes | None]] = defaultdict(dict)
        self._deleted_below: defaultdict[Place, int] = defaultdict(int)
        self._power_losses = 0
        self._audited_after: dict[Place, int] = {}
        """How many power losses there had been when a partition was last audited."""
        self.records_lost_to_power = 0

    def acknowledged(self, batch: Batch, base_offset: int) -> None:
        if batch.acks == 0:
            return
        for offset, (value, key) in enumerate(zip(batch.values, batch.keys, strict=True), base_offset):
            self._learn(batch.place, offset, value, key, "acknowledged")

    def seen(self, place: Place, records: list[SeenRecord]) -> None:
        for record in records:
            self._learn(place, record.offset, record.value, record.key, "read")

    def _learn(self, place: Place, offset: int, value: bytes, key: bytes | None, how: str) -> None:
        self._keys[place][offset] = key
        known = self._known[place].setdefault(offset, value)
        if known != value:
            raise Violation(f"{place} offset {offset} held {known[:40]!r}, and now {value[:40]!r} was {how} there")

    def deletion_requested(self, place: Place, offset: int) -> None:
        self._deleted_below[place] = max(self._deleted_below[place], offset)

    def power_lost(self) -> None:
        self._power_losses += 1

    def audited(self, audit: Audit) -> None:
        place, known = audit.place, self._known[audit.place]
        is_after_power_loss = self._audited_after.get(place, 0) < self._power_losses
        self._audited_after[place] = self._power_losses
        if place.topic.is_retained or (is_after_power_loss and not place.topic.is_flushed):
            # After a power loss also without retention: the first segments may be lost if their names were never synced.
            self._deleted_below[place] = max(self._deleted_below[place], audit.log_start_offset)
        if audit.log_start_offset > self._deleted_below[place]:
            raise Violation(
                f"{place} begins at {audit.log_start_offset}, but no client asked to delete beyond {self._deleted_below[place]}"
            )
        there = {record.offset for record in audit.records}
        lost = sorted(offset for offset in known if offset >= audit.log_start_offset and offset not in there)
        if place.topic.is_compacted:
            newest = {record.key: record.offset for record in audit.records}
            lost = [offset for offset in lost if newest.get(self._keys[place][offset], -1) < offset]
        if is_after_power_loss and not place.topic.is_flushed:
            self.records_lost_to_power += len(lost)
            for offset in lost:
                del known[offset]
            lost = []
        if lost:
            raise Violation(
                f"{place} holds {audit.log_start_offset} to {audit.high_watermark}, but {len(lost)} records that were "
                f"acknowledged or seen are not there; the first is {known[lost[0]][:40]!r} at {lost[0]}"
            )
        self.seen(place, audit.records)
