"""`ProducerCore`: what both faces of the producer share. It owns the machines and runs them on one event loop.

Calling threads of the synchronous face touch only `accumulator` (with its lock), `transactions.check_send` and the kernel's
`TopicBatches`. Everything else here belongs to the event loop.
"""

from __future__ import annotations

import asyncio
import builtins
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from ottla.client.connections import ConnectionPool
from ottla.client.link_options import link_options
from ottla.client.metrics import ClientMetrics
from ottla.client.patience import Patience
from ottla.client.runtime import ClientRuntime
from ottla.client.world import ClientWorld
from ottla.client_core.machine import Machine
from ottla.client_core.metadata import Metadata, PartitionInfo
from ottla.client_core.metrics.producer import ProducerMetrics, Step
from ottla.client_core.producer.accumulator import NEVER_MS, Accumulator, ChoosePartitions, MemoryTicket
from ottla.client_core.producer.batch import ProducerBatch, Waiting
from ottla.client_core.producer.idempotence import Idempotence, ProducerIds
from ottla.client_core.producer.sender import Sender
from ottla.client_core.producer.transaction_requests import Pending
from ottla.config.client import ProducerSettings
from ottla.errors import BufferExhaustedError, IllegalStateError, KafkaError, TimeoutError, TransactionAbortedError
from ottla.errors.faults import without_frames
from ottla.errors.texts import counted
from ottla.ids import Uuid

if TYPE_CHECKING:
    from ottla.client_core.offsets import ConsumerGroupMetadata, OffsetAndMetadata
    from ottla.client_core.producer.prepared_transactions import (
        Finish,
        PreparedTransaction,
        TransactionFinish,
        TransactionIdentity,
        TransactionKeep,
    )
    from ottla.client_core.producer.transactions import TransactionManager

T = TypeVar("T")
logger = logging.getLogger("ottla.client.producer")


class ProducerCore:
    """One producer, without a face. Made on the event loop that it then belongs to."""

    def __init__(
        self, settings: ProducerSettings, world: ClientWorld, waiting: Waiting, lock: AbstractContextManager[Any] | None = None
    ) -> None:
        for notice in settings.notices:
            logger.warning("%s", notice)
        self.settings = settings
        self.world = world
        # SystemExit would end the producer's thread and nothing else. On the application's own loop it ends the application.
        self._callback_faults = (Exception, asyncio.CancelledError) + (() if lock is None else (SystemExit,))
        below = world.randomness.below
        self.metadata = Metadata(settings, below, auto_create=True, idle_max_ms=settings.metadata_max_idle_ms)
        self.idempotence = Idempotence(settings.transactional_id is not None) if settings.enable_idempotence else None
        self.accumulator = Accumulator(settings, self._choose_partitions, lock, waiting)
        self._loop = asyncio.get_running_loop()
        self._is_threaded = lock is not None
        self._lineage = world.threads.lineage()
        self._generation = self._lineage.generation
        self.accumulator.wake = self._wake_from_caller
        self.sender = Sender(
            settings,
            self.accumulator,
            self.metadata,
            below,
            self.idempotence,
            transactional_id=settings.transactional_id,
            level=codec_level(settings),
        )
        self.metrics = ClientMetrics("producer", settings, world)
        self.measured = self.sender.outcomes.metrics = ProducerMetrics(self.metrics.registry)
        self.transactions: TransactionManager | None = None
        self._completing: PreparedTransaction | None = None
        self._ids: ProducerIds | None = None
        machines: list[Machine] = [self.metadata]
        if self.idempotence is not None:
            if settings.transactional_id is not None:
                from ottla.client_core.producer.transactions import TransactionManager  # late: most producers have none

                self.transactions = TransactionManager(
                    settings.transactional_id, settings, self.idempotence, self.metadata, below
                )
                self.sender.outcomes.gate = self.transactions
                machines.append(self.transactions)
            else:
                self._ids = ProducerIds(settings, self.idempotence, below)
                machines.append(self._ids)
        machines.append(self.sender)  # after the transactions: what spoils one in their step is seen in the same round
        options = link_options(settings, world, "ottla-producer")
        self._pool = ConnectionPool(world, settings, settings.bootstrap_servers, options, self.metadata, self.metrics)
        self.sender.connecting.connections = self._pool
        if self.transactions is not None:
            self.transactions.coordinator.connections = self._pool
        self._watch()
        self.runner = ClientRuntime(machines, self._pool, world.clock, self._after_round, self._broken)
        self._seen_version = -1
        self._seen_responses = 0
        self._news: list[asyncio.Future[None]] = []
        self.choose_partitions: ChoosePartitions | None = None
        """The partitioner's choices for records without a key."""
        self.on_finished: Callable[[ProducerBatch], Any] | None = None
        """Called with each batch that is done, and with the parts of one that was split. It must not raise."""
        self.is_closed = False
        self.is_finished = False
        """Whether it is closed and looks at no batch any more."""
        self.fault: KafkaError | None = None
        """Why nothing can be sent any more."""
        self.runner.wake()

    def wake(self) -> None:
        """Look at the batches on the loop's next turn; what came after the producer failed fails too."""
        if self.fault is None:
            self.runner.wake()
        else:
            self._give_up(self.fault)

    def _wake_from_caller(self) -> None:
        """Wake the loop, from the thread or task that waits for a batch."""
        if not self._is_threaded:
            self.wake()
        elif self._lineage.generation == self._generation:  # a forked child shares the pipe that would wake its parent
            with suppress(RuntimeError):  # the loop has ended, and so have its batches
                self._loop.call_soon_threadsafe(self.wake)

    def now_ms(self) -> int:
        """The monotonic time that machines count in. May be called from every thread."""
        return int(self.world.clock.monotonic_s() * 1000)

    def _watch(self) -> None:
        """Connect the gauges, and what telemetry says of this client."""
        accumulator = self.accumulator
        memory = accumulator.memory
        self.measured.watch_buffer(lambda: memory.limit, lambda: memory.limit - memory.used, lambda: accumulator.waiting_count)
        self.measured.watch_in_flight(lambda: self._pool.in_flight)
        if self.settings.transactional_id is not None:
            self.metrics.resource["transactional_id"] = self.settings.transactional_id

    def _choose_partitions(self, topic: str, count: int, number: int) -> list[int]:
        """The next partitions for records without a key. Called in calling threads, under the accumulator's lock."""
        if self.choose_partitions is not None:
            return self.choose_partitions(topic, count, number)
        return [self.world.randomness.below(count) for _ in range(number)]

    # Waiting for memory, in the thread or task that sends

    def leave_queue(self, ticket: MemoryTicket, began_s: float) -> None:
        """The caller has its memory, or waits no longer."""
        self.accumulator.leave(ticket)
        with self.accumulator.lock:
            self.measured.buffer_waited(self._since_ns(began_s), self.now_ms())

    # After each round

    def _after_round(self) -> None:
        if self._ids is not None and self._ids.error is not None and self.fault is None:
            self._give_up(self._ids.error)
        self._call_back()
        if self.metadata.responses != self._seen_responses:
            self._seen_responses = self.metadata.responses
            self.measured.metadata_updated(self.now_ms())
        self.metrics.after_round(self.runner, self._seen_responses > 0)
        if self.metadata.version != self._seen_version:
            self._seen_version = self.metadata.version
            for name in self.metadata.topic_names():
                info = self.metadata.topic(name)
                if info is not None and info.partitions:
                    self.accumulator.set_partition_count(name, len(info.partitions))
        news, self._news = self._news, []
        for future in news:
            if not future.done():
                future.set_result(None)

    def _call_back(self) -> None:
        finished, self.sender.outcomes.finished = self.sender.outcomes.finished, []
        for batch in finished:
            if self.on_finished is not None:
                self.on_finished(batch)
            callbacks, batch.callbacks = batch.callbacks, None
            for index, (timestamp, callback) in (callbacks or {}).items():
                error = batch.error_of(index)
                try:
                    callback(None if error is not None else batch.metadata_of(index, timestamp), error)
                except self._callback_faults:
                    logger.exception("on_delivery failed for a record of %s-%d; the producer goes on", *batch.key)

    def _broken(self, fault: Exception) -> None:
        self._give_up(IllegalStateError(f"the producer has failed and cannot be used any more: {fault}. Make a new one"))

    def _give_up(self, error: KafkaError) -> None:
        self.fault = error
        self.accumulator.looked(NEVER_MS)
        self.sender.outcomes.fail_all(error)
        self._call_back()

    # Topics

    async def know_topic(self, topic: str, partition: int, timeout_s: float) -> None:
        """Wait until the topic is known, and until its partition is, if a refresh shows it."""
        self.metadata.want([topic], self.now_ms())
        asked = self.metadata.full_responses
        was_known = self.metadata.topic(topic) is not None
        old_error = self.metadata.topic_error(topic)
        if was_known:
            self.metadata.refresh(f"partition {partition} of topic {topic} is wanted")
        elif old_error is not None:
            self.metadata.refresh(f"topic {topic} is wanted again")  # what refused it may have been mended since
        began_s = self.world.clock.monotonic_s()
        deadline_s = began_s + timeout_s
        patience = Patience(self.world.clock)
        self.runner.wake()
        while True:
            info = self.metadata.topic(topic)
            is_fresh = not was_known or self.metadata.full_responses > asked
            if info is not None and (partition < len(info.partitions) or is_fresh):
                self.accumulator.set_partition_count(topic, len(info.partitions))
                self.measured.metadata_waited(self._since_ns(began_s), self.now_ms())
                return
            error = self.metadata.topic_error(topic)
            if error is not None and error is not old_error and not error.is_retriable:
                raise error
            failure = self.metadata.failure
            if failure is not None and not failure.is_retriable:
                raise failure
            with patience.waiting(lambda: self._why_topic_unknown(topic)):
                await self._hear(deadline_s, f"the metadata of topic {topic}", error or failure)

    def _why_topic_unknown(self, topic: str) -> str:
        error = self.metadata.topic_error(topic) or self.metadata.failure
        why = "no broker has answered yet" if error is None else str(error)
        return f"send() waits for the metadata of topic {topic}: {why}"

    async def _hear(self, deadline_s: float, what: str, error: KafkaError | None) -> None:
        """Wait for the next round of the machines."""
        self._check_usable()
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._news.append(future)
        try:
            async with asyncio.timeout(max(0.0, deadline_s - self.world.clock.monotonic_s())):
                await future
        except builtins.TimeoutError:
            why = "no broker has answered. Check that bootstrap.servers can be reached" if error is None else str(error)
            raise TimeoutError(f"waited {self.settings.max_block_ms} ms (max.block.ms) for {what}: {why}") from error

    async def partitions_for(self, topic: str) -> list[PartitionInfo]:
        """The partitions of a topic, as the newest metadata has them."""
        if self.metadata.topic(topic) is None:
            await self.know_topic(topic, -1, self.settings.max_block_ms / 1000)
        self.metadata.want([topic], self.now_ms())
        info = self.metadata.topic(topic)
        return [] if info is None else list(info.partitions)

    async def client_instance_id(self, timeout_s: float | None) -> Uuid:
        """The id by which the cluster knows this client's metrics."""
        self._check_usable()
        return await self.metrics.client_instance_id(
            self.runner, self.settings.max_block_ms / 1000 if timeout_s is None else timeout_s
        )

    # Waiting

    async def flush(self, timeout_s: float | None, call: str = "flush()") -> None:
        """Send everything now, and wait until it is stored or has failed. `call` is what the user has called."""
        batches = list(self.accumulator.incomplete)
        patience = Patience(self.world.clock)
        began_s = self.world.clock.monotonic_s()
        self.accumulator.flushes += 1
        self.runner.wake()
        try:
            with patience.waiting(lambda: self._why_not_stored(call, batches)):
                async with asyncio.timeout(timeout_s):
                    for batch in batches:
                        await wait_for_batch(batch)
        except builtins.TimeoutError:
            left = sum(batch.count for batch in batches if not batch.is_done)
            raise TimeoutError(
                f"flush waited {timeout_s} s; not stored yet: {counted(left, 'record')}. The producer goes on sending"
            ) from None
        finally:
            self._call_back()  # as in Kafka, callbacks have run when flush returns
            self.accumulator.flushes -= 1
            self.measured.flushed(self._since_ns(began_s), self.now_ms())

    async def close(self, timeout_s: float | None) -> int:
        """Send what is left, for as long as `timeout_s`; returns how many records could not be sent."""
        if self.is_closed:
            return 0
        self.is_closed = True
        try:
            if self.fault is None:
                await self._finish(timeout_s)
                await self.metrics.close(self.runner, timeout_s)
        finally:
            self.is_finished = True
            left = self.accumulator.record_count
            if left:
                text = f"the producer was closed before it had stored {counted(left, 'record')}: give close() more time"
                logger.warning("%s", text)
                self.sender.outcomes.fail_all(IllegalStateError(text))
            self._call_back()
            self.runner.close()
            self._pool.close()
        return left

    def abandon(self) -> None:
        """Send nothing more: the producer was dropped. Handles of its records may still be waited for."""
        self.is_closed = self.is_finished = True
        text = "the producer was dropped without close() before the record was stored: keep it, and close it, or use `with`"
        self.sender.outcomes.fail_all(IllegalStateError(text))
        self.runner.close()
        self._pool.close()

    async def _finish(self, timeout_s: float | None) -> None:
        transactions = self.transactions
        began_s = self.world.clock.monotonic_s()
        try:
            if transactions is not None and transactions.ending is not None and timeout_s != 0:
                with suppress(KafkaError):  # the caller has stopped waiting for it; without an end it stays open
                    await self._await(transactions.ending, timeout_s)
                if timeout_s is not None:
                    timeout_s = max(0.0, timeout_s - (self.world.clock.monotonic_s() - began_s))
            if transactions is not None and transactions.is_open:
                logger.warning("the producer is closed within a transaction, which is aborted")
                await self.abort(timeout_s)
            elif timeout_s is None or timeout_s > 0:
                await self.flush(timeout_s, "close()")
        except KafkaError as error:
            logger.debug("the last records of the producer were not sent: %s", error)

    def _why_not_stored(self, call: str, batches: Iterable[ProducerBatch]) -> str | None:
        """What keeps records from being stored, for the log."""
        left = [batch for batch in batches if not batch.is_done]
        if not left:
            return None
        place = f"{left[0].topic}-{left[0].partition}"
        count = counted(sum(batch.count for batch in left), "record")
        return (
            f"{call} waits for {count} to be stored. The oldest are for {place}: {self.sender.outcomes.why_not_stored(left[0])}"
        )

    def why_memory_full(self) -> str | None:
        """What send() waits for when buffer.memory is used up, for the log. Called in the thread or task that sends."""
        memory = self.accumulator.memory
        used = f"send() waits for room in buffer.memory: {memory.used:,} of {memory.limit:,} bytes are in use"
        oldest = self.accumulator.oldest
        if oldest is None:
            return used
        reason = self.sender.outcomes.why_not_stored(oldest)
        return f"{used}. The oldest records are for {oldest.topic}-{oldest.partition}: {reason}"

    def buffer_exhausted(self) -> BufferExhaustedError:
        """The error for a caller that waited for memory for too long."""
        memory = self.accumulator.memory
        with self.accumulator.lock:
            self.measured.buffer_exhausted(self.now_ms())
        return BufferExhaustedError(
            f"waited {self.settings.max_block_ms} ms (max.block.ms) for room in buffer.memory: {memory.used:,} of "
            f"{memory.limit:,} bytes hold records that are not stored yet. Send more slowly, or raise either setting"
        )

    def _check_usable(self) -> None:
        if self.fault is not None:
            raise without_frames(self.fault)

    # Transactions

    async def initialize(self, keep_prepared: bool = False) -> None:
        """Get the transactional producer's id."""
        with self._measured("init"):
            await self._await(self._manager.initialize(keep_prepared=keep_prepared))

    def begin(self) -> None:
        """Begin a transaction."""
        with self._measured("begin"):
            self._manager.begin()

    async def send_offsets(self, offsets: Mapping[tuple[str, int], OffsetAndMetadata], group: ConsumerGroupMetadata) -> None:
        """Store a group's offsets with the transaction."""
        with self._measured("send_offsets"):
            await self._await(self._manager.send_offsets(offsets, group))

    async def commit(self) -> None:
        """Send what is left, then commit."""
        with self._measured("commit"):
            await self._await(await self._flush_before(partial(self._manager.end, is_commit=True), "commit_transaction()"))

    async def abort(self, timeout_s: float | None = None) -> None:
        """Drop what is not sent, wait for what is, then abort."""
        manager = self._manager
        self.sender.outcomes.abort_unsent(TransactionAbortedError())
        self._call_back()
        with self._measured("abort"):
            pending = await self._flush_before(partial(manager.end, is_commit=False), "abort_transaction()", timeout_s)
            await self._await(pending, timeout_s)

    async def _flush_before(self, end: Callable[[], T], call: str, timeout_s: float | None = None) -> T:
        """Send what is left, then call `end`. Meanwhile the transaction takes no records: they would be sent behind its end."""
        self._manager.is_ending = is_left = True
        try:
            while is_left:  # again if a thread was just adding a record
                await self.flush(self.settings.max_block_ms / 1000 if timeout_s is None else timeout_s, call)
                is_left = not all(batch.is_done for batch in list(self.accumulator.incomplete))
            return end()
        finally:
            self._manager.is_ending = False

    @contextmanager
    def _measured(self, step: Step) -> Iterator[None]:
        """Record how long a call of the transaction took."""
        began_s = self.world.clock.monotonic_s()
        try:
            yield
        finally:
            self.measured.transaction_step(step, self._since_ns(began_s), self.now_ms())

    def _since_ns(self, began_s: float) -> int:
        return int((self.world.clock.monotonic_s() - began_s) * 1_000_000_000)

    async def detach(self) -> TransactionIdentity:
        """Send what is left, and leave the transaction open for another process."""
        return await self._flush_before(self._manager.detach, "detach_transaction()")

    async def prepare(self) -> PreparedTransaction:
        """Send what is left, and allow nothing but an end."""
        return await self._flush_before(self._manager.prepare, "prepare_transaction()")

    async def complete(self, prepared: PreparedTransaction) -> bool:
        """Commit the prepared transaction if it is this one, else abort it. Whether this one is committed."""
        found = self._manager.prepared or self._completing
        if found is None:
            return False
        self._completing = found  # kept if the caller stops waiting: it then repeats the call
        await (self.commit() if found == prepared else self.abort())
        self._completing = None
        return found == prepared

    async def finish_transaction(self, identity: TransactionIdentity, is_commit: bool) -> Finish:
        """End a transaction that another producer has left open."""
        from ottla.client_core.producer.prepared_transactions import TransactionFinish  # late: few producers do this

        self._check_usable()
        machine = TransactionFinish(identity, is_commit, self.settings, self.metadata, self.world.randomness.below)
        await self._run(machine)
        assert machine.result is not None
        return machine.result

    async def keep_transaction(self, identity: TransactionIdentity) -> TransactionIdentity | None:
        """Take over a transaction that another producer has left open."""
        from ottla.client_core.producer.prepared_transactions import TransactionKeep  # late: few producers do this

        self._check_usable()
        machine = TransactionKeep(identity, self.settings, self.metadata, self.world.randomness.below)
        await self._run(machine)
        return machine.result

    async def _run(self, machine: TransactionFinish | TransactionKeep) -> None:
        machine.coordinator.connections = self._pool
        self.runner.add(machine)
        try:
            await self._await(machine.pending)
        finally:
            self.runner.remove(machine)

    @property
    def _manager(self) -> TransactionManager:
        self._check_usable()
        if self.transactions is None:
            raise IllegalStateError("this producer has no transactional.id: set transactional_id to use transactions")
        return self.transactions

    def _why_pending(self, pending: Pending) -> str:
        reason = None if self.transactions is None else self.transactions.coordinator.retried_error
        return f"the producer waits for {pending.what}{'' if reason is None else f': {reason}'}"

    async def _await(self, pending: Pending, timeout_s: float | None = None) -> None:
        """Wait for an operation of the machine; it goes on if the time is up or the caller is cancelled."""
        limit_s = self.settings.max_block_ms / 1000 if timeout_s is None else timeout_s
        self.runner.wake()
        if not await self._is_done_within(pending, limit_s):
            reason = None if self.transactions is None else self.transactions.coordinator.retried_error
            raise TimeoutError(
                f"waited {limit_s:g} s (max.block.ms) for {pending.what}"
                f"{'' if reason is None else f': {reason}'}. It goes on: repeat the call to wait for it"
            ) from reason
        pending.is_claimed = True
        if pending.error is not None:
            raise without_frames(pending.error)

    async def _is_done_within(self, pending: Pending, limit_s: float) -> bool:
        if not pending.is_done:
            done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            pending.waiters.append(partial(set_done, done))
            with suppress(builtins.TimeoutError), Patience(self.world.clock).waiting(lambda: self._why_pending(pending)):
                async with asyncio.timeout(limit_s):
                    await done
        # Not `done`: a timeout cancels it. The operation may have ended in the same turn of the loop.
        return pending.is_done


def codec_level(settings: ProducerSettings) -> int | None:
    """The compression level for compression.type; None: the codec's default."""
    level: int = getattr(settings, f"compression_{settings.compression_type}_level", -1)
    return None if level == -1 else level


def set_done(done: asyncio.Future[None]) -> None:
    """Complete a future, unless its caller has stopped waiting."""
    if not done.done():
        done.set_result(None)


async def wait_for_batch(batch: ProducerBatch) -> None:
    """Wait on the event loop until a batch is done."""
    if batch.is_done:
        return
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    batch.waiters.append(partial(set_done, done))
    await done
