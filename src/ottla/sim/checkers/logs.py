"""Invariants of logs and topics: what was acknowledged or seen stays, in its order, also after kills and power losses."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from ottla.errors.codes import error_name
from ottla.ids import Uuid, uuid_text
from ottla.sim.checkers.checker import Audit, Batch, Checker, Place, SeenRecord, TopicPlan, Violation, Watermarks


class NoLoss(Checker):
    """No acknowledged record is ever lost, and no record that was seen changes or disappears.

    An offset always holds the record that was acknowledged or seen there. The exceptions are Kafka's:

    - in a compacted topic a record may be removed once there is a later one with its key; retention may remove the oldest;
    - DeleteRecords may remove records below its offset, and they may return after a kill;
    - a power loss may lose records that were never flushed, at the end and in between (docs/decisions/0003). Later records may
      then get the offsets of those lost at the end. If every record is flushed first (flush.messages=1), none are lost.
    """

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


class Order(Checker):
    """Offsets have no gaps, and records are in the order in which their producer sent them.

    - The offsets of an audit run from the log start to the high watermark without a gap, except for what compaction removed,
      and for records that were never flushed before a power loss.
    - Records are as they were sent: none is invented, cut or mixed.
    - An idempotent producer's records appear once each, in order.
    - The offsets of a producer that waits for each answer before it sends again rise.
    """

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


class NothingSkipped(Checker):
    """A consumer gets every record between two that it gets, and a group commits no offset beyond what its members got.

    A gap in what a consumer got is judged when the partition is audited: what an audit finds there was there before.
    Compaction, retention, DeleteRecords, markers and aborted transactions leave offsets without a record, which a consumer may
    pass over. Replicas are compacted each by itself: what was removed from one leader's log may be in the next one's. So in a
    compacted topic only the last record with a key is judged.

    A group with automatic commits may get records twice. It must not commit an offset if a record below it was handed to no
    member.

    Remembers the offsets that consumers have passed over, and what groups got. `is_flushed`: the node flushes first.

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


ROUND_S = 0.05


class FlushedInTime(Checker):
    """With flush.ms, a power loss loses no record that was acknowledged or seen long enough before.

    Topics with compaction or retention are not checked.

    Long enough is twice flush.ms (the record may arrive just after a round of flushes) plus the time that the disk needs for
    one round, all within one life of the node without a fault. Records of earlier lives are not checked.

    `safe_before_s` maps a flush time to the time before which records must be durable now; None: no record must be.
    """

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


class RisingWatermarks(Checker):
    """Within one life of a node, log start, last stable offset and high watermark of a partition only rise.

    Also: log start ≤ last stable offset ≤ high watermark.
    """

    def __init__(self) -> None:
        self._last: dict[tuple[str, Place], Watermarks] = {}

    def watermarks_answered(self, connection: str, place: Place, marks: Watermarks) -> None:
        if not 0 <= marks.log_start_offset <= marks.last_stable_offset <= marks.high_watermark:
            raise Violation(f"{place}: these cannot all be true: {marks}")
        last = self._last.get((connection, place))
        if last is not None and any(now < before for now, before in zip(marks, last, strict=True)):
            raise Violation(f"{place} went back within one life of the node: {last}, and then {marks}")
        self._last[connection, place] = marks


class InStep(Checker):
    """An idempotent producer and the broker agree on the next sequence, also after restarts.

    There are two exceptions. A power loss may lose records; even if every record is flushed first, it may lose an unanswered
    batch and keep a later one in the next segment. And where compaction, retention or DeleteRecords may remove batches of a
    producer that is still known, a restarted broker may know only the producer's newest batch, and refuse a retry of an earlier
    one, as Apache Kafka does.
    """

    def __init__(self) -> None:
        self._power_losses = 0
        self._in_step_at: dict[tuple[str, Place], int] = {}
        self._shortened: dict[Place, None] = {}

    def power_lost(self) -> None:
        self._power_losses += 1

    def deletion_requested(self, place: Place, offset: int) -> None:
        self._shortened[place] = None

    def acknowledged(self, batch: Batch, base_offset: int) -> None:
        self._in_step_at[batch.producer, batch.place] = self._power_losses

    def out_of_step(self, batch: Batch, code: int) -> None:
        at = self._in_step_at.get((batch.producer, batch.place), 0)
        topic = batch.place.topic
        may_be_gone = topic.is_compacted or topic.is_retained or batch.place in self._shortened
        if at == self._power_losses and not may_be_gone:
            raise Violation(
                f"{batch.place}: {batch.producer} got {error_name(code)} for its oldest unanswered batch {batch.number}, "
                "with no loss that explains it"
            )
        self._in_step_at[batch.producer, batch.place] = self._power_losses


class UniqueProducerIds(Checker):
    """No producer id is handed out twice, also across kills and power losses."""

    def __init__(self) -> None:
        self._given: dict[int, int] = {}

    def producer_id_given(self, producer_id: int, epoch: int) -> None:
        if producer_id < 0:
            raise Violation(f"a producer was given the id {producer_id}")
        if producer_id in self._given:
            raise Violation(f"producer id {producer_id} was given to two producers")
        self._given[producer_id] = epoch


class MonotonicQuorum(Checker):
    """The metadata log's high watermark and epoch never decrease, even after a power loss: both are synced before answering."""

    def __init__(self) -> None:
        self._leader_epoch = -1
        self._high_watermark = -1

    def quorum_answered(self, leader_epoch: int, high_watermark: int) -> None:
        if leader_epoch < self._leader_epoch:
            raise Violation(f"the metadata log's epoch was {self._leader_epoch}, and now it is {leader_epoch}")
        if high_watermark < self._high_watermark:
            raise Violation(f"the metadata log was committed up to {self._high_watermark}, and now up to {high_watermark}")
        self._leader_epoch, self._high_watermark = leader_epoch, high_watermark


class LastingTopics(Checker):
    """Acknowledged changes of topics (created, deleted, partitions added, configs set) last, also after a power loss."""

    def __init__(self) -> None:
        self._topics: dict[str, TopicPlan] = {}

    def topic_made(self, topic: TopicPlan) -> None:
        self._topics[topic.name] = topic

    def topic_deleted(self, topic: TopicPlan) -> None:
        self._topics.pop(topic.name, None)

    def topics_answered(self, found: dict[str, tuple[Uuid, int]], configs: dict[str, dict[str, str]]) -> None:
        if sorted(found) != sorted(self._topics):
            raise Violation(f"there should be the topics {sorted(self._topics)}, and there are {sorted(found)}")
        for name, topic in self._topics.items():
            topic_id, partitions = found[name]
            if topic_id != topic.topic_id:
                raise Violation(f"topic {name} was made as {uuid_text(topic.topic_id)}, and now it is {uuid_text(topic_id)}")
            if partitions != topic.partitions:
                raise Violation(f"topic {name} has {topic.partitions} partitions, but the node reports {partitions}")
            if configs[name] != topic.configs:
                raise Violation(f"topic {name} was configured with {topic.configs}, but the node reports {configs[name]}")
