"""`Producer` for asyncio: the same core as the synchronous producer's, on the caller's event loop.

`await producer.send(...)` returns a delivery handle; `await` that for the record's metadata. A `send` suspends only for the
metadata of a topic that it uses for the first time and for buffer.memory, up to max.block.ms.
"""

from __future__ import annotations

import asyncio
import logging
import weakref
from asyncio import get_running_loop
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Generic

from ottla.client.dropped import on_loop, producer_dropped
from ottla.client.link_options import check_security
from ottla.client.measured import MeasuredFace
from ottla.client.metrics import ClientMetrics
from ottla.client.own_loop import check_loop
from ottla.client.patience import Patience
from ottla.client.producer.core import ProducerCore
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
from ottla.client.producer.waiting import wait_for_batch
from ottla.client.real_world import real_client_world
from ottla.client.type_parameters import K, V
from ottla.client.world import ClientWorld
from ottla.client_core.metadata import PartitionInfo
from ottla.client_core.producer.accumulator import ANY_PARTITION, MemoryTicket
from ottla.client_core.producer.batch import ProducerBatch
from ottla.client_core.producer.delivery import RecordMetadata
from ottla.config.client import producer_settings
from ottla.env.threads import Lineage
from ottla.errors import IllegalStateError, KafkaError
from ottla.errors.faults import without_frames
from ottla.ids import Uuid
from ottla.records.kernels import NO_HEADERS, Delivery

if TYPE_CHECKING:  # what transactions need is loaded with the first one
    from ottla.client.producer.transactions import Offsets
    from ottla.client_core.offsets import ConsumerGroupMetadata
    from ottla.client_core.producer.finishing import Finish, PreparedTransaction, TransactionIdentity

logger = logging.getLogger("ottla.client.producer")

OnDelivery = Callable[[RecordMetadata | None, KafkaError | None], Any]
OnBatch = Callable[[ProducerBatch], Any]
PAUSE_RECORDS = 1_000
"""After how many records, or one full batch, `send_many` gives others a turn of the loop."""
_CLOSE_GRACE_S = 5.0


class TaskWaiting:
    """How a task waits for a batch."""

    def wait(self, batch: ProducerBatch, timeout_s: float | None) -> None:
        raise IllegalStateError("this delivery is not done, and belongs to an asyncio producer: await it instead of result()")

    async def wait_async(self, batch: ProducerBatch) -> None:
        await wait_for_batch(batch)


class Producer(MeasuredFace, Generic[K, V]):
    """Sends records to Kafka, with asyncio.

    async with aio.Producer("localhost:9092") as producer:
        delivery = await producer.send("events", b"value", key=b"k")
        metadata = await delivery
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
        if partitioner is not None:
            settings["partitioner_class"] = partitioner
        self._settings = producer_settings(bootstrap_servers, config, settings)
        self._world = real_client_world() if world is None else world
        check_security(self._settings, self._world.network)
        self._process_id = self._world.threads.process_id()
        self._clock_ms = self._world.clock.now_ms
        self._core_made: ProducerCore | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        """The event loop that it belongs to: the one of the first call."""
        self._intake_made: Intake | None = None
        self._is_closed = False

    async def start(self) -> None:
        """Start on the running loop. The first call of any method, and `async with`, do that too."""
        self._start()

    def _start(self) -> ProducerCore:
        if self._is_closed:
            raise IllegalStateError("this producer is closed: make a new one")
        if self._world.threads.process_id() != self._process_id:
            raise IllegalStateError("this producer was made before a fork: make a new one in this process")
        if self._core_made is None:
            self._core_made = core = ProducerCore(self._settings, self._world, TaskWaiting())
            self._intake_made = Intake(core)
            lineage = self._world.threads.lineage()
            self._loop = loop = asyncio.get_running_loop()
            self._finalizer = weakref.finalize(self, _abandoned, core, loop, lineage, lineage.generation)
        else:
            check_loop(self._loop, "producer")
        return self._core_made

    # Sending

    async def send(
        self,
        topic: str,
        value: V | None = None,
        key: K | None = None,
        *,
        partition: int | None = None,
        timestamp: int | None = None,
        headers: Headers = (),
        on_delivery: OnDelivery | None = None,
    ) -> Delivery:
        """Add a record to its partition's batch, and return a handle of what becomes of it; await that for the result.

        Raises at once what is wrong with the record: its topic's name, its types, its size. `timestamp` is in milliseconds
        since 1970, now by default. `on_delivery(metadata, error)` is called on the loop.
        """
        core = self._core_made
        if core is None or self._is_closed or get_running_loop() is not self._loop:
            core = self._start()
        if on_delivery is not None:
            check_callback("on_delivery", on_delivery)
        intake = self._intake_made
        assert intake is not None
        if core.transactions is not None:
            core.transactions.check_send()
        packed = NO_HEADERS if not headers else pack(headers)
        key_bytes = intake.key_bytes(topic, headers, key)
        value_bytes = intake.value_bytes(topic, headers, value)
        number = ANY_PARTITION if partition is None else checked_partition(partition, topic)
        stamp = self._clock_ms() if timestamp is None else checked_timestamp(timestamp)
        batches = core.accumulator.topics.get(topic)
        if batches is not None and (number >= 0 or intake.is_default):
            delivery = batches.append(number, stamp, key_bytes, value_bytes, packed, on_delivery)
            if delivery is not None:
                return delivery
        return await self._send_slowly(core, topic, number, (stamp, key_bytes, value_bytes, packed), on_delivery, (key, value))

    async def _send_slowly(
        self,
        core: ProducerCore,
        topic: str,
        partition: int,
        record: Record,
        on_delivery: OnDelivery | None,
        given: tuple[Any, Any],
    ) -> Delivery:
        """Send a record that needs more than an open batch: metadata, another partitioner, a new batch, memory."""
        intake = self._intake_made
        assert intake is not None
        intake.check(topic, record)
        max_block_s = self._settings.max_block_ms / 1000
        deadline_s = self._world.clock.monotonic_s() + max_block_s
        if not intake.knows(topic, partition):
            await core.know_topic(topic, partition, max_block_s)
            self._check_open()
            intake.check_partition(topic, partition)
        partition = intake.partition(topic, partition, record, given)
        now_ms = core.now_ms()
        delivery = core.accumulator.append(topic, partition, record, on_delivery, now_ms)
        if delivery is None:
            delivery = await self._append_when_free(core, topic, partition, record, on_delivery, deadline_s)
        elif core.accumulator.must_wake(now_ms):
            core.wake()
        return delivery

    async def _append_when_free(
        self,
        core: ProducerCore,
        topic: str,
        partition: int,
        record: Record,
        on_delivery: OnDelivery | None,
        deadline_s: float,
    ) -> Delivery:
        """Wait for memory, in turn with other tasks, then append."""
        accumulator = core.accumulator
        free = asyncio.Event()
        ticket = MemoryTicket(accumulator.size_for(record), free.set)
        began_s = self._world.clock.monotonic_s()
        patience = Patience(self._world.clock)
        accumulator.wait_for_memory(ticket)
        core.wake()
        try:
            async with asyncio.timeout(max(0.0, deadline_s - self._world.clock.monotonic_s())):
                while True:
                    free.clear()
                    self._check_open()
                    delivery = accumulator.append(topic, partition, record, on_delivery, core.now_ms(), ticket)
                    if delivery is not None:
                        return delivery
                    with patience.waiting(core.why_memory_full):
                        await free.wait()
                    if core.fault is not None:
                        raise without_frames(core.fault)
        except TimeoutError:
            raise core.buffer_exhausted() from None
        finally:
            core.leave_queue(ticket, began_s)
            core.wake()

    async def send_many(
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
        core = self._start()
        intake = self._intake_made
        assert intake is not None
        number = ANY_PARTITION if partition is None else checked_partition(partition, topic)
        stamp = self._clock_ms if timestamp is None else partial(int, checked_timestamp(timestamp))
        deliveries = Deliveries() if into is None else into
        places = deliveries.places
        topics = core.accumulator.topics if intake.is_default or number >= 0 else {}
        records = sources(topic, intake, values, keys, headers)
        paused_at = places.count
        for each, record, given in append_all(
            partial(topics.get, topic), records, (number, stamp), deliveries, self._check_open
        ):
            delivery = await self._send_slowly(core, topic, each, record, None, given)
            places.add(delivery.batch, delivery.index)
            if places.count - paused_at >= PAUSE_RECORDS:
                paused_at = places.count
                await asyncio.sleep(0)
        return deliveries

    def _check_open(self) -> None:
        """Raise if another task has closed the producer, or ended the transaction, while this one waited."""
        core = self._start()
        if core.transactions is not None:
            core.transactions.check_send()

    # Waiting and asking

    async def flush(self, timeout: float | None = None) -> None:
        """Send everything now, and wait up to `timeout` seconds until it is stored or has failed."""
        await self._start().flush(timeout)

    async def partitions_for(self, topic: str) -> list[PartitionInfo]:
        """The partitions of a topic."""
        check_topic_name(topic)
        return await self._start().partitions_for(topic)

    async def client_instance_id(self, timeout: float | None = None) -> Uuid:
        """The id by which the cluster knows this producer's metrics (KIP-714); waits up to `timeout` seconds for it."""
        return await self._start().client_instance_id(timeout)

    def watch_batches(self, on_finished: OnBatch) -> None:
        """Call `on_finished`, on the loop, with each batch that is stored or has failed: one call for many records."""
        self._start().on_finished = on_finished

    @property
    def _measured(self) -> ClientMetrics:
        core = self._core_made  # from any thread: only a producer that is not started yet needs the loop
        return (self._start() if core is None else core).metrics

    async def close(self, timeout: float | None = None) -> None:
        """Send what is left, for up to `timeout` seconds (None: as long as it takes), then end. More calls do nothing."""
        if self._is_closed:
            return
        check_loop(self._loop, "producer")
        self._is_closed = True
        if self._core_made is not None:
            self._finalizer.detach()
            await self._core_made.close(timeout)

    async def __aenter__(self) -> Producer[K, V]:
        self._start()
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        await self.close(None if error is None else _CLOSE_GRACE_S)

    # Transactions

    async def init_transactions(self, keep_prepared: bool = False) -> None:
        """Get this producer's id and epoch. Earlier producers with the same transactional.id are fenced.

        What they left open is aborted. `keep_prepared`: it stays open, and must be completed, committed or aborted (KIP-939).
        """
        await self._start().initialize(keep_prepared)

    async def begin_transaction(self) -> None:
        """Begin a transaction."""
        self._start().begin()

    async def commit_transaction(self) -> None:
        """Send what is left, and commit. After a `TimeoutError` call it again: the outcome is not known yet."""
        await self._start().commit()

    async def abort_transaction(self) -> None:
        """Drop what is not sent, and abort."""
        await self._start().abort()

    async def send_offsets_to_transaction(self, offsets: Offsets, group: ConsumerGroupMetadata | str) -> None:
        """Commit a consumer group's offsets if and only if the transaction is committed."""
        from ottla.client.producer.transactions import as_group, as_offsets

        await self._start().send_offsets(as_offsets(offsets), as_group(group))

    async def prepare_transaction(self) -> PreparedTransaction:
        """Send what is left; then the transaction can only be ended (KIP-939). Store the result with your decision.

        After a crash, `init_transactions(keep_prepared=True)` and `complete_transaction` end it as decided.
        """
        return await self._start().prepare()

    async def complete_transaction(self, prepared: PreparedTransaction) -> bool:
        """Commit the prepared transaction if it is `prepared`, else abort it. Returns whether it is committed.

        False without a prepared transaction: it had ended before.
        """
        return await self._start().complete(prepared)

    async def detach_transaction(self) -> TransactionIdentity:
        """Send what is left, and leave the transaction open: another process ends it with `finish_transaction`.

        Close this producer then; it cannot be used any more. The transaction must end within transaction.timeout.ms.
        """
        return await self._start().detach()

    async def finish_transaction(self, transactional_id: str, producer_id: int, epoch: int, commit: bool = True) -> Finish:
        """Commit or abort a transaction that another producer has flushed and left open, by what identifies it there."""
        from ottla.client_core.producer.finishing import TransactionIdentity

        return await self._start().finish_transaction(TransactionIdentity(transactional_id, producer_id, epoch), commit)

    async def keep_transaction(self, transactional_id: str, producer_id: int, epoch: int) -> TransactionIdentity | None:
        """Take over a transaction that another producer has flushed and left open: from now on it never times out.

        Returns the identity with which `finish_transaction` ends it; the old one is fenced. None: it is not open any more.
        Needs brokers that serve two-phase commit (KIP-939), else `UnsupportedVersionError`.
        """
        from ottla.client_core.producer.finishing import TransactionIdentity

        return await self._start().keep_transaction(TransactionIdentity(transactional_id, producer_id, epoch))

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Producer[K, V]]:
        """A transaction as an `async with` block: committed at its end, aborted if it raises or cannot be committed.

        If the commit runs out of time (`TimeoutError`), its outcome is not known: call `commit_transaction` again.
        """
        core = self._start()
        core.begin()
        try:
            yield self
        except BaseException:
            if core.transactions is not None and not core.transactions.is_fatal:
                await core.abort()
            raise
        try:
            await core.commit()
        except KafkaError:
            manager = core.transactions
            if manager is not None and manager.is_spoiled and not manager.is_fatal:
                await core.abort()
            raise


def _abandoned(core: ProducerCore, loop: asyncio.AbstractEventLoop, lineage: Lineage, generation: int) -> None:
    """A producer was garbage collected, or the process exits, without `close`."""
    if lineage.generation == generation:
        producer_dropped(logger, core.accumulator.record_count)
        on_loop(loop, core.abandon)
