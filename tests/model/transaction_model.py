"""A model of the world around one transaction coordinator: partitions, producers, markers under way, and readers.

Partitions are only their producers' state. Producers may be late, be fenced or lose responses. Readers read committed records.

An attempt is what a producer does between two transaction ends; it is committed if the coordinator accepted its commit.
Invariants:

- An uncommitted attempt is invisible. A committed one is visible with every acknowledged record once its markers are written.
  The offsets are a partition like the others, so they and the output are visible together or not at all.
- Every transaction ends: when all producers have stopped and time has passed, no partition has an open transaction. Those of
  two-phase commit never time out: they end when their id is initialised again.
- A transaction that was kept for another producer is ended by that one only, which can add nothing to it.
- Under version 2 an EndTxn that arrives again, late, ends no later transaction.
- Loading any prefix of the log gives the state at that time.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.support.logs.batches import make_batch
from tests.support.shards.transaction_shard import NEW, OLD, ShardInHand

from ottla.coordinator.contract import Effects, Producer
from ottla.coordinator.transactions.init_producer_id import TIMEOUT_NEVER_MS
from ottla.coordinator.transactions.transaction import AT_REST, FOLLOWS, SendMarkers, Transaction, TransactionState
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import OFFSETS_TOPIC, TopicPartition
from ottla.log.producers.append_checks import AppendOrigin, VerificationState
from ottla.log.producers.producer_state import ProducerState
from ottla.records.batch import BatchView
from ottla.records.control import build_end_marker

PARTITIONS = (TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition(OFFSETS_TOPIC, 0))
NOT_NOW = (ErrorCode.CONCURRENT_TRANSACTIONS,)


@dataclass
class Written:
    """One record: of an attempt, or the marker that ends a transaction."""

    offset: int
    producer_id: int
    attempt: int | None = None
    is_commit: bool | None = None


class PartitionModel:
    """One partition: the real state of its producers, and which attempt each record belongs to."""

    def __init__(self, name: TopicPartition) -> None:
        self.name = name
        self.is_offsets = name.topic == OFFSETS_TOPIC
        self.producers = ProducerState(str(name))
        self.written: list[Written] = []

    def _append(self, data: bytearray, origin: AppendOrigin, **how: Any) -> bool:
        offset = len(self.written)
        checked = self.producers.begin(origin, **how)
        if checked.add(BatchView(data), offset) is not None:
            return False  # a duplicate
        self.producers.apply(checked, offset + 1)
        self.producers.on_high_watermark(offset + 1)
        return True

    def append(self, batch: bytearray, producer_id: int, attempt: int, verified_by: VerificationState | None) -> None:
        origin = AppendOrigin.COORDINATOR if self.is_offsets else AppendOrigin.CLIENT
        if self._append(bytearray(batch), origin, verify=True, verified_by=verified_by):
            self.written.append(Written(len(self.written), producer_id, attempt))

    def mark(self, order: SendMarkers, coordinator_epoch: int) -> None:
        marker = build_end_marker(
            is_commit=order.is_commit,
            producer_id=order.producer.id,
            producer_epoch=order.producer.epoch,
            coordinator_epoch=coordinator_epoch,
            timestamp_ms=0,
        )
        self._append(marker, AppendOrigin.COORDINATOR, transaction_version=order.transaction_version, verify=True)
        self.written.append(Written(len(self.written), order.producer.id, is_commit=order.is_commit))

    @property
    def last_stable_offset(self) -> int:
        return self.producers.last_stable_offset(len(self.written))

    def visible(self) -> list[int]:
        """The attempts of the records that readers of committed records see, one per record."""
        found = []
        for record in self.written[: self.last_stable_offset]:
            if record.attempt is None:
                continue
            ends = (each for each in self.written[record.offset :] if each.producer_id == record.producer_id)
            end = next((each for each in ends if each.is_commit is not None), None)
            assert end is not None, f"{self.name}: a transaction below the last stable offset has not ended"
            if end.is_commit:
                found.append(record.attempt)
        return found


@dataclass(eq=False)
class Instance:
    """One producer process. It continues until a response says that it is fenced, and knows only what responses say."""

    name: str
    client: int
    producer: Producer
    attempt: int
    sequences: dict[TopicPartition, int] = field(default_factory=dict)
    added: set[TopicPartition] = field(default_factory=set)
    in_flight: int = 0
    has_failed: bool = False
    """It can only abort."""
    asked_to: bool | None = None
    """It asked for commit or abort, and has no response."""
    is_over: bool = False
    is_prepared: bool = False
    """It sends nothing any more, since another producer has been asked to end its transaction. It may still try to end it."""
    kept: "Instance | None" = None
    """The producer whose transaction this one has to end before it does anything else."""

    def take_over(self, producer: Producer, attempt: int) -> None:
        if producer != self.producer:
            self.sequences.clear()
        self.producer, self.attempt = producer, attempt
        self.added.clear()
        self.has_failed, self.asked_to, self.in_flight, self.kept = False, None, 0, None


@dataclass(eq=False)
class Batch:
    """A batch that the coordinator has verified, on its way to the log."""

    sender: Instance
    attempt: int
    partition: PartitionModel
    data: bytearray
    producer: Producer
    proof: VerificationState | None


class World:
    """The coordinator, partitions and producers. Every method is an event; requests may be refused."""

    def __init__(self, transaction_version: int) -> None:
        self.shard = ShardInHand(transaction_version, transaction_two_phase_commit_enable=True)
        self.coordinator_epoch = 0
        self.partitions = {name: PartitionModel(name) for name in PARTITIONS}
        self.instances: list[Instance] = []
        self.batches: list[Batch] = []
        self.attempts = 0
        self.committed: set[int] = set()
        self.acknowledged: dict[int, list[TopicPartition]] = {}
        self.ended: list[tuple[str, Producer, bool]] = []
        """The ends that producers of version 2 were granted: id, producer and whether it was a commit."""
        self.sending: dict[SendMarkers, list[TopicPartition]] = {}
        self.follower = self.shard.loaded()
        self.followed = 0

    # -- the coordinator

    def settle(self) -> None:
        """Note the markers to be written. A follower that replays the log record by record must have the same state."""
        for order in self.shard.orders:
            self.sending[order] = list(order.partitions)
        self.shard.orders = []
        for offset in range(self.followed, len(self.shard.log)):
            before = dict(self.follower.table.by_id)
            self.shard.replay_into(self.follower, offset)
            for name, now in self.follower.table.by_id.items():
                assert name not in before or before[name] is now or before[name].state in FOLLOWS[now.state]
        self.followed = len(self.shard.log)
        assert self.follower.table.by_id == self.shard.known

    def _asked(self, sender: Instance, act: Callable[[], Any]) -> tuple[bool, Any]:
        """(whether it succeeded, the response). A producer that is fenced ends."""
        try:
            answer = act()
        except KafkaError as refused:
            if refused.code in (
                ErrorCode.PRODUCER_FENCED,
                ErrorCode.INVALID_PRODUCER_EPOCH,
                ErrorCode.INVALID_PRODUCER_ID_MAPPING,
            ):
                sender.is_over = True
            elif refused.code not in NOT_NOW:
                sender.has_failed = True
            self.settle()
            return False, refused
        self.settle()
        return True, answer

    def new_attempt(self) -> int:
        self.attempts += 1
        return self.attempts

    def new_instance(self, name: str, client: int, is_two_phase: bool = False) -> None:
        try:
            producer = self.shard.initialise(name, timeout_ms=30_000, enable2_pc=is_two_phase)
        except KafkaError as refused:
            if refused.code not in NOT_NOW:
                raise
        else:
            self.instances.append(Instance(name, client, producer, self.new_attempt()))
        self.settle()

    def keep(self, name: str, is_two_phase: bool) -> None:
        """A new producer asks for the id, and to keep what is open. What was written is prepared: flushed and acknowledged."""
        known = self.shard.known.get(name)
        writer = None
        if known is not None and known.state == TransactionState.ONGOING:
            alive = (each for each in self.instances if each.name == name and not each.is_over)
            writer = next((each for each in alive if each.producer == known.owner), None)
            if writer is None or (writer.kept is None and (writer.has_failed or writer.in_flight or not writer.added)):
                return
        try:
            producer, ongoing = self.shard.keep(name, timeout_ms=30_000, enable2_pc=is_two_phase)
        except KafkaError as refused:
            if refused.code not in (*NOT_NOW, ErrorCode.UNSUPPORTED_VERSION):
                raise
        else:
            made = Instance(name, NEW, producer, self.new_attempt())
            self.instances.append(made)
            if ongoing is not None:
                assert known is not None
                assert writer is not None
                assert ongoing == known.producer
                made.kept = writer.kept or writer
                made.attempt = made.kept.attempt
                writer.is_prepared = True
        self.settle()

    def initialise_again(self, sender: Instance) -> None:
        granted, producer = self._asked(sender, lambda: self.shard.initialise(sender.name, sender.producer, timeout_ms=30_000))
        if granted:
            sender.take_over(producer, self.new_attempt())

    def use_up_epochs(self, sender: Instance, left: int) -> None:
        """Set the producer epoch as if only `left` epochs were left."""
        known = self.shard.known.get(sender.name)
        if known is None or known.producer != sender.producer or known.state not in AT_REST:
            return
        later = known._replace(state=TransactionState.EMPTY, epoch=max(known.epoch, 2**15 - 2 - left))
        self.shard.submit(Effects([self.shard.shard.table.record(later)]))
        self.settle()
        sender.take_over(later.producer, self.new_attempt())

    def restart_coordinator(self) -> None:
        self.coordinator_epoch += 1
        self.sending.clear()
        self.shard.restart()
        self.settle()

    def pass_time(self, elapsed_ms: int) -> None:
        before = self._open_for_ever()
        self.shard.pass_time(elapsed_ms)
        self.settle()
        assert before == self._open_for_ever(), "a transaction of two-phase commit was ended by time"

    def _open_for_ever(self) -> dict[str, Transaction]:
        return {
            name: each
            for name, each in self.shard.known.items()
            if each.state == TransactionState.ONGOING and each.timeout_ms == TIMEOUT_NEVER_MS
        }

    def send_marker(self, order: SendMarkers, name: TopicPartition) -> None:
        """One partition gets its marker; the last one completes the transaction. It may get it twice."""
        self.partitions[name].mark(order, self.coordinator_epoch)
        self.sending[order].remove(name)
        self.finish(order)

    def send_all_markers(self) -> None:
        while self.sending:
            order, left = next(iter(self.sending.items()))
            if left:
                self.send_marker(order, left[0])
            else:
                self.finish(order)

    def finish(self, order: SendMarkers) -> None:
        if not self.sending[order]:
            del self.sending[order]
            self.shard.submit(self.shard.shard.complete(order.transactional_id, order.producer, self.shard.now))
            self.settle()

    # -- producers

    def send(self, sender: Instance, name: TopicPartition) -> None:
        """Send a batch to its partition. The coordinator verifies its transaction; the append comes later (`deliver`)."""
        partition = self.partitions[name]
        producer, is_new = sender.producer, sender.client == NEW
        if sender.kept is not None:
            granted = self._verified(sender, name)
            assert not granted, "a kept transaction grew"
            return
        if not is_new and name not in sender.added:
            granted, _ = self._asked(sender, lambda: self.shard.add(sender.name, producer, name, client=OLD))
            if not granted:
                return
            sender.added.add(name)
        sequence = -1 if partition.is_offsets else sender.sequences.get(name, 0)
        granted, proof = self._asked(
            sender,
            lambda: partition.producers.begin_verification(producer.id, sequence, producer.epoch, is_new, 0),
        )
        if not granted:
            return
        if proof is not None:
            granted = self._verified(sender, name)
            if not granted:
                return
        sender.added.add(name)
        data = make_batch(b"x", producer=(*producer, sequence), transactional=True)
        sender.sequences[name] = sequence + 1
        sender.in_flight += 1
        self.batches.append(Batch(sender, sender.attempt, partition, data, producer, proof))

    def _verified(self, sender: Instance, name: TopicPartition) -> bool:
        if sender.client == NEW:
            return self._asked(sender, lambda: self.shard.add(sender.name, sender.producer, name))[0]
        granted, codes = self._asked(sender, lambda: self.shard.shard.verify(sender.name, sender.producer, [name]))
        if granted and codes[name] != ErrorCode.NONE:
            sender.has_failed, granted = True, False
        return granted

    def deliver(self, batch: Batch, is_acknowledged: bool) -> None:
        """Append a batch to its log; its response may be lost."""
        try:
            batch.partition.append(batch.data, batch.producer.id, batch.attempt, batch.proof)
        except KafkaError:
            if batch.sender.attempt == batch.attempt:
                batch.sender.has_failed = True
            self.batches.remove(batch)
            return
        if is_acknowledged:
            self.batches.remove(batch)
            if batch.sender.attempt == batch.attempt and not batch.sender.is_over:
                batch.sender.in_flight -= 1
            self.acknowledged.setdefault(batch.attempt, []).append(batch.partition.name)

    def end(self, sender: Instance, commit: bool, is_answered: bool) -> None:
        """Ask for the end of the transaction, or retry it. A producer commits only if all its batches are acknowledged."""
        if sender.asked_to is not None:
            commit = sender.asked_to
        elif commit and sender.kept is None and (sender.has_failed or sender.in_flight or not sender.added):
            commit = False
        if sender.client == OLD and not sender.added:
            return
        granted, after = self._asked(sender, lambda: self.shard.end(sender.name, sender.producer, commit, sender.client))
        if not granted:
            return
        assert not sender.is_prepared, "a producer ended a transaction that was kept for another"
        if commit:
            self.committed.add(sender.attempt)
        if sender.client == NEW:
            self.ended.append((sender.name, sender.producer, commit))
        sender.asked_to = commit
        if not is_answered:
            return
        needs_epoch = sender.client == OLD and (sender.has_failed or sender.in_flight)
        sender.take_over(sender.producer if sender.client == OLD else after, self.new_attempt())
        if needs_epoch:
            sender.has_failed = True  # batches still under way must not count for the next transaction
            sender.is_over = True

    def repeat_end(self, name: str, producer: Producer, commit: bool) -> None:
        """An end that was granted before arrives once more."""
        before = self.shard.known.get(name)
        try:
            self.shard.end(name, producer, commit, NEW)
        except KafkaError:
            pass
        self.settle()
        if before is not None and before.state == TransactionState.ONGOING:
            assert self.shard.known[name] == before, "a late EndTxn has ended a later transaction"

    # -- what must hold

    def check(self) -> None:
        for partition in self.partitions.values():
            seen = partition.visible()
            assert set(seen) <= self.committed, f"{partition.name} shows uncommitted attempts: {set(seen) - self.committed}"

    def wind_up(self) -> None:
        """All producers stop, markers are written, time passes, late batches arrive: no transaction may be left open."""
        for name in self._open_for_ever():
            self.new_instance(name, NEW)
        for _ in range(3):
            self.pass_time(60_000)
            self.send_all_markers()
        for batch in list(self.batches):
            self.deliver(batch, False)
        for partition in self.partitions.values():
            assert partition.last_stable_offset == len(partition.written), f"a transaction hangs in {partition.name}"
        self.check()
        for name, partition in self.partitions.items():
            seen = partition.visible()
            for attempt in self.committed:
                times, expected = seen.count(attempt), self.acknowledged.get(attempt, []).count(name)
                if partition.is_offsets:  # committed twice is committed
                    times, expected = min(times, 1), min(expected, 1)
                assert times == expected, f"{name} has {times} of {expected} records of attempt {attempt}"
        assert self.shard.loaded().table.by_id == self.shard.known
