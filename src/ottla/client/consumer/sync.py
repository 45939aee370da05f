"""`Consumer`: the synchronous face. Its core runs on an event loop in a thread of its own; records are decoded by the caller.

A consumer belongs to one thread at a time: calls from two threads at once raise `ConcurrentUseError`. Only `wakeup` may be
called from anywhere.
"""

from __future__ import annotations

import functools
import logging
import weakref
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ottla.client.consumer import arguments, columns
from ottla.client.consumer.arguments import PartitionLike, TimeLike
from ottla.client.consumer.core import LEAVE_S_MIN, ConsumerCore
from ottla.client.consumer.guard import ThreadGuard, guarded, reading, refuse_in_listener
from ottla.client.consumer.listener import Handler, RebalanceListener, listener_of, tell
from ottla.client.consumer.offset_calls import CommitCallback
from ottla.client.consumer.options import ConsumerOptions, consumer_options
from ottla.client.consumer.ranges import Ranges, Taken
from ottla.client.consumer.reader import Views
from ottla.client.consumer.record import ConsumerRecord
from ottla.client.dropped import consumer_dropped
from ottla.client.link_options import check_security
from ottla.client.measured import MeasuredFace
from ottla.client.metrics import ClientMetrics
from ottla.client.real_world import real_client_world
from ottla.client.type_parameters import K, V
from ottla.client.world import ClientWorld
from ottla.client_core.consumer.offset_lister import OffsetAndTimestamp
from ottla.client_core.consumer.reset import EARLIEST, LATEST, Reset
from ottla.client_core.group.membership import Left
from ottla.client_core.metadata import PartitionInfo
from ottla.client_core.offsets import ConsumerGroupMetadata, OffsetAndMetadata
from ottla.env.threads import Lineage, LoopThread
from ottla.errors import TimeoutError, WakeupError
from ottla.ids import TopicPartition, Uuid
from ottla.records.columns import Columns

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
        options = consumer_options(bootstrap_servers, config, settings)
        world = world or real_client_world()
        check_security(options.settings, world.network)
        self._setup(options, world)

    def _setup(self, options: ConsumerOptions, world: ClientWorld) -> None:
        self._is_closed = True  # until it is open
        self._options = options
        self._guard = ThreadGuard(world.threads)
        self._clock = world.clock
        self._thread = thread = world.threads.start_loop("ottla-consumer")

        def wake() -> None:  # without `self`: the core must not keep a dropped consumer alive
            thread.post(core.parts.runner.wake)

        async def make() -> ConsumerCore:
            return ConsumerCore(world, options.settings, wake, options.deserializers)

        self._core = core = thread.call(make)
        lineage = world.threads.lineage()
        self._finalizer = weakref.finalize(self, _abandoned, core, thread, lineage, lineage.generation)
        self._reader = self._core.reader
        self._listener = RebalanceListener()
        self._is_in_listener = False
        self._is_closed = False

    def _run(self, call: Callable[[], Awaitable[T]]) -> T:
        """The result of a coroutine on the loop."""
        return self._thread.call(call)

    def _do(self, call: Callable[[], T]) -> T:
        """The result of a function on the loop."""

        async def run() -> T:
            return call()

        return self._thread.call(run)

    # Which partitions

    @guarded
    def assign(self, *partitions: Any) -> None:
        """Read exactly these partitions, without a group's help. Those read before keep their positions."""
        chosen = arguments.partitions_of(partitions)
        self._do(lambda: self._core.assign(chosen))

    @guarded
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

        The listener is called inside of poll(), in the caller's thread.
        """
        subscription = arguments.subscription_of(topics)
        chosen = listener_of(listener, on_assigned, on_revoked, on_lost)
        self._do(lambda: self._core.subscribe(subscription))
        self._listener = chosen

    @guarded
    def unsubscribe(self) -> None:
        """Read nothing any more, and leave the group."""
        refuse_in_listener(self, "unsubscribe")
        is_member = self._do(self._core.start_unsubscribe)
        raised = self._await_left(self._core.waiting.limit_s(None)) if is_member else None
        self._do(self._core.finish_unsubscribe)
        if raised is not None:
            raise raised

    @guarded
    def assignment(self) -> set[TopicPartition]:
        """The partitions that this consumer reads now."""
        return set(self._core.subscription.partitions)

    @guarded
    def subscription(self) -> set[str]:
        """The topics that are subscribed to; of a pattern, those that match now."""
        return self._do(self._core.subscribed_topics)

    @guarded
    def group_metadata(self) -> ConsumerGroupMetadata:
        """Who this consumer is in its group, for `Producer.send_offsets_to_transaction`."""
        return self._do(self._core.group_metadata)

    @guarded
    def enforce_rebalance(self, reason: str = "the application asked for it") -> None:
        """Ask the group for a rebalance, which a later poll takes part in."""
        self._do(lambda: self._core.rejoin(reason))

    # Reading

    @reading
    def poll(self, timeout: float | None = 1.0, max_records: int | None = None) -> list[ConsumerRecord[K, V]]:
        """The next records, up to `max_records` (max.poll.records). Waits up to `timeout` seconds for the first (None: ever).

        What earlier polls returned counts as dealt with: automatic commits cover it.
        """
        limit = self._limit(max_records)
        return self._read(timeout, lambda: self._reader.take(limit))

    @reading
    def batches(
        self, timeout: float | None = 1.0, max_records: int | None = None
    ) -> dict[TopicPartition, list[ConsumerRecord[K, V]]]:
        """As `poll`, with a list for each partition. Without `max_records`, everything that is buffered."""
        limit = self._limit(max_records) if max_records is not None else 1 << 62
        return self._read(timeout, lambda: self._reader.take_batches(limit))

    @reading
    def consume_arrow(self, timeout: float | None = 1.0) -> pyarrow.Table:
        """Everything that is buffered as an Arrow table, without an object per record. Deserializers are not used.

        Columns: topic, partition, offset, timestamp, key, value, headers. Waits up to `timeout` seconds for the first record.
        """
        return columns.to_table(self._read_views(timeout), self._reader.spare)

    @reading
    def consume_columns(self, timeout: float | None = 1.0) -> dict[TopicPartition, Columns]:
        """As `consume_arrow`, as plain buffers in Arrow's layout for each partition."""
        return columns.to_all_columns(self._read_views(timeout), self._reader.spare)

    def read_ranges(
        self, ranges: Mapping[PartitionLike, tuple[int, int]], *, form: str = "arrow", timeout: float | None = None
    ) -> Iterator[tuple[TopicPartition, Any]]:
        """Read given offsets, (first, end) for each partition, once and completely; yields (partition, chunk).

        `form` is `arrow` (record batches), `columns`, `batches` (of these records only) or `bytes` (whole batches). An
        offset that is not there is an error. `TimeoutError` if nothing comes for `timeout` seconds (default.api.timeout.ms).
        """
        progress = Ranges({arguments.partition_of(each): each_range for each, each_range in ranges.items()}, form)
        limit_s = self._core.waiting.limit_s(timeout)
        self._on_loop(lambda: progress.begin(self._core))
        while not progress.is_done:
            taken = self._next_taken(progress, limit_s)
            if taken is None:
                raise TimeoutError(progress.unfinished(self._core, limit_s))
            yield from progress.chunks(taken)
            self._on_loop(lambda: progress.finish_read(self._core))
        self.unsubscribe()

    @guarded
    def _next_taken(self, progress: Ranges, timeout: float) -> Taken | None:
        core = self._core
        return self._read(timeout, lambda: progress.take(core), lambda: progress.has_ended(core))

    @guarded
    def _on_loop(self, call: Callable[[], T]) -> T:
        return self._do(call)

    def _read_views(self, timeout: float | None) -> dict[TopicPartition, Views]:
        if self._reader.pending:
            self._do(self._reader.rewind)
        return self._read(timeout, self._reader.take_views)

    def __iter__(self) -> Iterator[ConsumerRecord[K, V]]:
        """Every record, without end. The record of the step before counts as dealt with when the next one is asked for."""
        reader = self._reader
        while True:
            pending = reader.pending
            if reader.step >= len(pending):
                self._refill()
                continue
            record = pending[reader.step]
            reader.step += 1
            yield record

    @reading
    def _refill(self) -> None:
        limit = self._limit(None)
        self._read(None, lambda: self._reader.refill(limit))

    def _limit(self, max_records: int | None) -> int:
        if max_records is None:
            return self._options.settings.max_poll_records
        if max_records < 1:
            raise ValueError(f"max_records must be at least 1, not {max_records}")
        return max_records

    def _read(self, timeout: float | None, take: Callable[[], T], is_over: Callable[[], bool] = lambda: False) -> T:
        refuse_in_listener(self, "poll")
        self._begin_step()
        return take() or self._wait_and_take(timeout, take, is_over)

    def _undo_step(self) -> None:
        if self._reader.has_step:
            self._do(self._reader.undo_step)

    def _wait_and_take(self, timeout: float | None, take: Callable[[], T], is_over: Callable[[], bool]) -> T:
        clock = self._clock
        deadline_s = None if timeout is None else clock.monotonic_s() + timeout
        while True:
            left_s = None if deadline_s is None else max(0.0, deadline_s - clock.monotonic_s())
            self._run(functools.partial(self._core.wait_for_records, left_s, is_over))
            self._attend()
            found = take()
            if found or (deadline_s is not None and clock.monotonic_s() >= deadline_s):
                return found

    def _begin_step(self) -> None:
        now_s = self._clock.monotonic_s()
        self._core.polled(int(now_s * 1000))
        self._reader.begin_step()
        if self._core.needs_attention:
            self._attend()
        if self._core.take_commit_due(now_s):
            offsets = self._reader.offsets()
            self._thread.post(lambda: self._core.offsets.commit_automatically(offsets))

    def _attend(self) -> None:
        """Call the callbacks of commits and the listener, where they are due."""
        callbacks = self._core.offsets.callbacks
        while callbacks:
            callbacks.pop(0)()
        while self._core.needs_attention:
            if not self._handle_event():
                break

    def _handle_event(self) -> Any:
        """Handle one event of the group, with the listener; returns the event, if there was one."""
        core = self._core
        event = self._do(core.next_event)
        if event is None:
            return None
        self._run(lambda: core.begin_event(event))
        self._is_in_listener = True
        try:
            tell(self._listener, event)
        finally:
            self._is_in_listener = False
            self._do(lambda: core.finish_event(event))
        return event

    def _await_left(self, timeout: float) -> Exception | None:
        """Wait until the group is left; returns what a listener has raised. Other members wait for the partitions."""
        raised: Exception | None = None
        deadline_s = self._clock.monotonic_s() + timeout
        while (left_s := deadline_s - self._clock.monotonic_s()) > 0:
            if self._run(functools.partial(self._core.wait_for_event, left_s)):
                try:
                    if isinstance(self._handle_event(), Left):
                        break
                except WakeupError:
                    raise
                except Exception as error:
                    raised = raised or error
        return raised

    def wakeup(self) -> None:
        """End the call that waits now in another thread, or else the next one, with `WakeupError`."""
        with suppress(RuntimeError):  # it is closed, maybe just now: nothing waits
            self._thread.post(self._core.waiting.wakeup)

    # Where in the partitions

    @guarded
    def position(self, partition: PartitionLike, timeout: float | None = None) -> int:
        """The offset of the next record that this consumer gets of a partition."""
        each = arguments.partition_of(partition)
        return self._run(lambda: self._core.position(each, timeout))

    @guarded
    def seek(self, partition: Any, offset: int | OffsetAndMetadata | None = None) -> None:
        """Go on at `offset` of a partition. Given a record, go on with that record."""
        target = arguments.seek_target(partition, offset)
        self._do(lambda: self._core.seek(*target))

    @guarded
    def seek_to_beginning(self, *partitions: Any) -> None:
        """Go on at the first record of the partitions, or of all."""
        self._seek_by(partitions, EARLIEST)

    @guarded
    def seek_to_end(self, *partitions: Any) -> None:
        """Go on after the last record of the partitions, or of all."""
        self._seek_by(partitions, LATEST)

    @guarded
    def seek_to_time(self, time: TimeLike, *partitions: Any) -> None:
        """Go on at the first record of `time` or later; where there is none, at the end."""
        self._seek_by(partitions, Reset("time", arguments.timestamp_of(time)))

    def _seek_by(self, partitions: tuple[Any, ...], reset: Reset) -> None:
        chosen = arguments.partitions_of(partitions) if partitions else []
        self._do(lambda: self._core.seek_by(chosen, reset))

    @guarded
    def pause(self, *partitions: Any) -> None:
        """Hand out no records of these partitions until `resume`; they stay assigned."""
        chosen = arguments.partitions_of(partitions)
        self._do(lambda: self._core.pause(chosen, True))

    @guarded
    def resume(self, *partitions: Any) -> None:
        """Hand out records of these partitions again."""
        chosen = arguments.partitions_of(partitions)
        self._do(lambda: self._core.pause(chosen, False))

    @guarded
    def paused(self) -> set[TopicPartition]:
        """The partitions that are paused."""
        return {each for each, state in self._core.subscription.partitions.items() if state.is_paused}

    # Offsets

    @guarded
    def commit(self, offsets: Any = None, timeout: float | None = None) -> None:
        """Commit and wait for the answer, with retries: everything handed out, or `offsets` (see `commit_async`)."""
        chosen = arguments.offsets_of(offsets)
        self._run(lambda: self._core.offsets.commit(chosen, timeout))

    @guarded
    def commit_async(self, offsets: Any = None, callback: CommitCallback | None = None) -> None:
        """Commit without waiting or retrying. `callback(offsets, error)` is called in a later call of this consumer.

        `offsets` is {TopicPartition: offset or OffsetAndMetadata}, or records that have been dealt with.
        """
        chosen, checked = arguments.offsets_of(offsets), arguments.callback_of(callback)
        self._do(lambda: self._core.offsets.commit_async(chosen, checked))

    @guarded
    def committed(self, *partitions: Any, timeout: float | None = None) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What the group has committed for these partitions; None where nothing is."""
        chosen = arguments.partitions_of(partitions)
        return self._run(lambda: self._core.offsets.committed(chosen, timeout))

    @guarded
    def offsets_for_times(
        self, times: Mapping[PartitionLike, TimeLike], timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record of each partition at or after a time; None where there is none."""
        wanted = {arguments.partition_of(each): arguments.timestamp_of(time) for each, time in times.items()}
        return self._run(lambda: self._core.offsets.by_time(wanted, timeout))

    @guarded
    def beginning_offsets(self, *partitions: Any, timeout: float | None = None) -> dict[TopicPartition, int]:
        """The offsets of the first records."""
        chosen = arguments.partitions_of(partitions)
        return self._run(lambda: self._core.offsets.first(chosen, timeout))

    @guarded
    def end_offsets(self, *partitions: Any, timeout: float | None = None) -> dict[TopicPartition, int]:
        """The offsets after the last records that this consumer may read."""
        chosen = arguments.partitions_of(partitions)
        return self._run(lambda: self._core.offsets.end(chosen, timeout))

    @guarded
    def lag(self, partition: PartitionLike) -> int | None:
        """How far the position is behind the end, as the last fetch told; None if none was answered yet."""
        each = arguments.partition_of(partition)
        return self._do(lambda: self._core.lag(each))

    # The cluster

    @guarded
    def partitions_for(self, topic: str, timeout: float | None = None) -> list[PartitionInfo]:
        """The partitions of a topic."""
        return self._run(lambda: self._core.partitions_for(topic, timeout))

    @guarded
    def list_topics(self, timeout: float | None = None) -> dict[str, int]:
        """Every topic that this client may see, with its number of partitions."""
        return self._run(lambda: self._core.list_topics(timeout))

    @guarded
    def client_instance_id(self, timeout: float | None = None) -> Uuid:
        """The id by which the cluster knows this consumer's metrics (KIP-714); waits up to `timeout` seconds for it."""
        return self._run(lambda: self._core.client_instance_id(timeout))

    @property
    def _measured(self) -> ClientMetrics:
        return self._core.parts.metrics

    # The end

    def close(self, timeout: float = CLOSE_TIMEOUT_S, *, leave: bool | None = None) -> None:
        """Commit what was handed out, if automatic commits are on, leave the group, and end. May be called twice.

        `leave` says whether to leave the group; by default static members (group.instance.id) stay in it.
        """
        self._close(timeout, leave, is_step_done=True)

    def _close(self, timeout: float, leave: bool | None, *, is_step_done: bool) -> None:
        self._guard.enter("close")
        try:
            if self._is_closed:
                return
            refuse_in_listener(self, "close")
            core, deadline_s = self._core, self._clock.monotonic_s() + timeout
            try:
                option = arguments.leave_option(leave)
                if self._run(lambda: core.start_close(timeout, option, is_step_done=is_step_done)):
                    raised = self._await_left(max(LEAVE_S_MIN, deadline_s - self._clock.monotonic_s()))
                    if raised is not None:
                        raise raised
                while core.offsets.callbacks:
                    core.offsets.callbacks.pop(0)()
            finally:
                self._is_closed = True
                self._finalizer.detach()
                self._do(core.finish_close)
                self._thread.stop(timeout)
        finally:
            self._guard.leave()

    def __enter__(self) -> Consumer[K, V]:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        # After an error the records of the last step may not have been dealt with.
        self._close(CLOSE_TIMEOUT_S, None, is_step_done=kind is None)

    def __repr__(self) -> str:
        state = "closed" if self._is_closed else f"{len(self._core.subscription.partitions)} partitions"
        return f"Consumer({self._options.settings!r}, {state})"


def _abandoned(core: ConsumerCore, thread: LoopThread, lineage: Lineage, generation: int) -> None:
    """A consumer was garbage collected, or the process exits, without `close`."""
    if lineage.generation == generation:
        consumer_dropped(logger, core.joined_group)
        thread.stop(0.1)
