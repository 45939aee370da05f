"""`ProducerFace` and the calls of a producer, once for both faces (see `client/faces.py`).

`send` is the exception: the synchronous one is the kernel's (`PlainSend`), which hands what it does not take to `_append`.
Nothing here loads the core or asyncio.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ottla.client.faces import MeasuredFace
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
from ottla.client.producer.many import ArrowData, Row, append_all, rows, sources
from ottla.client.type_parameters import K, V
from ottla.client_core.metadata import PartitionInfo
from ottla.client_core.offsets import ConsumerGroupMetadata, OffsetAndMetadata
from ottla.client_core.producer.accumulator import ANY_PARTITION, MemoryTicket
from ottla.client_core.producer.batch import ProducerBatch, RecordMetadata
from ottla.client_core.timeouts import seconds
from ottla.errors import BufferExhaustedError, IllegalStateError, KafkaError
from ottla.errors.faults import without_frames
from ottla.ids import Uuid
from ottla.records.kernels import NO_HEADERS, Delivery, TopicBatches

if TYPE_CHECKING:
    from ottla.client.producer.core import ProducerCore
    from ottla.client.world import ClientWorld
    from ottla.client_core.offsets import ConsumerGroupMetadata
    from ottla.client_core.producer.prepared_transactions import Finish, PreparedTransaction, TransactionIdentity


# What users pass for offsets and groups in a transaction, in the form that the machine takes.

Offsets = Mapping[Any, Any]
"""(topic, partition) → the offset of the next record to read, or an `OffsetAndMetadata`."""


def as_offsets(offsets: Offsets) -> dict[tuple[str, int], OffsetAndMetadata]:
    """Offsets with plain keys; a wrong one is named."""
    made: dict[tuple[str, int], OffsetAndMetadata] = {}
    for key, position in offsets.items():
        try:
            topic, partition = key
        except (TypeError, ValueError):
            raise TypeError(f"offsets are given by (topic, partition), not by {key!r}") from None
        offset = getattr(position, "offset", position)
        if not isinstance(offset, int) or offset < 0:
            raise ValueError(f"the offset of {topic}-{partition} is {offset!r}: give the offset of the next record to read")
        metadata = getattr(position, "metadata", "") or ""
        made[str(topic), int(partition)] = OffsetAndMetadata(offset, metadata, getattr(position, "leader_epoch", None))
    return made


def as_group(group: Any) -> ConsumerGroupMetadata:
    """The group's member; a group id alone is enough for consumers that assign partitions themselves."""
    if isinstance(group, str):
        return ConsumerGroupMetadata(group)
    if not isinstance(group, ConsumerGroupMetadata):
        raise TypeError(f"a group is its id, or what Consumer.group_metadata() returns, not {group!r}")
    return group


T = TypeVar("T")

OnDelivery = Callable[[RecordMetadata | None, KafkaError | None], Any]
"""Called with the record's metadata or its error, on the producer's thread or the event loop; it must not block."""
OnBatch = Callable[[ProducerBatch], Any]
PAUSE_RECORDS = 1_000
"""After how many records, or one full batch, `send_many` gives others a turn of the loop."""
CLOSE_GRACE_S = 5.0
"""How long the end of a `with` block that raises takes to send what is left."""


class ProducerFace(MeasuredFace, Generic[K, V]):
    """What both faces share: the way of a record that needs more than an open batch. A face defines the steps on top."""

    _world: ClientWorld
    _clock_ms: Callable[[], int]
    _intake: Intake
    _is_closed: bool
    _plain_topics: dict[str, TopicBatches]
    """The topics whose open batches take records as they are: none with serializers, another partitioner or transactions."""

    def _opened(self) -> ProducerCore:
        """The core. Raises if the producer is closed, or belongs to another process or loop."""
        raise NotImplementedError

    async def _run(self, call: Callable[[ProducerCore], Awaitable[T]]) -> T:
        """The result of a call of the core, on its loop."""
        raise NotImplementedError

    def _wake(self) -> None:
        """Make the loop look at the batches."""
        raise NotImplementedError

    def _signal(self) -> Any:
        """What a caller that waits for memory is woken with: it has `set` and `clear`."""
        raise NotImplementedError

    async def _wait(self, signal: Any, timeout_s: float) -> None:
        """Wait until the signal is set or the time is up."""
        raise NotImplementedError

    async def _give_turn(self) -> None:
        """Let others use the loop, if it is the caller's."""
        raise NotImplementedError

    async def _close(self, timeout_s: float | None) -> None:
        """End a producer that is not closed yet."""
        raise NotImplementedError

    @property
    def _is_in_callback(self) -> bool:
        """Whether the caller is a delivery callback that would wait for itself."""
        return False

    # Sending

    def _append(
        self,
        core: ProducerCore,
        topic: str,
        value: Any,
        key: Any,
        partition: int | None,
        timestamp: int | None,
        headers: Headers,
        on_delivery: OnDelivery | None,
    ) -> Delivery | tuple[int, Record]:
        """Add a record to an open batch; or, if it needs more than that, its partition and what `_send_slowly` sends."""
        if on_delivery is not None:
            check_callback("on_delivery", on_delivery)
        if core.transactions is not None:
            core.transactions.check_send()
        intake = self._intake
        if intake.key_serializer is not None or (key is not None and type(key) is not bytes):
            key = intake.key_bytes(topic, headers, key)
        if intake.value_serializer is not None or (value is not None and type(value) is not bytes):
            value = intake.value_bytes(topic, headers, value)
        packed = NO_HEADERS if not headers else pack(headers)  # a serializer may have added one
        number = ANY_PARTITION if partition is None else checked_partition(partition, topic)
        stamp = self._clock_ms() if timestamp is None else checked_timestamp(timestamp)
        batches = core.accumulator.topics.get(topic)
        if batches is not None and (number >= 0 or intake.is_default):
            delivery = batches.append(number, stamp, key, value, packed, on_delivery)
            if delivery is not None:
                return delivery
        return number, (stamp, key, value, packed)

    async def _send_intercepted(
        self,
        topic: str,
        value: Any,
        key: Any,
        partition: int | None,
        timestamp: int | None,
        headers: Headers,
        on_delivery: OnDelivery | None,
    ) -> Delivery:
        """Send a record of a producer with interceptors."""
        from ottla.client.interceptors import ProducerRecord

        interceptors = self._intake.interceptors
        assert interceptors is not None
        if on_delivery is not None:
            check_callback("on_delivery", on_delivery)
        packed = tuple(headers.items() if isinstance(headers, Mapping) else headers)
        sent = interceptors.on_send(ProducerRecord(topic, value, key, partition, timestamp, packed))
        callback = interceptors.callback(sent, on_delivery)
        topic, value, key = sent.topic, sent.value, sent.key
        try:
            found = self._append(self._opened(), topic, value, key, sent.partition, sent.timestamp, sent.headers, callback)
            if isinstance(found, Delivery):
                return found
            number, record = found
            return await self._send_slowly(topic, number, record, callback, (key, value))
        except Exception as error:
            interceptors.acknowledged(sent, None, error)
            raise

    async def _send_each(
        self, topic: str, rows: Iterator[Row], default: tuple[int | None, int | None], deliveries: Deliveries
    ) -> None:
        """Send the records of `send_many` one by one: each goes through the interceptors."""
        places = deliveries.places
        for count, (partition, timestamp, key, value, headers) in enumerate(rows):
            number = default[0] if partition is None else partition
            stamp = default[1] if timestamp is None else timestamp
            delivery = await self._send_intercepted(topic, value, key, number, stamp, headers or (), None)
            deliveries.stamps.add(places.count, delivery.timestamp)
            places.add(delivery.batch, delivery.index)
            if count % PAUSE_RECORDS == PAUSE_RECORDS - 1:
                await self._give_turn()

    async def _send_slowly(
        self, topic: str, partition: int, record: Record, on_delivery: OnDelivery | None, given: tuple[Any, Any]
    ) -> Delivery:
        """Send a record that needs more than an open batch: metadata, another partitioner, a new batch, memory."""
        core, intake, clock = self._opened(), self._intake, self._world.clock
        intake.check(topic, record)
        deadline_s = clock.monotonic_s() + core.settings.max_block_ms / 1000
        if not intake.knows(topic, partition):
            if self._is_in_callback:
                raise IllegalStateError(
                    f"a delivery callback cannot send to topic {topic} yet: its metadata is not known, and the callback would "
                    "wait for itself. Call partitions_for before"
                )
            timeout_s = max(0.0, deadline_s - clock.monotonic_s())
            await self._run(lambda core: core.know_topic(topic, partition, timeout_s))
            self._check_open()
            intake.check_partition(topic, partition)
        partition = intake.partition(topic, partition, record, given)
        now_ms = core.now_ms()
        delivery = core.accumulator.append(topic, partition, record, on_delivery, now_ms)
        if delivery is None:
            return await self._append_when_free(core, topic, partition, record, on_delivery, deadline_s)
        self._check_in_time(core, delivery)
        if core.fault is not None or core.accumulator.must_wake(now_ms):
            self._wake()
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
        """Wait for memory, in turn with other threads or tasks, then append."""
        from ottla.client.patience import Patience

        accumulator, clock = core.accumulator, self._world.clock
        if self._is_in_callback:
            raise BufferExhaustedError("a delivery callback cannot wait for buffer.memory, which is used up: send elsewhere")
        signal = self._signal()
        ticket = MemoryTicket(accumulator.size_for(record), signal.set)
        began_s = clock.monotonic_s()
        patience = Patience(clock)
        accumulator.wait_for_memory(ticket)
        self._wake()
        try:
            while True:
                signal.clear()
                self._check_open()
                delivery = accumulator.append(topic, partition, record, on_delivery, core.now_ms(), ticket)
                if delivery is not None:
                    self._check_in_time(core, delivery)
                    return delivery
                left_s = deadline_s - clock.monotonic_s()
                if left_s <= 0:
                    raise core.buffer_exhausted()
                await self._wait(signal, min(left_s, patience.look(core.why_memory_full)))
                if core.fault is not None:
                    raise without_frames(core.fault)
        finally:
            core.leave_queue(ticket, began_s)
            self._wake()

    def _check_in_time(self, core: ProducerCore, delivery: Delivery) -> None:
        """Raise if a record was added after another thread had closed the producer: nothing sends its batch."""
        if core.is_finished:
            try:
                self._opened()
            except IllegalStateError as error:
                delivery.batch.fail(error)
                raise

    def _check_open(self) -> None:
        """Raise if another thread or task has closed the producer, or ended the transaction, while this one waited."""
        core = self._opened()
        if core.transactions is not None:
            core.transactions.check_send()


async def send(
    self: ProducerFace[K, V],
    topic: str,
    value: V | None = None,
    key: K | None = None,
    *,
    partition: int | None = None,
    timestamp: int | None = None,
    headers: Headers = (),
    on_delivery: OnDelivery | None = None,
) -> Delivery:
    """Add a record to its partition's batch, and return a handle of what becomes of it.

    `delivery.result()` waits until the record is stored; with asyncio, await the delivery. What is wrong with the record
    raises at once: its topic's name, its types, its size. `timestamp` is in milliseconds since 1970, now by default.
    `on_delivery(metadata, error)` is called on the producer's thread, with asyncio on the event loop.
    """
    core = self._opened()
    if partition is None and timestamp is None and on_delivery is None and not headers:
        batches = self._plain_topics.get(topic)
        if batches is not None:
            delivery = batches.send(self._clock_ms(), key, value, None)
            if delivery is not None:
                return delivery
    if self._intake.interceptors is not None:
        return await self._send_intercepted(topic, value, key, partition, timestamp, headers, on_delivery)
    found = self._append(core, topic, value, key, partition, timestamp, headers, on_delivery)
    if isinstance(found, Delivery):
        return found
    number, record = found
    return await self._send_slowly(topic, number, record, on_delivery, (key, value))


async def send_many(
    self: ProducerFace[K, V],
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
    core = self._opened()
    number = ANY_PARTITION if partition is None else checked_partition(partition, topic)
    stamp = self._clock_ms if timestamp is None else partial(int, checked_timestamp(timestamp))
    deliveries = Deliveries() if into is None else into
    places = deliveries.places
    if self._intake.interceptors is not None:
        await self._send_each(topic, rows(self._intake, values, keys, headers), (partition, timestamp), deliveries)
        return deliveries
    topics = core.accumulator.topics if self._intake.is_default or number >= 0 else {}
    records = sources(topic, self._intake, values, keys, headers)
    paused_at = places.count
    for each, record, given in append_all(partial(topics.get, topic), records, (number, stamp), deliveries, self._check_open):
        delivery = await self._send_slowly(topic, each, record, None, given)
        places.add(delivery.batch, delivery.index)
        if places.count - paused_at >= PAUSE_RECORDS:
            paused_at = places.count
            await self._give_turn()
    return deliveries


# Waiting and asking


async def flush(self: ProducerFace, timeout: float | None = None) -> None:
    """Send everything now, and wait up to `timeout` seconds until it is stored or has failed; then `TimeoutError`.

    It does not raise the errors of single records: their deliveries do.
    """
    limit_s = seconds("flush", timeout)
    await self._run(lambda core: core.flush(limit_s))


async def partitions_for(self: ProducerFace, topic: str) -> list[PartitionInfo]:
    """The partitions of a topic, with leader and replicas. `TimeoutError` if it is not known within max.block.ms."""
    check_topic_name(topic)
    return await self._run(lambda core: core.partitions_for(topic))


async def client_instance_id(self: ProducerFace, timeout: float | None = None) -> Uuid:
    """The id by which the cluster knows this producer's metrics (KIP-714); waits up to `timeout` seconds for it."""
    limit_s = seconds("client_instance_id", timeout)
    return await self._run(lambda core: core.client_instance_id(limit_s))


def watch_batches(self: ProducerFace, on_finished: OnBatch) -> None:
    """Call `on_finished`, on the producer's thread or the event loop, with each batch that is stored or has failed."""
    self._opened().on_finished = on_finished


async def close(self: ProducerFace, timeout: float | None = None) -> None:
    """Send what is left, for up to `timeout` seconds (None: as long as it takes), then end. More calls do nothing."""
    limit_s = seconds("close", timeout)
    if not self._is_closed:
        try:
            await self._close(limit_s)
        finally:
            intake = getattr(self, "_intake", None)  # one that was never started has none
            if intake is not None and intake.interceptors is not None:
                intake.interceptors.close()


# Transactions


async def init_transactions(self: ProducerFace, keep_prepared: bool = False) -> None:
    """Get this producer's id and epoch. Earlier producers with the same transactional.id are fenced.

    What they left open is aborted. `keep_prepared`: it stays open, and must be completed, committed or aborted (KIP-939).
    To be called once, before the first transaction; a producer without transactional.id raises `IllegalStateError`.
    """
    await self._run(lambda core: core.initialize(keep_prepared))


async def begin_transaction(self: ProducerFace) -> None:
    """Begin a transaction. `IllegalStateError` before `init_transactions`, and while another one is open."""

    async def begin(core: ProducerCore) -> None:
        core.begin()

    await self._run(begin)


async def commit_transaction(self: ProducerFace) -> None:
    """Send what is left, and commit. After a `TimeoutError` call it again: the outcome is not known yet.

    After an `AbortableError` call `abort_transaction`; after a `FatalError`, such as `ProducerFencedError`, close the producer.
    """
    await self._run(lambda core: core.commit())


async def abort_transaction(self: ProducerFace) -> None:
    """Drop what is not sent, and abort. Readers with isolation.level=read_committed never see the transaction's records."""
    await self._run(lambda core: core.abort())


async def send_offsets_to_transaction(self: ProducerFace, offsets: Offsets, group: ConsumerGroupMetadata | str) -> None:
    """Commit a consumer group's offsets if and only if the transaction is committed.

    `offsets` is {TopicPartition: the next offset to read}; `group` is `consumer.group_metadata()`, with which the broker
    refuses the offsets of a member that has lost its partitions, or only the name of the group.
    """
    made, member = as_offsets(offsets), as_group(group)
    await self._run(lambda core: core.send_offsets(made, member))


async def prepare_transaction(self: ProducerFace) -> PreparedTransaction:
    """Send what is left; then the transaction can only be ended (KIP-939). Store the result with your decision.

    After a crash, `init_transactions(keep_prepared=True)` and `complete_transaction` end it as decided.
    """
    return await self._run(lambda core: core.prepare())


async def complete_transaction(self: ProducerFace, prepared: PreparedTransaction) -> bool:
    """Commit the prepared transaction if it is `prepared`, else abort it. Returns whether it is committed.

    False without a prepared transaction: it had ended before.
    """
    return await self._run(lambda core: core.complete(prepared))


async def detach_transaction(self: ProducerFace) -> TransactionIdentity:
    """Send what is left, and leave the transaction open: another process ends it with `finish_transaction`.

    Close this producer then; it cannot be used any more. The transaction must end within transaction.timeout.ms.
    """
    return await self._run(lambda core: core.detach())


async def finish_transaction(
    self: ProducerFace, transactional_id: str, producer_id: int, epoch: int, commit: bool = True
) -> Finish:
    """Commit or abort a transaction that another producer has flushed and left open, by what identifies it there."""
    from ottla.client_core.producer.prepared_transactions import TransactionIdentity

    identity = TransactionIdentity(transactional_id, producer_id, epoch)
    return await self._run(lambda core: core.finish_transaction(identity, commit))


async def keep_transaction(
    self: ProducerFace, transactional_id: str, producer_id: int, epoch: int
) -> TransactionIdentity | None:
    """Take over a transaction that another producer has flushed and left open: from now on it never times out.

    Returns the identity with which `finish_transaction` ends it; the old one is fenced. None: it is not open any more.
    Needs brokers that serve two-phase commit (KIP-939), else `UnsupportedVersionError`.
    """
    from ottla.client_core.producer.prepared_transactions import TransactionIdentity

    identity = TransactionIdentity(transactional_id, producer_id, epoch)
    return await self._run(lambda core: core.keep_transaction(identity))


Face = TypeVar("Face", bound="ProducerFace[Any, Any]")


async def transaction(self: Face) -> AsyncIterator[Face]:
    """A transaction as a `with` block, with asyncio `async with`: committed at its end, aborted if it raises.

    If it cannot be committed, it is aborted too. If the commit runs out of time (`TimeoutError`), its outcome is not known:
    call `commit_transaction` again.
    """
    await begin_transaction(self)
    manager = self._opened().transactions
    assert manager is not None
    try:
        yield self
    except BaseException:
        if not manager.is_fatal:
            await abort_transaction(self)
        raise
    try:
        await commit_transaction(self)
    except KafkaError:
        if manager.is_spoiled and not manager.is_fatal:
            await abort_transaction(self)
        raise
