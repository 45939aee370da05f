"""`Producer`: the synchronous producer. Threads may share one.

`send` hashes, encodes and appends in the calling thread; the event loop in a thread of its own sends. A calling thread blocks
only for the metadata of a topic that it uses for the first time and for buffer.memory, up to max.block.ms.

What runs on the event loop, and asyncio itself, is imported with the first producer that is made: importing the name costs
little.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Generic

from ottla.client.dropped import producer_dropped
from ottla.client.measured import MeasuredFace
from ottla.client.producer.deliveries import Deliveries
from ottla.client.producer.intake import (
    Headers,
    Intake,
    Record,
    check_callback,
    check_topic_name,
    checked_partition,
    checked_timestamp,
    pack,
)
from ottla.client.producer.many import ArrowData, append_all, sources
from ottla.client.type_parameters import K, V
from ottla.client_core.metadata import PartitionInfo
from ottla.client_core.producer.accumulator import ANY_PARTITION, MemoryTicket
from ottla.client_core.producer.batch import ProducerBatch
from ottla.client_core.producer.delivery import RecordMetadata
from ottla.config.client import producer_settings
from ottla.env.threads import Lineage, LoopThread, Threads
from ottla.errors import BufferExhaustedError, IllegalStateError, KafkaError, TimeoutError
from ottla.errors.faults import without_frames
from ottla.errors.texts import counted
from ottla.ids import Uuid
from ottla.records.kernels import NO_HEADERS, Delivery, PlainSend

if TYPE_CHECKING:  # what runs on the event loop is loaded with the first producer, what transactions need with the first one
    from ottla.client.metrics import ClientMetrics
    from ottla.client.producer.core import ProducerCore
    from ottla.client.producer.transactions import Offsets
    from ottla.client.world import ClientWorld
    from ottla.client_core.offsets import ConsumerGroupMetadata
    from ottla.client_core.producer.finishing import Finish, PreparedTransaction, TransactionIdentity

logger = logging.getLogger("ottla.client.producer")

OnDelivery = Callable[[RecordMetadata | None, KafkaError | None], Any]
"""Called on the producer's thread with the record's metadata or its error; it must not block."""
OnBatch = Callable[[ProducerBatch], Any]

_CLOSE_GRACE_S = 5.0


class ThreadWaiting:
    """How a calling thread waits for a batch."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._lineage = threads.lineage()
        self._generation = self._lineage.generation
        self.thread: LoopThread | None = None

    def wait(self, batch: ProducerBatch, timeout_s: float | None) -> None:
        if self._lineage.generation != self._generation:
            raise IllegalStateError(
                f"this record for {batch.topic}-{batch.partition} was sent before a fork: only the process that has sent it "
                "learns what becomes of it"
            )
        if self.thread is not None and self.thread.is_current:
            raise IllegalStateError("a delivery callback must not wait for another record: it would wait for itself")
        signal = self._threads.signal()
        batch.waiters.append(signal.set)
        if not batch.is_done and not signal.wait(timeout_s):
            raise TimeoutError(
                f"a record for {batch.topic}-{batch.partition} was neither stored nor given up within {timeout_s} s; "
                "the producer goes on, so ask again or wait longer"
            )

    async def wait_async(self, batch: ProducerBatch) -> None:
        raise IllegalStateError("this delivery belongs to a synchronous producer: call its result() instead of awaiting it")


class Producer(MeasuredFace, PlainSend, Generic[K, V]):
    """Sends records to Kafka.

    with Producer("localhost:9092", value_serializer="json") as producer:
        delivery = producer.send("events", {"a": 1}, key=b"k")
        delivery.result(timeout=10)      # RecordMetadata(topic, partition, offset, timestamp)
    """

    def __init__(
        self,
        bootstrap_servers: object = None,
        config: Mapping[str, Any] | None = None,
        *,
        world: ClientWorld | None = None,
        partitioner: object = None,
        **settings: Any,
    ) -> None:
        from ottla.client.link_options import check_security
        from ottla.client.producer.core import ProducerCore
        from ottla.client.real_world import real_client_world

        if partitioner is not None:
            settings["partitioner_class"] = partitioner
        made = producer_settings(bootstrap_servers, config, settings)
        world = real_client_world() if world is None else world
        check_security(made, world.network)
        threads = world.threads
        waiting = ThreadWaiting(threads)
        self._world = world
        self._process_id = threads.process_id()
        self._lineage = threads.lineage()
        self._generation = self._lineage.generation
        self._clock_ms, self._clock_ns = world.clock.now_ms, world.clock.now_ns
        self._thread = waiting.thread = threads.start_loop("ottla-producer")
        try:

            async def start() -> ProducerCore:
                return ProducerCore(made, world, waiting, threads.lock())

            self._core = core = self._thread.call(start)
            self._intake = Intake(core)
        except BaseException:
            self._thread.stop(_CLOSE_GRACE_S)
            raise
        self._accumulator = core.accumulator
        self._topics = core.accumulator.topics
        self._transactions = core.transactions
        is_plain = self._intake.is_plain() and core.transactions is None
        self._plain_topics = self._topics if is_plain else {}
        self._is_closed = False
        self._finalizer = weakref.finalize(self, _abandoned, core, self._thread, self._lineage, self._generation)

    # Sending

    if TYPE_CHECKING:  # it is `PlainSend.send`, which knows no types of keys and values

        def send(
            self,
            topic: str,
            value: V | None = None,
            key: K | None = None,
            *,
            partition: int | None = None,
            timestamp: int | None = None,
            headers: Headers = (),
            on_delivery: OnDelivery | None = None,
        ) -> Delivery: ...

    def _send_other(
        self,
        topic: str,
        value: V | None,
        key: K | None,
        partition: int | None,
        timestamp: int | None,
        headers: Headers,
        on_delivery: OnDelivery | None,
    ) -> Delivery:
        """Send a record that `PlainSend` has left: it has headers, a partition or a serializer, or needs a new batch."""
        if on_delivery is not None:
            check_callback("on_delivery", on_delivery)
        if self._is_closed or self._lineage.generation != self._generation:
            raise self._unusable()
        if self._transactions is not None:
            self._transactions.check_send()
        packed = NO_HEADERS if not headers else pack(headers)
        key_bytes = self._intake.key_bytes(topic, headers, key)
        value_bytes = self._intake.value_bytes(topic, headers, value)
        number = ANY_PARTITION if partition is None else checked_partition(partition, topic)
        stamp = self._clock_ms() if timestamp is None else checked_timestamp(timestamp)
        batches = self._topics.get(topic)
        if batches is not None and (number >= 0 or self._intake.is_default):
            delivery = batches.append(number, stamp, key_bytes, value_bytes, packed, on_delivery)
            if delivery is not None:
                return delivery
        return self._send_slowly(topic, number, (stamp, key_bytes, value_bytes, packed), on_delivery, (key, value))

    def _send_slowly(
        self,
        topic: str,
        partition: int,
        record: Record,
        on_delivery: OnDelivery | None,
        given: tuple[Any, Any],
    ) -> Delivery:
        """Send a record that needs more than an open batch: metadata, another partitioner, a new batch, memory."""
        self._intake.check(topic, record)
        deadline_s = self._world.clock.monotonic_s() + self._core.settings.max_block_ms / 1000
        if not self._intake.knows(topic, partition):
            self._know_topic(topic, partition, deadline_s)
            self._check_open()
            self._intake.check_partition(topic, partition)
        partition = self._intake.partition(topic, partition, record, given)
        now_ms = self._core.now_ms()
        delivery = self._accumulator.append(topic, partition, record, on_delivery, now_ms)
        if delivery is None:
            return self._append_when_free(topic, partition, record, on_delivery, deadline_s)
        if self._core.is_finished:
            raise self._too_late(delivery)
        if self._core.fault is not None or self._accumulator.must_wake(now_ms):
            self._wake()
        return delivery

    def _too_late(self, delivery: Delivery) -> IllegalStateError:
        """The error for a record that was added after another thread had closed the producer: nothing sends its batch."""
        error = self._unusable()
        delivery.batch.fail(error)
        return error

    def _wake(self) -> None:
        try:
            self._thread.post(self._core.wake)
        except RuntimeError:
            if not self._is_closed:  # if it is, the loop has ended and nothing is left to do
                raise

    def _know_topic(self, topic: str, partition: int, deadline_s: float) -> None:
        if self._thread.is_current:
            raise IllegalStateError(
                f"a delivery callback cannot send to topic {topic} yet: its metadata is not known, and the callback would wait "
                "for itself. Call partitions_for before"
            )
        timeout_s = max(0.0, deadline_s - self._world.clock.monotonic_s())
        self._wait_for(lambda: self._core.know_topic(topic, partition, timeout_s))

    def _append_when_free(
        self,
        topic: str,
        partition: int,
        record: Record,
        on_delivery: OnDelivery | None,
        deadline_s: float,
    ) -> Delivery:
        """Wait for memory, in turn with other threads, then append."""
        from ottla.client.patience import Patience

        accumulator = self._accumulator
        if self._thread.is_current:
            raise BufferExhaustedError("a delivery callback cannot wait for buffer.memory, which is used up: send elsewhere")
        signal = self._world.threads.signal()
        ticket = MemoryTicket(accumulator.size_for(record), signal.set)
        began_s = self._world.clock.monotonic_s()
        patience = Patience(self._world.clock)
        accumulator.wait_for_memory(ticket)
        self._wake()
        try:
            while True:
                signal.clear()
                self._check_open()
                delivery = accumulator.append(topic, partition, record, on_delivery, self._core.now_ms(), ticket)
                if delivery is not None and self._core.is_finished:
                    raise self._too_late(delivery)
                if delivery is not None:
                    return delivery
                left_s = deadline_s - self._world.clock.monotonic_s()
                if left_s <= 0:
                    raise self._core.buffer_exhausted()
                signal.wait(min(left_s, patience.look(self._core.why_memory_full)))
                if self._core.fault is not None:
                    raise without_frames(self._core.fault)
        finally:
            self._core.leave_queue(ticket, began_s)
            self._wake()

    def send_many(
        self,
        topic: str,
        values: Iterable[V | None] | ArrowData,
        keys: Iterable[K | None] | ArrowData | None = None,
        *,
        headers: Iterable[Headers | None] | None = None,
        partition: int | None = None,
        timestamp: int | None = None,
        into: Deliveries | None = None,
    ) -> Deliveries:
        """Send many records of one topic, much faster than by `send` for each.

        `keys` and `headers` have an entry for each value, in the same order: a key or None; the record's headers or None.

        `values` may be an Arrow table, record batch or reader with the columns value, key, headers, partition and timestamp
        (those that there are), or values and keys may be Arrow arrays. `partition` and `timestamp` are for records that have
        none there. Records are added to `into`, if given, as they are taken: it has those before one that cannot be sent.
        """
        if self._is_closed or self._lineage.generation != self._generation:
            raise self._unusable()
        number = ANY_PARTITION if partition is None else checked_partition(partition, topic)
        stamp = self._clock_ms if timestamp is None else partial(int, checked_timestamp(timestamp))
        deliveries = Deliveries() if into is None else into
        topics = self._topics if self._intake.is_default or number >= 0 else {}
        records = sources(topic, self._intake, values, keys, headers)
        for each, record, given in append_all(
            partial(topics.get, topic), records, (number, stamp), deliveries, self._check_open
        ):
            delivery = self._send_slowly(topic, each, record, None, given)
            deliveries.places.add(delivery.batch, delivery.index)
        return deliveries

    def _check_open(self) -> None:
        """Raise if another thread has closed the producer, or ended the transaction, while this one waited."""
        if self._is_closed or self._lineage.generation != self._generation:
            raise self._unusable()
        if self._transactions is not None:
            self._transactions.check_send()

    # Waiting and asking

    def flush(self, timeout: float | None = None) -> None:
        """Send everything now, and wait up to `timeout` seconds until it is stored or has failed."""
        self._call(lambda: self._core.flush(timeout))

    def partitions_for(self, topic: str) -> list[PartitionInfo]:
        """The partitions of a topic."""
        check_topic_name(topic)
        found: list[PartitionInfo] = self._call(lambda: self._core.partitions_for(topic))
        return found

    def client_instance_id(self, timeout: float | None = None) -> Uuid:
        """The id by which the cluster knows this producer's metrics (KIP-714); waits up to `timeout` seconds for it."""
        found: Uuid = self._call(lambda: self._core.client_instance_id(timeout))
        return found

    def watch_batches(self, on_finished: OnBatch) -> None:
        """Call `on_finished`, on the producer's thread, with each batch that is stored or has failed."""
        self._core.on_finished = on_finished

    @property
    def _measured(self) -> ClientMetrics:
        return self._core.metrics

    def close(self, timeout: float | None = None) -> None:
        """Send what is left, for up to `timeout` seconds (None: as long as it takes), then end. More calls do nothing."""
        if self._is_closed:
            return
        if self._lineage.generation != self._generation:
            self._is_closed, self._plain_topics = True, {}
            return
        if self._thread.is_current:
            raise IllegalStateError("a delivery callback must not close its producer: it would wait for itself")
        self._is_closed, self._plain_topics = True, {}
        try:
            self._thread.call(lambda: self._core.close(timeout))
        finally:
            self._finalizer.detach()
            self._thread.stop(_CLOSE_GRACE_S)

    def __enter__(self) -> Producer[K, V]:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.close(None if error is None else _CLOSE_GRACE_S)

    # Transactions

    def init_transactions(self, keep_prepared: bool = False) -> None:
        """Get this producer's id and epoch. Earlier producers with the same transactional.id are fenced.

        What they left open is aborted. `keep_prepared`: it stays open, and must be completed, committed or aborted (KIP-939).
        """
        self._call(lambda: self._core.initialize(keep_prepared))

    def begin_transaction(self) -> None:
        """Begin a transaction."""

        async def begin() -> None:
            self._core.begin()

        self._call(begin)

    def commit_transaction(self) -> None:
        """Send what is left, and commit. After a `TimeoutError` call it again: the outcome is not known yet."""
        self._call(self._core.commit)

    def abort_transaction(self) -> None:
        """Drop what is not sent, and abort."""
        self._call(self._core.abort)

    def send_offsets_to_transaction(self, offsets: Offsets, group: ConsumerGroupMetadata | str) -> None:
        """Commit a consumer group's offsets if and only if the transaction is committed."""
        from ottla.client.producer.transactions import as_group, as_offsets

        made = as_offsets(offsets)
        member = as_group(group)
        self._call(lambda: self._core.send_offsets(made, member))

    def prepare_transaction(self) -> PreparedTransaction:
        """Send what is left; then the transaction can only be ended (KIP-939). Store the result with your decision.

        After a crash, `init_transactions(keep_prepared=True)` and `complete_transaction` end it as decided.
        """
        found: PreparedTransaction = self._call(self._core.prepare)
        return found

    def complete_transaction(self, prepared: PreparedTransaction) -> bool:
        """Commit the prepared transaction if it is `prepared`, else abort it. Returns whether it is committed.

        False without a prepared transaction: it had ended before.
        """
        found: bool = self._call(lambda: self._core.complete(prepared))
        return found

    def detach_transaction(self) -> TransactionIdentity:
        """Send what is left, and leave the transaction open: another process ends it with `finish_transaction`.

        Close this producer then; it cannot be used any more. The transaction must end within transaction.timeout.ms.
        """
        found: TransactionIdentity = self._call(self._core.detach)
        return found

    def finish_transaction(self, transactional_id: str, producer_id: int, epoch: int, commit: bool = True) -> Finish:
        """Commit or abort a transaction that another producer has flushed and left open, by what identifies it there."""
        from ottla.client_core.producer.finishing import TransactionIdentity

        identity = TransactionIdentity(transactional_id, producer_id, epoch)
        found: Finish = self._call(lambda: self._core.finish_transaction(identity, commit))
        return found

    def keep_transaction(self, transactional_id: str, producer_id: int, epoch: int) -> TransactionIdentity | None:
        """Take over a transaction that another producer has flushed and left open: from now on it never times out.

        Returns the identity with which `finish_transaction` ends it; the old one is fenced. None: it is not open any more.
        Needs brokers that serve two-phase commit (KIP-939), else `UnsupportedVersionError`.
        """
        from ottla.client_core.producer.finishing import TransactionIdentity

        identity = TransactionIdentity(transactional_id, producer_id, epoch)
        found: TransactionIdentity | None = self._call(lambda: self._core.keep_transaction(identity))
        return found

    @contextmanager
    def transaction(self) -> Iterator[Producer[K, V]]:
        """A transaction as a `with` block: committed at its end, aborted if it raises or cannot be committed.

        If the commit runs out of time (`TimeoutError`), its outcome is not known: call `commit_transaction` again.
        """
        self.begin_transaction()
        try:
            yield self
        except BaseException:
            if self._transactions is not None and not self._transactions.is_fatal:
                self.abort_transaction()
            raise
        try:
            self.commit_transaction()
        except KafkaError:
            manager = self._transactions
            if manager is not None and manager.is_spoiled and not manager.is_fatal:
                self.abort_transaction()
            raise

    # Internals

    def _call(self, start: Callable[[], Any]) -> Any:
        if self._is_closed or self._lineage.generation != self._generation:
            raise self._unusable()
        return self._wait_for(start)

    def _wait_for(self, start: Callable[[], Any]) -> Any:
        from asyncio import CancelledError

        try:
            return self._thread.call(start)
        except (CancelledError, RuntimeError):
            if self._is_closed:  # another thread has, and its event loop has ended
                raise self._unusable() from None
            raise

    def _unusable(self) -> IllegalStateError:
        if self._lineage.generation == self._generation:
            return IllegalStateError("this producer is closed: make a new one")
        left = sum(batch.count for batch in self._accumulator.incomplete)
        verb = "is" if left == 1 else "are"
        sent_there = f" {counted(left, 'record')} not sent at the time of the fork {verb} sent there." if left else ""
        return IllegalStateError(
            f"this producer belongs to process {self._process_id}, and this process is a fork of it: make a new producer after "
            f"the fork.{sent_there}"
        )


def _abandoned(core: ProducerCore, thread: LoopThread, lineage: Lineage, generation: int) -> None:
    """A producer was garbage collected, or the process exits, without `close`."""
    if lineage.generation != generation:
        return
    producer_dropped(logger, core.accumulator.record_count)
    thread.post(core.abandon)
    thread.stop(0.1)
