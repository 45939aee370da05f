"""Invariants of replicated partitions."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable
from typing import NamedTuple

from ottla.coordinator.placement import partition_for
from ottla.ids import OFFSETS_TOPIC, TopicPartition
from ottla.metadata.image.image import MetadataImage
from ottla.metadata.image.topics import NO_LEADER, PartitionState
from ottla.sim.checkers.checker import Batch, Checker, Place, SeenRecord, Violation
from ottla.sim.cluster.checkers.checker import Answer, ClusterChecker, Entry, HeldPartition, PartitionKey
from ottla.wire.messages.alter_partition import AlterPartitionRequest

HeldBy = Callable[[int, PartitionKey], HeldPartition | None]
"""The partition as the node with this id has it; None if the node is down, or has not opened it."""


class _Committed:
    """The committed records of one partition."""

    def __init__(self) -> None:
        self.end_offset = 0
        self.entries: dict[int, Entry] = {}
        """By base offset; none of compacted partitions."""


class CommittedRecords(ClusterChecker, Checker):
    """Committed records are on every replica that could lead, and clients see no others.

    A record is committed when a leader's high watermark has passed it. From then on every replica in the ISR or the ELR of the
    committed metadata has it, with the same offset, epoch and CRC: the controller may elect any of them. A replica whose
    machine has lost unsynced writes is excused until the controller has registered it again, which takes it out of both. A
    replica whose node has not opened the partition yet is compared as soon as it has. Acknowledged with acks=all, and read, is
    nothing but committed records. In compacted partitions only the ends of logs are compared.

    Remembers what was committed. `held_by` looks into the nodes, which are named `n` and their id.
    """

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


class PartitionStates(ClusterChecker):
    """The states of replicated partitions: epochs rise, one leader per leader epoch, and nodes use committed states only.

    In the metadata, the partition epoch rises with every change, the leader epoch never falls, and a leader epoch has one
    leader, which is in the ISR. ISR and ELR are replicas, and have none in common. A node has a partition in a state that is
    committed, and never goes back to an older one.
    """

    def __init__(self) -> None:
        self._committed: dict[PartitionKey, dict[int, PartitionState]] = {}
        self._leaders: dict[tuple[PartitionKey, int], int] = {}
        self._newest: dict[tuple[str, PartitionKey], int] = {}
        self.judged = 0

    def started(self, node: str) -> None:
        self._newest = {held: epoch for held, epoch in self._newest.items() if held[0] != node}

    def image_committed(self, before: MetadataImage, image: MetadataImage) -> None:
        if before.topics is image.topics:
            return
        for topic in image.topics.by_id.values():
            known = before.topics.by_id.get(topic.id)
            if known is topic:
                continue
            for number, state in topic.partitions.items():
                earlier = None if known is None else known.partitions.get(number)
                if earlier is not state:
                    self._changed(f"{topic.name}-{number}", (topic.id, number), earlier, state)

    def _changed(self, name: str, key: PartitionKey, before: PartitionState | None, state: PartitionState) -> None:
        if before is not None and before != state:
            if state.partition_epoch <= before.partition_epoch:
                raise Violation(f"{name} was changed from {before} to {state}, and its partition epoch has not risen")
            if state.leader_epoch < before.leader_epoch:
                raise Violation(f"the leader epoch of {name} was {before.leader_epoch}, and then {state.leader_epoch}")
        if not {*state.isr, *state.elr} <= set(state.replicas) or set(state.isr) & set(state.elr):
            raise Violation(f"ISR and ELR of {name} are not apart, or not among its replicas: {state}")
        if state.leader != NO_LEADER:
            if state.leader not in state.isr:
                raise Violation(f"{name} is led by broker {state.leader}, which is not in its ISR {state.isr}")
            leader = self._leaders.setdefault((key, state.leader_epoch), state.leader)
            if leader != state.leader:
                raise Violation(f"leader epoch {state.leader_epoch} of {name} has two leaders: {leader} and {state.leader}")
        self._committed.setdefault(key, {})[state.partition_epoch] = state

    def partition_held(self, node: str, held: HeldPartition) -> None:
        self.judged += 1
        epoch = held.partition_epoch
        newest = self._newest.setdefault((node, held.key), epoch)
        if epoch < newest:
            raise Violation(f"{node} went back from partition epoch {newest} of {held.name} to {epoch}")
        self._newest[node, held.key] = epoch
        state = self._committed.get(held.key, {}).get(epoch)
        if state is None:
            raise Violation(f"{node} has {held.name} in partition epoch {epoch}, which is not committed")
        if (held.isr, held.leader, held.leader_epoch) != (state.isr, state.leader, state.leader_epoch):
            raise Violation(
                f"{node} has {held.name} with ISR {held.isr}, leader {held.leader} and leader epoch {held.leader_epoch} in "
                f"partition epoch {epoch}, and committed is {state}"
            )


class Replica(NamedTuple):
    """One replica, as its node has it."""

    log_start_offset: int
    high_watermark: int
    entries: list[Entry]
    epochs: list[tuple[int, int]]
    """The leader epochs with their start offsets, oldest first."""

    def epoch_for(self, offset: int) -> int | None:
        index = bisect_right(self.epochs, offset, key=lambda entry: entry[1])
        return self.epochs[index - 1][0] if index else None


class EqualReplicas(ClusterChecker):
    """The replicas of a partition have the same batches below their high watermarks, with the same offsets, epochs and CRCs.

    And the leader epochs that each node has for its log agree with its batches: a follower that asks where an epoch ended must
    not keep records that are not the leader's. Epochs without records may differ.

    Looked at in the end, when all nodes serve. Not checked for compacted topics, which each node compacts by itself. Each node
    also deletes old segments by itself: what one of them has deleted is not compared.
    """

    def __init__(self) -> None:
        self.judged = 0

    def replicas_read(self, partition: TopicPartition, replicas: dict[str, Replica]) -> None:
        for node, replica in replicas.items():
            _check_epochs(partition, node, replica)
        start = max(replica.log_start_offset for replica in replicas.values())
        end = min(replica.high_watermark for replica in replicas.values())
        known: dict[str, dict[int, Entry]] = {
            node: {each.base_offset: each for each in replica.entries if each.base_offset >= start and each.last_offset < end}
            for node, replica in replicas.items()
        }
        (first, expected), *others = known.items()
        for node, found in others:
            self.judged += 1
            for offset in sorted(expected.keys() | found.keys()):
                one, other = expected.get(offset, "nothing"), found.get(offset, "nothing")
                if one != other:
                    raise Violation(f"{partition} at offset {offset}: {first} has {one}, and {node} has {other}")


def _check_epochs(partition: TopicPartition, node: str, replica: Replica) -> None:
    for entry in replica.entries:
        for offset in (max(entry.base_offset, replica.log_start_offset), entry.last_offset):
            if (epoch := replica.epoch_for(offset)) != entry.epoch:
                raise Violation(
                    f"{partition}: {node} has {entry}, and its leader epochs say {epoch} for offset {offset}: {replica.epochs}"
                )


ANY_EPOCH = -1
"""Of a replica that stays in the ISR and has not fetched from this leader yet."""


class EligibleIsr(ClusterChecker):
    """A replica is let into an ISR only as the process that has caught up: the proposal has the broker epoch of its
    registration.

    A broker that is registered again since then may have lost records in between (KIP-903). The committed log says in which
    epoch each broker was registered when the controller decided.
    """

    def __init__(self) -> None:
        self._registered: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        """Broker → the offsets in the committed log at which it got an epoch, and the epoch."""
        self.judged = 0

    def image_committed(self, before: MetadataImage, image: MetadataImage) -> None:
        if before.cluster is image.cluster:
            return
        for broker_id, broker in image.cluster.brokers.items():
            registered = self._registered[broker_id]
            if not registered or registered[-1][1] != broker.epoch:
                registered.append((image.provenance.offset, broker.epoch))

    def answered(self, node: str, answer: Answer) -> None:
        request = answer.request
        if not isinstance(request, AlterPartitionRequest) or not answer.entries:
            return
        accepted = {
            (topic.topic_id, each.partition_index)
            for topic in answer.response.topics
            for each in topic.partitions
            if not each.error_code
        }
        for topic in request.topics:
            for proposal in topic.partitions:
                if (topic.topic_id, proposal.partition_index) not in accepted:
                    continue
                for replica in proposal.new_isr_with_epochs:
                    self._check(node, replica.broker_id, replica.broker_epoch, answer.entries[0].base_offset)

    def _check(self, node: str, broker_id: int, proposed: int, offset: int) -> None:
        self.judged += 1
        epochs = [epoch for at, epoch in self._registered[broker_id] if at < offset]
        registered = epochs[-1] if epochs else None
        if proposed not in (ANY_EPOCH, registered):
            raise Violation(
                f"the controller of {node} has let broker {broker_id} into an ISR with broker epoch {proposed}, and at offset "
                f"{offset} it was registered in epoch {registered}"
            )


PARTS = 4
"""In each of so many parts of the time, the high watermark must have moved."""


class SteadyIsr(ClusterChecker):
    """No replica that keeps pace is dropped from an ISR.

    The high watermark waits for every replica in the ISR. If it has moved again and again during replica.lag.time.max.ms, and
    has passed what the log had at the beginning of that time, then no replica in the ISR has lagged, and the leader must not
    drop one.

    `lag_s` is replica.lag.time.max.ms by the slowest clock.
    """

    def __init__(self, now_s: Callable[[], float], lag_s: float) -> None:
        self._now_s = now_s
        self._lag_s = lag_s
        self._moves: defaultdict[tuple[str, PartitionKey, int], list[tuple[float, int, int, tuple[int, ...]]]] = defaultdict(
            list
        )
        """Node, partition and leader epoch → when its high watermark has moved, to where, the log's end, and the ISR."""
        self.judged = 0

    def partition_held(self, node: str, held: HeldPartition) -> None:
        if held.is_leading:
            moves = self._moves[node, held.key, held.leader_epoch]
            if not moves or moves[-1][1] < held.high_watermark:
                moves.append((self._now_s(), held.high_watermark, held.log_end_offset, held.isr))

    def isr_proposed(self, node: str, held: HeldPartition, isr: tuple[int, ...]) -> None:
        dropped = set(held.isr) - set(isr)
        if not dropped:
            return
        self.judged += 1
        begin_s = self._now_s() - self._lag_s
        moves = [move for move in self._moves[node, held.key, held.leader_epoch] if move[0] >= begin_s]
        parts = {int((at_s - begin_s) / self._lag_s * PARTS) for at_s, *_ in moves}
        if not parts >= set(range(PARTS)) or any(not dropped <= set(move[3]) for move in moves):
            return
        if held.high_watermark >= moves[0][2]:
            raise Violation(
                f"{node} wants to drop {sorted(dropped)} from the ISR of {held.name}, although the high watermark, which waits "
                f"for them, has moved {len(moves)} times in {self._lag_s:g} s up to {held.high_watermark}"
            )


class _Term(NamedTuple):
    """A node leads a partition of __consumer_offsets until another does; the first one since the beginning."""

    node: int
    since_s: float


class Coordinators(ClusterChecker):
    """Which nodes have been the coordinators of groups, by the committed metadata. Checks nothing itself.

    A coordinator that cannot reach the other nodes is deposed without knowing it, and answers from what it has. Only the
    committed metadata tells such an answer from that of the coordinator.
    """

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._terms: dict[int, _Term] = {}

    def image_committed(self, before: MetadataImage, image: MetadataImage) -> None:
        topic = image.topics.by_name.get(OFFSETS_TOPIC)
        if topic is None or topic is before.topics.by_name.get(OFFSETS_TOPIC):
            return
        for number, state in topic.partitions.items():
            known = self._terms.get(number)
            # While there is no leader, nobody commits: the last one still has all that is committed.
            if state.leader != NO_LEADER and (known is None or known.node != state.leader):
                self._terms[number] = _Term(state.leader, 0.0 if known is None else self._now_s())

    def is_coordinator(self, group: str, node: int, since_s: float) -> bool:
        """Whether a node is the coordinator of a group, and no other was since then."""
        term = self._terms[partition_for(group, len(self._terms))]
        return term.node == node and term.since_s <= since_s
