"""`ConsumerFace` and the calls of a consumer, once for both faces (see `client/faces.py`).

Calls that only change the consumer are plain functions in both faces; those that wait are coroutines. A call takes apart what
it was given in the caller's thread or task, and does its work on the event loop: `_do` for functions, `_run` for coroutines.
A call that hands out records returns a `Read`; the face reads, because buffered records must not wait for the loop.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, overload

from ottla.client.consumer import arguments, columns
from ottla.client.consumer.arguments import (
    ByPartition,
    CommitOffsets,
    ConsumerOptions,
    PartitionLike,
    Partitions,
    TimeLike,
    Topics,
)
from ottla.client.consumer.core import LEAVE_S_MIN, ConsumerCore
from ottla.client.consumer.guard import Guard, Read, check_open, refuse_in_listener
from ottla.client.consumer.listener import Handler, RebalanceListener, listener_of, tell
from ottla.client.consumer.offset_calls import CommitCallback
from ottla.client.consumer.ranges import Ranges
from ottla.client.consumer.reader import RecordReader
from ottla.client.consumer.record import ConsumerRecord
from ottla.client.faces import MeasuredFace
from ottla.client.type_parameters import K, V
from ottla.client_core.consumer.offset_lister import OffsetAndTimestamp
from ottla.client_core.consumer.settings import EARLIEST, LATEST, Reset
from ottla.client_core.group.membership import Event, Left
from ottla.client_core.metadata import PartitionInfo
from ottla.client_core.offsets import ConsumerGroupMetadata, OffsetAndMetadata
from ottla.client_core.timeouts import seconds
from ottla.env.clock import Clock
from ottla.errors import TimeoutError, WakeupError
from ottla.ids import TopicPartition, Uuid
from ottla.records.columns import Columns

if TYPE_CHECKING:
    import pyarrow

T = TypeVar("T")

CLOSE_TIMEOUT_S = 30.0
_ALL_RECORDS = 1 << 62


class ConsumerFace(MeasuredFace, Generic[K, V]):
    """What both faces share: a step of reading, the group's events, and the end. A face defines how it gets to its loop."""

    _clock: Clock
    _guard: Guard
    _is_closed: bool
    _options: ConsumerOptions
    _refills = 0

    if TYPE_CHECKING:  # an attribute in one face, in the other a property that starts the consumer

        @property
        def _core(self) -> ConsumerCore: ...
        @property
        def _reader(self) -> RecordReader: ...

    def _prepare(self, options: ConsumerOptions) -> None:
        self._options = options
        self._listener = RebalanceListener()
        self._is_in_listener = False

    def _do(self, call: Callable[[], T]) -> T:
        """The result of a function on the loop."""
        raise NotImplementedError

    async def _run(self, call: Callable[[], Awaitable[T]]) -> T:
        """The result of a coroutine on the loop."""
        raise NotImplementedError

    def _post(self, call: Callable[[], Any]) -> None:
        """Call a function on the loop soon."""
        raise NotImplementedError

    async def _give_turn(self) -> None:
        """Let others use the loop, if it is the caller's."""
        raise NotImplementedError

    async def _await_answer(self, found: Any) -> None:
        """Await what a listener or a callback has returned, if the face allows coroutines there."""
        raise NotImplementedError

    def _begin_close(self) -> bool:
        """False: there is nothing to close."""
        return not self._is_closed

    def _end(self, timeout_s: float) -> None:
        """End the connections, and what the loop runs on."""
        raise NotImplementedError

    @contextmanager
    def _entered(self, name: str) -> Iterator[None]:
        """A part of a call, in which no other thread or task may use the consumer."""
        self._guard.enter(name)
        try:
            check_open(self, name)
            yield
        finally:
            self._guard.leave()

    # Reading

    def _limit(self, max_records: int | None) -> int:
        if max_records is None:
            return self._options.settings.max_poll_records
        if max_records < 1:
            raise ValueError(f"max_records must be at least 1, not {max_records}")
        return max_records

    def _read_buffered(self, take: Callable[[], T]) -> T | None:
        """The fast path of `_read`, without a coroutine: what is buffered, if nothing else is due before it."""
        refuse_in_listener(self, "poll")
        core, now_s = self._core, self._clock.monotonic_s()
        core.polled(int(now_s * 1000))
        core.reader.begin_step()
        if core.needs_attention:
            return None
        self._commit_if_due(core, now_s)
        return take()

    async def _read(self, timeout: float | None, take: Callable[[], T], is_over: Callable[[], bool] | None = None) -> T:
        """What `take` finds, after the callbacks and the commit that are due. Waits up to `timeout` seconds for it."""
        refuse_in_listener(self, "poll")
        core, now_s = self._core, self._clock.monotonic_s()
        core.polled(int(now_s * 1000))
        reader = core.reader
        reader.begin_step()
        if core.needs_attention:
            await self._attend(core)
        self._commit_if_due(core, now_s)
        if reader.refills != self._refills:
            self._refills = reader.refills
            await self._give_turn()  # to send the next fetch, before taking: a cancelled poll must not lose records
        return take() or await self._wait_and_take(core, timeout, take, is_over)

    def _commit_if_due(self, core: ConsumerCore, now_s: float) -> None:
        if core.take_commit_due(now_s):
            self._post(functools.partial(core.offsets.commit_automatically, core.reader.offsets()))

    async def _wait_and_take(
        self, core: ConsumerCore, timeout: float | None, take: Callable[[], T], is_over: Callable[[], bool] | None
    ) -> T:
        clock, is_over = self._clock, is_over or _never
        deadline_s = None if timeout is None else clock.monotonic_s() + timeout
        while True:
            left_s = None if deadline_s is None else max(0.0, deadline_s - clock.monotonic_s())
            await self._run(functools.partial(core.wait_for_records, left_s, is_over))
            await self._attend(core)
            found = take()
            if found or (deadline_s is not None and clock.monotonic_s() >= deadline_s):
                return found

    def _rewound(self) -> RecordReader:
        """The reader, whose records of an iteration that were not handed out have gone back to be read again."""
        reader = self._reader
        if reader.pending:
            self._do(reader.rewind)
        return reader

    def _undo_step(self) -> None:
        """The caller gets nothing of what the step has taken."""
        if self._reader.has_step:
            self._do(self._reader.undo_step)

    # Events of the group

    async def _attend(self, core: ConsumerCore) -> None:
        """Call the callbacks of commits and the listener, where they are due."""
        await self._call_back(core)
        while core.needs_attention:
            if await self._handle_event(core) is None:
                break

    async def _call_back(self, core: ConsumerCore) -> None:
        callbacks = core.offsets.callbacks
        while callbacks:
            await self._await_answer(callbacks.pop(0)())

    async def _handle_event(self, core: ConsumerCore) -> Event | None:
        """Handle one event of the group, with the listener; returns the event, if there was one."""
        event = self._do(core.next_event)
        if event is None:
            return None
        await self._run(lambda: core.begin_event(event))
        self._is_in_listener = True
        try:
            await self._await_answer(tell(self._listener, event))
        finally:
            self._is_in_listener = False
            self._do(lambda: core.finish_event(event))
        return event

    async def _await_left(self, core: ConsumerCore, timeout: float) -> Exception | None:
        """Wait until the group is left; returns what a listener has raised. Other members wait for the partitions."""
        raised: Exception | None = None
        deadline_s = self._clock.monotonic_s() + timeout
        while (left_s := deadline_s - self._clock.monotonic_s()) > 0:
            if await self._run(functools.partial(core.wait_for_event, left_s)):
                try:
                    if isinstance(await self._handle_event(core), Left):
                        break
                except WakeupError:
                    raise
                except Exception as error:
                    raised = raised or error
        return raised

    # The end

    async def _close(self, timeout: float, leave: bool | None, *, is_step_done: bool) -> None:
        self._guard.enter("close")
        try:
            if not self._begin_close():
                return
            refuse_in_listener(self, "close")
            core, deadline_s = self._core, self._clock.monotonic_s() + timeout
            try:
                option = arguments.leave_option(leave)
                if await self._run(lambda: core.start_close(timeout, option, is_step_done=is_step_done)):
                    raised = await self._await_left(core, max(LEAVE_S_MIN, deadline_s - self._clock.monotonic_s()))
                    if raised is not None:
                        raise raised
                await self._call_back(core)
            finally:
                self._is_closed = True
                self._end(timeout)
                if self._options.interceptors is not None:
                    self._options.interceptors.close()
        finally:
            self._guard.leave()


def _never() -> bool:
    return False


# Which partitions


def assign(self: ConsumerFace, *partitions: Partitions) -> None:
    """Read exactly these partitions, without a group's help. Those read before keep their positions."""
    chosen = arguments.partitions_of(partitions)
    self._do(lambda: self._core.assign(chosen))


def subscribe(
    self: ConsumerFace,
    topics: Topics,
    listener: RebalanceListener | Any = None,
    *,
    on_assigned: Handler | None = None,
    on_revoked: Handler | None = None,
    on_lost: Handler | None = None,
) -> None:
    """Read what the group assigns of these topics: names, or a compiled pattern. Replaces an earlier subscription.

    The listener is called inside of poll(), in the caller's thread or task. With asyncio its methods may be coroutines.
    """
    subscription = arguments.subscription_of(topics)
    chosen = listener_of(listener, on_assigned, on_revoked, on_lost)
    self._do(lambda: self._core.subscribe(subscription))
    self._listener = chosen


async def unsubscribe(self: ConsumerFace) -> None:
    """Read nothing any more, and leave the group."""
    refuse_in_listener(self, "unsubscribe")
    core = self._core
    is_member = self._do(core.start_unsubscribe)
    raised = await self._await_left(core, core.waiting.limit_s(None)) if is_member else None
    self._do(core.finish_unsubscribe)
    if raised is not None:
        raise raised


def assignment(self: ConsumerFace) -> set[TopicPartition]:
    """The partitions that this consumer reads now: those of its group, or those of `assign`."""
    return set(self._core.subscription.partitions)


def subscription(self: ConsumerFace) -> set[str]:
    """The topics that are subscribed to; of a pattern, those that match now."""
    return self._do(self._core.subscribed_topics)


def group_metadata(self: ConsumerFace) -> ConsumerGroupMetadata:
    """Who this consumer is in its group, for `Producer.send_offsets_to_transaction`."""
    return self._do(self._core.group_metadata)


def enforce_rebalance(self: ConsumerFace, reason: str = "the application asked for it") -> None:
    """Ask the group for a rebalance, which a later poll takes part in."""
    self._do(lambda: self._core.rejoin(reason))


# Reading


def poll(
    self: ConsumerFace[K, V], timeout: float | None = 1.0, max_records: int | None = None
) -> Read[list[ConsumerRecord[K, V]]]:
    """The next records, up to `max_records` (max.poll.records). Waits up to `timeout` seconds for the first (None: ever).

    What earlier polls returned counts as dealt with: automatic commits cover it. Listeners and callbacks of commits are called
    inside. `DeserializationError` names the place of a record that cannot be read, `WakeupError` follows a `wakeup`.
    """
    limit, reader = self._limit(max_records), self._reader
    return seconds("poll", timeout), lambda: reader.take(limit), None


def batches(
    self: ConsumerFace[K, V], timeout: float | None = 1.0, max_records: int | None = None
) -> Read[dict[TopicPartition, list[ConsumerRecord[K, V]]]]:
    """As `poll`, with a list for each partition. Without `max_records`, everything that is buffered."""
    limit, reader = _ALL_RECORDS if max_records is None else self._limit(max_records), self._reader
    return seconds("batches", timeout), lambda: reader.take_batches(limit), None


def refill(self: ConsumerFace) -> Read[bool]:
    """Take the next records of an iteration."""
    limit, reader = self._limit(None), self._reader
    return None, lambda: reader.refill(limit), None


def consume_arrow(self: ConsumerFace, timeout: float | None = 1.0) -> Read[pyarrow.Table]:
    """Everything that is buffered as an Arrow table, without an object per record. Deserializers are not used.

    Columns: topic, partition, offset, timestamp, key, value, headers. Waits up to `timeout` seconds for the first record.
    """
    timeout, reader = seconds("consume_arrow", timeout), self._rewound()
    return timeout, reader.take_views, lambda found: columns.to_table(found, reader.spare)


def consume_columns(self: ConsumerFace, timeout: float | None = 1.0) -> Read[dict[TopicPartition, Columns]]:
    """As `consume_arrow`, as plain buffers in Arrow's layout for each partition."""
    timeout, reader = seconds("consume_columns", timeout), self._rewound()
    return timeout, reader.take_views, lambda found: columns.to_all_columns(found, reader.spare)


async def read_ranges(
    self: ConsumerFace,
    ranges: ByPartition[tuple[int, int]],
    *,
    form: str = "arrow",
    timeout: float | None = None,
) -> AsyncIterator[tuple[TopicPartition, Any]]:
    """Read given offsets, (first, end) for each partition, once and completely; yields (partition, chunk).

    `form` is `arrow` (record batches), `columns`, `batches` (of these records only) or `bytes` (whole batches). An
    offset that is not there is an error. `TimeoutError` if nothing comes for `timeout` seconds (default.api.timeout.ms).
    """
    progress = Ranges({arguments.partition_of(each): each_range for each, each_range in ranges.items()}, form)
    with self._entered("read_ranges"):
        core = self._core
        limit_s = core.waiting.limit_s(seconds("read_ranges", timeout))
        self._do(lambda: progress.begin(core))
    while not progress.is_done:
        with self._entered("read_ranges"):
            taken = await self._read(limit_s, lambda: progress.take(core), lambda: progress.has_ended(core))
        if taken is None:
            raise TimeoutError(progress.unfinished(core, limit_s))
        for chunk in progress.chunks(taken):
            yield chunk
        with self._entered("read_ranges"):
            self._do(lambda: progress.finish_read(core))
    with self._entered("read_ranges"):
        await unsubscribe(self)


def wakeup(self: ConsumerFace) -> None:
    """End the call that waits now in another thread or task, or else the next one, with `WakeupError`."""
    if not self._is_closed:
        core = self._core
        with suppress(RuntimeError):  # it is closed just now: nothing waits
            self._post(core.waiting.wakeup)


# Where in the partitions


@overload
async def position(self: ConsumerFace, partition: PartitionLike, timeout: float | None = None) -> int: ...
@overload
async def position(self: ConsumerFace, topic: str, number: int, /, *, timeout: float | None = None) -> int: ...
@overload
async def position(
    self: ConsumerFace, partitions: Iterable[PartitionLike], /, *, timeout: float | None = None
) -> dict[TopicPartition, int]: ...
@overload
async def position(
    self: ConsumerFace, first: PartitionLike, second: PartitionLike, /, *more: PartitionLike, timeout: float | None = None
) -> dict[TopicPartition, int]: ...
async def position(self: ConsumerFace, partition: Any, *more: Any, timeout: float | None = None) -> Any:
    """The offset of the next record that this consumer gets of a partition. Of several, given one by one or as a collection,
    a dict.
    """
    if more and not isinstance(partition, str) and not isinstance(more[-1], tuple):
        more, timeout = more[:-1], more[-1]
    given = (partition, *more)
    chosen, limit_s = arguments.partitions_of(given), seconds("position", timeout)
    found = await self._run(lambda: self._core.positions(chosen, limit_s))
    return found[chosen[0]] if arguments.is_one_partition(given) else found


def seek(self: ConsumerFace, partition: PartitionLike | ConsumerRecord, offset: int | OffsetAndMetadata | None = None) -> None:
    """Go on at `offset` of a partition. Given a record, go on with that record."""
    target = arguments.seek_target(partition, offset)
    self._do(lambda: self._core.seek(*target))


def seek_to_beginning(self: ConsumerFace, *partitions: Partitions) -> None:
    """Go on at the first record of the partitions, or of all."""
    _seek_by(self, partitions, EARLIEST)


def seek_to_end(self: ConsumerFace, *partitions: Partitions) -> None:
    """Go on after the last record of the partitions, or of all."""
    _seek_by(self, partitions, LATEST)


def seek_to_time(self: ConsumerFace, time: TimeLike, *partitions: Partitions) -> None:
    """Go on at the first record of `time` or later; where there is none, at the end."""
    _seek_by(self, partitions, Reset("time", arguments.timestamp_of(time)))


def _seek_by(self: ConsumerFace, partitions: tuple[Any, ...], reset: Reset) -> None:
    chosen = arguments.partitions_of(partitions) if partitions else []
    self._do(lambda: self._core.seek_by(chosen, reset))


def pause(self: ConsumerFace, *partitions: Partitions) -> None:
    """Hand out no records of these partitions until `resume`; they stay assigned."""
    chosen = arguments.partitions_of(partitions)
    self._do(lambda: self._core.pause(chosen, True))


def resume(self: ConsumerFace, *partitions: Partitions) -> None:
    """Hand out records of these partitions again."""
    chosen = arguments.partitions_of(partitions)
    self._do(lambda: self._core.pause(chosen, False))


def paused(self: ConsumerFace) -> set[TopicPartition]:
    """The partitions that are paused."""
    return {each for each, state in self._core.subscription.partitions.items() if state.is_paused}


# Offsets


async def commit(self: ConsumerFace, offsets: CommitOffsets | None = None, timeout: float | None = None) -> None:
    """Commit and wait for the answer, with retries: everything handed out, or `offsets` (see `commit_async`).

    `CommitFailedError` if the group has taken the partitions away: go on with the next poll.
    """
    chosen, limit_s = arguments.offsets_of(offsets), seconds("commit", timeout)
    await self._run(lambda: self._core.offsets.commit(chosen, limit_s))
    if self._options.interceptors is not None:
        await self._call_back(self._core)


def commit_async(self: ConsumerFace, offsets: CommitOffsets | None = None, callback: CommitCallback | None = None) -> None:
    """Commit without waiting or retrying. `callback(offsets, error)` is called in a later call of this consumer.

    `offsets` is {TopicPartition: offset or OffsetAndMetadata}, or records that have been dealt with.
    """
    chosen, checked = arguments.offsets_of(offsets), arguments.callback_of(callback)
    self._do(lambda: self._core.offsets.commit_async(chosen, checked))


Committed: TypeAlias = OffsetAndMetadata | None
"""What a group has committed of a partition."""


@overload
async def committed(self: ConsumerFace, partition: PartitionLike, /, *, timeout: float | None = None) -> Committed: ...
@overload
async def committed(self: ConsumerFace, topic: str, number: int, /, *, timeout: float | None = None) -> Committed: ...
@overload
async def committed(
    self: ConsumerFace, partitions: Iterable[PartitionLike], /, *, timeout: float | None = None
) -> dict[TopicPartition, Committed]: ...
@overload
async def committed(
    self: ConsumerFace, first: PartitionLike, second: PartitionLike, /, *more: PartitionLike, timeout: float | None = None
) -> dict[TopicPartition, Committed]: ...
async def committed(self: ConsumerFace, *partitions: Any, timeout: float | None = None) -> Any:
    """What the group has committed of a partition, or None. Of several, given one by one or as a collection, a dict."""
    chosen, limit_s = arguments.partitions_of(partitions), seconds("committed", timeout)
    found = await self._run(lambda: self._core.offsets.committed(chosen, limit_s))
    return found[chosen[0]] if arguments.is_one_partition(partitions) else found


async def offsets_for_times(
    self: ConsumerFace, times: ByPartition[TimeLike], timeout: float | None = None
) -> dict[TopicPartition, OffsetAndTimestamp | None]:
    """The first record of each partition at or after a time; None where there is none."""
    wanted = {arguments.partition_of(each): arguments.timestamp_of(time) for each, time in times.items()}
    limit_s = seconds("offsets_for_times", timeout)
    return await self._run(lambda: self._core.offsets.by_time(wanted, limit_s))


async def beginning_offsets(
    self: ConsumerFace, *partitions: Partitions, timeout: float | None = None
) -> dict[TopicPartition, int]:
    """The offsets of the first records."""
    chosen, limit_s = arguments.partitions_of(partitions), seconds("beginning_offsets", timeout)
    return await self._run(lambda: self._core.offsets.first(chosen, limit_s))


async def end_offsets(self: ConsumerFace, *partitions: Partitions, timeout: float | None = None) -> dict[TopicPartition, int]:
    """The offsets after the last records that this consumer may read."""
    chosen, limit_s = arguments.partitions_of(partitions), seconds("end_offsets", timeout)
    return await self._run(lambda: self._core.offsets.end(chosen, limit_s))


def lag(self: ConsumerFace, partition: PartitionLike) -> int | None:
    """How many offsets the position is behind the end, as the last fetch told; None if none was answered yet."""
    each = arguments.partition_of(partition)
    return self._do(lambda: self._core.lag(each))


# The cluster


async def partitions_for(self: ConsumerFace, topic: str, timeout: float | None = None) -> list[PartitionInfo]:
    """The partitions of a topic, with leader and replicas."""
    limit_s = seconds("partitions_for", timeout)
    return await self._run(lambda: self._core.partitions_for(topic, limit_s))


async def list_topics(self: ConsumerFace, timeout: float | None = None) -> dict[str, int]:
    """Every topic that this client may see, with its number of partitions."""
    limit_s = seconds("list_topics", timeout)
    return await self._run(lambda: self._core.list_topics(limit_s))


async def client_instance_id(self: ConsumerFace, timeout: float | None = None) -> Uuid:
    """The id by which the cluster knows this consumer's metrics (KIP-714); waits up to `timeout` seconds for it."""
    limit_s = seconds("client_instance_id", timeout)
    return await self._run(lambda: self._core.client_instance_id(limit_s))


# The end


async def close(self: ConsumerFace, timeout: float | None = CLOSE_TIMEOUT_S, *, leave: bool | None = None) -> None:
    """Commit what was handed out, if automatic commits are on, leave the group, and end. May be called twice.

    `leave` says whether to leave the group; by default static members (group.instance.id) stay in it.
    """
    limit_s = seconds("close", timeout)
    await self._close(CLOSE_TIMEOUT_S if limit_s is None else limit_s, leave, is_step_done=True)
