"""Committed records are on every replica that could lead, and clients see no others.

A record is committed when a leader's high watermark has passed it. From then on every replica in the ISR or the ELR of the
committed metadata has it, with the same offset, epoch and CRC: the controller may elect any of them. A replica whose machine
has lost unsynced writes is excused until the controller has registered it again, which takes it out of both. A replica whose
node has not opened the partition yet is compared as soon as it has. Acknowledged with acks=all, and read, is nothing but
committed records. In compacted partitions only the ends of logs are compared.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from ottla.metadata.image.image import MetadataImage
from ottla.metadata.image.topics import PartitionState
from ottla.sim.checkers.checker import Batch, Checker, Place, SeenRecord, Violation
from ottla.sim.cluster.checkers.checker import ClusterChecker, Entry, HeldPartition, PartitionKey

HeldBy = Callable[[int, PartitionKey], HeldPartition | None]
"""The partition as the node with this id has it; None if the node is down, or has not opened it."""


class _Committed:
    """The committed records of one partition."""

    def __init__(self) -> None:
        self.end_offset = 0
        self.entries: dict[int, Entry] = {}
        """By base offset; none of compacted partitions."""


class CommittedRecords(ClusterChecker, Checker):
    """Remembers what was committed. `held_by` looks into the nodes, which are named `n` and their id."""

    def __init__(self, held_by: HeldBy) -> None:
        self._held_by = held_by
        self._image = MetadataImage()
        self._known: defaultdict[PartitionKey, _Committed] = defaultdict(_Committed)
        self._led: set[tuple[str, PartitionKey, int]] = set()
        self._excused: dict[int, int] = {}
        """Broker that has lost power → the epoch in which it was registered then."""
        self._unopened: set[tuple[int, PartitionKey]] = set()
        """Replicas in an ISR or ELR whose node has not opened the partition yet."""
        self.judged = 0

    # What nodes do

    def started(self, node: str) -> None:
        self._unopened = {each for each in self._unopened if each[0] != int(node[1:])}

    def writes_lost(self, node: str) -> None:
        broker_id = int(node[1:])
        broker = self._image.cluster.brokers.get(broker_id)
        self._excused[broker_id] = -1 if broker is None else broker.epoch

    def image_committed(self, before: MetadataImage, image: MetadataImage) -> None:
        self._image = image
        for broker_id, epoch in list(self._excused.items()):
            broker = image.cluster.brokers.get(broker_id)
            if broker is not None and broker.epoch > epoch:
                del self._excused[broker_id]
        if before.topics is image.topics:
            return
        for topic in image.topics.by_id.values():
            known = before.topics.by_id.get(topic.id)
            if known is topic:
                continue
            for number, state in topic.partitions.items():
                if known is None or known.partitions.get(number) is not state:
                    self._check_replicas((topic.id, number), state, 0)

    def partition_held(self, node: str, held: HeldPartition) -> None:
        if int(node[1:]) in self._excused:
            return  # a broker serves nobody before it is registered, whatever the metadata of its last process says
        topic = self._image.topics.by_id.get(held.key[0])
        state = None if topic is None else topic.partitions.get(held.key[1])
        self._check_opened(int(node[1:]), held, state)
        if not held.is_leading:
            return
        known = self._known[held.key]
        # A node that has not heard yet that another leads may lack records. What its replicas have still counts.
        is_newest = state is not None and held.leader_epoch == state.leader_epoch
        if is_newest and (node, held.key, held.leader_epoch) not in self._led:
            self._led.add((node, held.key, held.leader_epoch))
            self.judged += 1
            self._compare(held, f"{node}, which leads {held.name} in epoch {held.leader_epoch},", 0)
        start = known.end_offset
        if held.high_watermark <= start:
            return
        if not held.is_compacted:
            known.entries.update({entry.base_offset: entry for entry in held.entries(start, held.high_watermark)})
        known.end_offset = held.high_watermark
        if state is not None:
            self._check_replicas(held.key, state, start)

    def _check_replicas(self, key: PartitionKey, state: PartitionState, start: int) -> None:
        for kind, replicas in (("ISR", state.isr), ("ELR", state.elr)):
            for replica in replicas:
                held = None if replica in self._excused else self._held_by(replica, key)
                if held is None:
                    self._unopened.add((replica, key))
                else:
                    self.judged += 1
                    self._compare(held, f"n{replica}, which is in the {kind} of {held.name},", start)

    def _check_opened(self, replica: int, held: HeldPartition, state: PartitionState | None) -> None:
        """Check a replica that a node has just opened, if it could lead since before."""
        if (replica, held.key) in self._unopened:
            self._unopened.discard((replica, held.key))
            if state is not None and replica in (*state.isr, *state.elr):
                kind = "ISR" if replica in state.isr else "ELR"
                self._compare(held, f"n{replica}, which was in the {kind} of {held.name} before it opened it,", 0)

    def _compare(self, held: HeldPartition, who: str, start: int) -> None:
        """Check that a log has all committed records from `start` on."""
        known = self._known[held.key]
        if held.log_end_offset < known.end_offset:
            raise Violation(f"{who} ends at {held.log_end_offset}, and committed is everything up to {known.end_offset}")
        if held.is_compacted or start >= known.end_offset:
            return
        found = {entry.base_offset: entry for entry in held.entries(start, known.end_offset)}
        for offset, entry in known.entries.items():
            if offset >= max(start, held.log_start_offset) and found.get(offset) != entry:
                raise Violation(f"{who} has {found.get(offset, 'nothing')} at offset {offset}, and {entry} is committed there")

    # What clients see

    def acknowledged(self, batch: Batch, base_offset: int) -> None:
        if batch.acks == -1:
            self._check_committed(batch.place, base_offset + len(batch.values) - 1, f"{batch.producer} got an answer for")

    def seen(self, place: Place, records: list[SeenRecord]) -> None:
        if records:
            self._check_committed(place, records[-1].offset, "a consumer has read")

    def _check_committed(self, place: Place, offset: int, what: str) -> None:
        key = (place.topic.topic_id, place.number)
        if offset >= self._known[key].end_offset:
            self._look_at_leader(key)
        end_offset = self._known[key].end_offset
        if offset >= end_offset:
            raise Violation(f"{what} offset {offset} of {place}, and only what is below {end_offset} is committed")

    def _look_at_leader(self, key: PartitionKey) -> None:
        """A leader without followers tells of its high watermark in the next turn, and may be paused before: look now."""
        topic = self._image.topics.by_id.get(key[0])
        state = None if topic is None else topic.partitions.get(key[1])
        held = None if state is None else self._held_by(state.leader, key)
        if held is not None and state is not None:
            self.partition_held(f"n{state.leader}", held)
