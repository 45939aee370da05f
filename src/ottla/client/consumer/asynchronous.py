"""`Consumer` for asyncio: the same core as the synchronous one, on the caller's own loop.

A consumer belongs to one task at a time: two that wait for it at once raise `ConcurrentUseError`. Only `wakeup` may be called
from anywhere on the loop. Made outside of a loop, it starts with the first call.
"""

from __future__ import annotations

import asyncio
import logging
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ottla.client.consumer import arguments, columns
from ottla.client.consumer.arguments import PartitionLike, TimeLike
from ottla.client.consumer.core import LEAVE_S_MIN, ConsumerCore
from ottla.client.consumer.guard import TaskGuard, refuse_in_listener
from ottla.client.consumer.listener import Handler, RebalanceListener, listener_of, tell
from ottla.client.consumer.offset_calls import CommitCallback
from ottla.client.consumer.options import consumer_options
from ottla.client.consumer.ranges import Ranges
from ottla.client.consumer.reader import Views
from ottla.client.consumer.record import ConsumerRecord
from ottla.client.dropped import consumer_dropped, on_loop
from ottla.client.link_options import check_security
from ottla.client.measured import MeasuredFace
from ottla.client.metrics import ClientMetrics
from ottla.client.own_loop import check_loop
from ottla.client.real_world import real_client_world
from ottla.client.type_parameters import K, V
from ottla.client.world import ClientWorld
from ottla.client_core.consumer.offset_lister import OffsetAndTimestamp
from ottla.client_core.consumer.reset import EARLIEST, LATEST, Reset
from ottla.client_core.group.membership import Event, Left
from ottla.client_core.metadata import PartitionInfo
from ottla.client_core.offsets import ConsumerGroupMetadata, OffsetAndMetadata
from ottla.env.threads import Lineage
from ottla.errors import IllegalStateError, TimeoutError, WakeupError
from ottla.ids import TopicPartition, Uuid
from ottla.records.columns import Columns
from ottla.records.spare_buffers import SpareBuffers

if TYPE_CHECKING:
    import pyarrow

T = TypeVar("T")

CLOSE_TIMEOUT_S = 30.0

logger = logging.getLogger("ottla.client")


class Consumer(MeasuredFace, Generic[K, V]):
    """Reads records from a Kafka cluster."""

    def __init__(
        self,
        bootstrap_servers: Any = None,
        config: Mapping[str, Any] | None = None,
        *,
        world: ClientWorld | None = None,
        **settings: Any,
    ) -> None:
        """Settings have Kafka's names: with `_` for `.` as keywords, or as they are in `config`."""
        self._options = consumer_options(bootstrap_servers, config, settings)
        self._world = world or real_client_world()
        check_security(self._options.settings, self._world.network)
        self._guard = TaskGuard()
        self._made: ConsumerCore | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        """The event loop that it belongs to: the one of the first call."""
        self._is_closed = False
        self._listener = RebalanceListener()
        self._is_in_listener = False
        self._refills = 0

    @property
    def _core(self) -> ConsumerCore:
        if self._is_closed:
            raise IllegalStateError("this consumer is closed: make another one")
        if self._made is None:
            try:
                self._made = ConsumerCore(self._world, self._options.settings, None, self._options.deserializers)
            except RuntimeError:
                raise IllegalStateError(
                    "an asyncio consumer needs a running event loop, and there is none: use it in a coroutine, or use "
                    "ottla.Consumer, which needs none"
                ) from None
            lineage = self._world.threads.lineage()
            self._loop = loop = asyncio.get_running_loop()
            self._finalizer = weakref.finalize(self, _abandoned, self._made, loop, lineage, lineage.generation)
        else:
            check_loop(self._loop, "consumer")
        return self._made

    async def _run(self, name: str, call: Awaitable[T]) -> T:
        """Await a call of the core; no other task may do so at the same time."""
        try:
            self._guard.enter(name)
        except BaseException:
            close = getattr(call, "close", None)  # a coroutine that never ran must not be warned of
            if close is not None:
                close()
            raise
        try:
            return await call
        finally:
            self._guard.leave()

    # Which partitions

    def assign(self, *partitions: Any) -> None:
        """Read exactly these partitions, without a group's help. Those read before keep their positions."""
        self._core.assign(arguments.partitions_of(partitions))

    def subscribe(
        self,
        topics: Any,
        listener: RebalanceListener | Any = None,
        *,
        on_assigned: Handler | None = None,
        on_revoked: Handler | None = None,
        on_lost: Handler | None = None,
    ) -> None:
        """Read what the group assigns of these topics: names, or a compiled pattern. Replaces an earlier subscription.

        The listener, whose methods may be coroutines, is called inside of poll().
        """
        subscription = arguments.subscription_of(topics)
        chosen = listener_of(listener, on_assigned, on_revoked, on_lost)
        self._core.subscribe(subscription)
        self._listener = chosen

    async def unsubscribe(self) -> None:
        """Read nothing any more, and leave the group."""
        refuse_in_listener(self, "unsubscribe")
        await self._run("unsubscribe", self._unsubscribe(self._core))

    async def _unsubscribe(self, core: ConsumerCore) -> None:
        raised = await self._await_left(core.waiting.limit_s(None)) if core.start_unsubscribe() else None
        core.finish_unsubscribe()
        if raised is not None:
            raise raised

    def assignment(self) -> set[TopicPartition]:
        """The partitions that this consumer reads now."""
        return set(self._core.subscription.partitions)

    def subscription(self) -> set[str]:
        """The topics that are subscribed to; of a pattern, those that match now."""
        return self._core.subscribed_topics()

    def group_metadata(self) -> ConsumerGroupMetadata:
        """Who this consumer is in its group, for `Producer.send_offsets_to_transaction`."""
        return self._core.group_metadata()

    def enforce_rebalance(self, reason: str = "the application asked for it") -> None:
        """Ask the group for a rebalance, which a later poll takes part in."""
        self._core.rejoin(reason)

    # Reading

    async def poll(self, timeout: float | None = 1.0, max_records: int | None = None) -> list[ConsumerRecord[K, V]]:
        """The next records, up to `max_records` (max.poll.records). Waits up to `timeout` seconds for the first (None: ever).

        What earlier polls returned counts as dealt with: automatic commits cover it.
        """
        limit = self._limit(max_records)
        reader = self._core.reader
        return await self._run("poll", self._read(timeout, lambda: reader.take(limit)))

    async def batches(
        self, timeout: float | None = 1.0, max_records: int | None = None
    ) -> dict[TopicPartition, list[ConsumerRecord[K, V]]]:
        """As `poll`, with a list for each partition. Without `max_records`, everything that is buffered."""
        limit = self._limit(max_records) if max_records is not None else 1 << 62
        reader = self._core.reader
        return await self._run("batches", self._read(timeout, lambda: reader.take_batches(limit)))

    async def consume_arrow(self, timeout: float | None = 1.0) -> pyarrow.Table:
        """Everything that is buffered as an Arrow table, without an object per record. Deserializers are not used.

        Columns: topic, partition, offset, timestamp, key, value, headers. Waits up to `timeout` seconds for the first record.
        """
        return await self._run("consume_arrow", self._read_views(timeout, columns.to_table))

    async def consume_columns(self, timeout: float | None = 1.0) -> dict[TopicPartition, Columns]:
        """As `consume_arrow`, as plain buffers in Arrow's layout for each partition."""
        return await self._run("consume_columns", self._read_views(timeout, columns.to_all_columns))

    async def read_ranges(
        self, ranges: Mapping[PartitionLike, tuple[int, int]], *, form: str = "arrow", timeout: float | None = None
    ) -> AsyncIterator[tuple[TopicPartition, Any]]:
        """Read given offsets, (first, end) for each partition, once and completely; yields (partition, chunk).

        `form` is `arrow` (record batches), `columns`, `batches` (of these records only) or `bytes` (whole batches). An
        offset that is not there is an error. `TimeoutError` if nothing comes for `timeout` seconds (default.api.timeout.ms).
        """
        progress = Ranges({arguments.partition_of(each): each_range for each, each_range in ranges.items()}, form)
        limit_s = self._core.waiting.limit_s(timeout)
        progress.begin(self._core)
        while not progress.is_done:
            taken = await self._run(
                "read_ranges",
                self._read(limit_s, lambda: progress.take(self._core), lambda: progress.has_ended(self._core)),
            )
            if taken is None:
                raise TimeoutError(progress.unfinished(self._core, limit_s))
            for chunk in progress.chunks(taken):
                yield chunk
            progress.finish_read(self._core)
        await self.unsubscribe()

    async def _read_views(self, timeout: float | None, convert: Callable[[dict[TopicPartition, Views], SpareBuffers], T]) -> T:
        reader = self._core.reader
        if reader.pending:
            reader.rewind()
        found = await self._read(timeout, reader.take_views)
        try:
            return convert(found, reader.spare)
        except BaseException:
            reader.undo_step()  # the caller gets nothing of it
            raise

    async def __aiter__(self) -> AsyncIterator[ConsumerRecord[K, V]]:
        """Every record, without end. The record of the step before counts as dealt with when the next one is asked for."""
        reader = self._core.reader
        limit = self._limit(None)
        while True:
            pending = reader.pending
            if reader.step >= len(pending):
                await self._run("iteration", self._read(None, lambda: reader.refill(limit)))
                continue
            record = pending[reader.step]
            reader.step += 1
            yield record

    def _limit(self, max_records: int | None) -> int:
        if max_records is None:
            return self._options.settings.max_poll_records
        if max_records < 1:
            raise ValueError(f"max_records must be at least 1, not {max_records}")
        return max_records

    async def _read(self, timeout: float | None, take: Callable[[], T], is_over: Callable[[], bool] = lambda: False) -> T:
        refuse_in_listener(self, "poll")
        core, clock = self._core, self._world.clock
        await self._begin_step()
        if core.reader.refills != self._refills:
            self._refills = core.reader.refills
            await asyncio.sleep(0)  # let the loop send the next fetch, before taking: a cancelled poll must not lose records
        found = take()
        if found:
            return found
        deadline_s = None if timeout is None else clock.monotonic_s() + timeout
        while True:
            left_s = None if deadline_s is None else max(0.0, deadline_s - clock.monotonic_s())
            await core.wait_for_records(left_s, is_over)
            await self._attend()
            found = take()
            if found or (deadline_s is not None and clock.monotonic_s() >= deadline_s):
                return found

    async def _begin_step(self) -> None:
        core, now_s = self._core, self._world.clock.monotonic_s()
        core.polled(int(now_s * 1000))
        core.reader.begin_step()
        if core.needs_attention:
            await self._attend()
        if core.take_commit_due(now_s):
            core.offsets.commit_automatically(core.reader.offsets())

    async def _attend(self) -> None:
        """Call the callbacks of commits and the listener, where they are due."""
        core = self._core
        while core.offsets.callbacks:
            found = core.offsets.callbacks.pop(0)()
            if asyncio.iscoroutine(found):
                await found
        while core.needs_attention:
            if await self._handle_event(core) is None:
                break

    async def _handle_event(self, core: ConsumerCore) -> Event | None:
        """Handle one event of the group, with the listener; returns the event, if there was one."""
        event = core.next_event()
        if event is None:
            return None
        await core.begin_event(event)
        self._is_in_listener = True
        try:
            found = tell(self._listener, event)
            if asyncio.iscoroutine(found):
                await found
        finally:
            self._is_in_listener = False
            core.finish_event(event)
        return event

    async def _await_left(self, timeout: float) -> Exception | None:
        """Wait until the group is left; returns what a listener has raised. Other members wait for the partitions."""
        core, clock = self._made, self._world.clock
        assert core is not None
        raised: Exception | None = None
        deadline_s = clock.monotonic_s() + timeout
        while (left_s := deadline_s - clock.monotonic_s()) > 0:
            if await core.wait_for_event(left_s):
                try:
                    if isinstance(await self._handle_event(core), Left):
                        break
                except WakeupError:
                    raise
                except Exception as error:
                    raised = raised or error
        return raised

    def wakeup(self) -> None:
        """End the call that waits now in another task, or else the next one, with `WakeupError`."""
        if not self._is_closed:
            self._core.waiting.wakeup()

    # Where in the partitions

    async def position(self, partition: PartitionLike, timeout: float | None = None) -> int:
        """The offset of the next record that this consumer gets of a partition."""
        return await self._run("position", self._core.position(arguments.partition_of(partition), timeout))

    def seek(self, partition: Any, offset: int | OffsetAndMetadata | None = None) -> None:
        """Go on at `offset` of a partition. Given a record, go on with that record."""
        self._core.seek(*arguments.seek_target(partition, offset))

    def seek_to_beginning(self, *partitions: Any) -> None:
        """Go on at the first record of the partitions, or of all."""
        self._seek_by(partitions, EARLIEST)

    def seek_to_end(self, *partitions: Any) -> None:
        """Go on after the last record of the partitions, or of all."""
        self._seek_by(partitions, LATEST)

    def seek_to_time(self, time: TimeLike, *partitions: Any) -> None:
        """Go on at the first record of `time` or later; where there is none, at the end."""
        self._seek_by(partitions, Reset("time", arguments.timestamp_of(time)))

    def _seek_by(self, partitions: tuple[Any, ...], reset: Reset) -> None:
        self._core.seek_by(arguments.partitions_of(partitions) if partitions else [], reset)

    def pause(self, *partitions: Any) -> None:
        """Hand out no records of these partitions until `resume`; they stay assigned."""
        self._core.pause(arguments.partitions_of(partitions), True)

    def resume(self, *partitions: Any) -> None:
        """Hand out records of these partitions again."""
        self._core.pause(arguments.partitions_of(partitions), False)

    def paused(self) -> set[TopicPartition]:
        """The partitions that are paused."""
        return {each for each, state in self._core.subscription.partitions.items() if state.is_paused}

    # Offsets

    async def commit(self, offsets: Any = None, timeout: float | None = None) -> None:
        """Commit and wait for the answer, with retries: everything handed out, or `offsets` (see `commit_async`)."""
        await self._run("commit", self._core.offsets.commit(arguments.offsets_of(offsets), timeout))

    def commit_async(self, offsets: Any = None, callback: CommitCallback | None = None) -> None:
        """Commit without waiting or retrying. `callback(offsets, error)` is called in a later call of this consumer.

        `offsets` is {TopicPartition: offset or OffsetAndMetadata}, or records that have been dealt with.
        """
        self._core.offsets.commit_async(arguments.offsets_of(offsets), arguments.callback_of(callback))

    async def committed(self, *partitions: Any, timeout: float | None = None) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What the group has committed for these partitions; None where nothing is."""
        return await self._run("committed", self._core.offsets.committed(arguments.partitions_of(partitions), timeout))

    async def offsets_for_times(
        self, times: Mapping[PartitionLike, TimeLike], timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record of each partition at or after a time; None where there is none."""
        wanted = {arguments.partition_of(each): arguments.timestamp_of(time) for each, time in times.items()}
        return await self._run("offsets_for_times", self._core.offsets.by_time(wanted, timeout))

    async def beginning_offsets(self, *partitions: Any, timeout: float | None = None) -> dict[TopicPartition, int]:
        """The offsets of the first records."""
        return await self._run("beginning_offsets", self._core.offsets.first(arguments.partitions_of(partitions), timeout))

    async def end_offsets(self, *partitions: Any, timeout: float | None = None) -> dict[TopicPartition, int]:
        """The offsets after the last records that this consumer may read."""
        return await self._run("end_offsets", self._core.offsets.end(arguments.partitions_of(partitions), timeout))

    def lag(self, partition: PartitionLike) -> int | None:
        """How far the position is behind the end, as the last fetch told; None if none was answered yet."""
        return self._core.lag(arguments.partition_of(partition))

    # The cluster

    async def partitions_for(self, topic: str, timeout: float | None = None) -> list[PartitionInfo]:
        """The partitions of a topic."""
        return await self._run("partitions_for", self._core.partitions_for(topic, timeout))

    async def list_topics(self, timeout: float | None = None) -> dict[str, int]:
        """Every topic that this client may see, with its number of partitions."""
        return await self._run("list_topics", self._core.list_topics(timeout))

    async def client_instance_id(self, timeout: float | None = None) -> Uuid:
        """The id by which the cluster knows this consumer's metrics (KIP-714); waits up to `timeout` seconds for it."""
        return await self._run("client_instance_id", self._core.client_instance_id(timeout))

    @property
    def _measured(self) -> ClientMetrics:
        core = self._made  # from any thread: only a consumer that is not started yet needs the loop
        return (self._core if core is None else core).parts.metrics

    # The end

    async def close(self, timeout: float = CLOSE_TIMEOUT_S, *, leave: bool | None = None) -> None:
        """Commit what was handed out, if automatic commits are on, leave the group, and end. May be called twice.

        `leave` says whether to leave the group; by default static members (group.instance.id) stay in it.
        """
        await self._close(timeout, leave, is_step_done=True)

    async def _close(self, timeout: float, leave: bool | None, *, is_step_done: bool) -> None:
        if self._is_closed:
            return
        if self._made is None:
            self._is_closed = True
            return
        check_loop(self._loop, "consumer")
        refuse_in_listener(self, "close")
        await self._run("close", self._finish(self._made, timeout, leave, is_step_done))

    async def _finish(self, core: ConsumerCore, timeout: float, leave: bool | None, is_step_done: bool) -> None:
        clock = self._world.clock
        deadline_s = clock.monotonic_s() + timeout
        try:
            if await core.start_close(timeout, arguments.leave_option(leave), is_step_done=is_step_done):
                raised = await self._await_left(max(LEAVE_S_MIN, deadline_s - clock.monotonic_s()))
                if raised is not None:
                    raise raised
            while core.offsets.callbacks:
                found = core.offsets.callbacks.pop(0)()
                if asyncio.iscoroutine(found):
                    await found
        finally:
            self._is_closed = True
            self._finalizer.detach()
            core.finish_close()

    async def __aenter__(self) -> Consumer[K, V]:
        _ = self._core
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # After an error the records of the last step may not have been dealt with.
        await self._close(CLOSE_TIMEOUT_S, None, is_step_done=kind is None)

    def __repr__(self) -> str:
        made = self._made
        state = "closed" if self._is_closed else f"{len(made.subscription.partitions) if made else 0} partitions"
        return f"aio.Consumer({self._options.settings!r}, {state})"


def _abandoned(core: ConsumerCore, loop: asyncio.AbstractEventLoop, lineage: Lineage, generation: int) -> None:
    """A consumer was garbage collected, or the process exits, without `close`."""
    if lineage.generation == generation:
        consumer_dropped(logger, core.joined_group)
        on_loop(loop, core.finish_close)
