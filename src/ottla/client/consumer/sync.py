"""`Consumer`: the synchronous face. Its core runs on an event loop in a thread of its own; records are decoded by the caller.

A consumer belongs to one thread at a time: calls from two threads at once raise `ConcurrentUseError`. Only `wakeup` may be
called from anywhere.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Awaitable, Callable, Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

from ottla.client import faces
from ottla.client.consumer import calls
from ottla.client.consumer.arguments import consumer_options
from ottla.client.consumer.calls import CLOSE_TIMEOUT_S, ConsumerFace
from ottla.client.consumer.core import ConsumerCore
from ottla.client.consumer.guard import ThreadGuard, blocking, blocking_read, guarded
from ottla.client.consumer.reader import RecordReader
from ottla.client.consumer.record import ConsumerRecord
from ottla.client.faces import consumer_dropped
from ottla.client.link_options import check_security
from ottla.client.metrics import ClientMetrics
from ottla.client.type_parameters import K, V
from ottla.client.world import ClientWorld, real_client_world
from ottla.env.threads import Lineage, LoopThread

if TYPE_CHECKING:
    from ottla.client.keywords import (
        ConsumerAny,
        ConsumerBytesBytes,
        ConsumerBytesNamed,
        ConsumerBytesOwn,
        ConsumerBytesText,
        ConsumerNamedBytes,
        ConsumerNamedNamed,
        ConsumerNamedOwn,
        ConsumerNamedText,
        ConsumerOwnBytes,
        ConsumerOwnNamed,
        ConsumerOwnOwn,
        ConsumerOwnText,
        ConsumerTextBytes,
        ConsumerTextNamed,
        ConsumerTextOwn,
        ConsumerTextText,
    )
    from ottla.client.type_parameters import K_own, Servers, V_own

T = TypeVar("T")

logger = logging.getLogger("ottla.client")


class Consumer(ConsumerFace[K, V]):
    """Reads records from a Kafka cluster, as a member of a group or by itself.

        with Consumer("localhost:9092", group_id="readers", auto_offset_reset="earliest") as consumer:
            consumer.subscribe(["events"])
            for record in consumer:          # without end; poll() returns a list
                print(record.key, record.value)

    `bootstrap_servers` is `host:port`, several of them in one text or in a list. Settings have Kafka's names with
    underscores as keywords (`auto_offset_reset="earliest"`), or with dots in `config`; `ConfigError` names what is wrong
    with one, and what was probably meant. A consumer belongs to one thread at a time; another one gets
    `ConcurrentUseError`. The end of the `with` block commits what was dealt with, if automatic commits are on, and leaves
    the group.
    """

    _core: ConsumerCore
    _reader: RecordReader

    @overload
    def __init__(
        self: Consumer[bytes, bytes], bootstrap_servers: Servers | None = None, **settings: Unpack[ConsumerBytesBytes]
    ) -> None: ...
    @overload
    def __init__(
        self: Consumer[bytes, str], bootstrap_servers: Servers | None = None, **settings: Unpack[ConsumerBytesText]
    ) -> None: ...
    @overload
    def __init__(
        self: Consumer[bytes, V_own], bootstrap_servers: Servers | None = None, **settings: Unpack[ConsumerBytesOwn[V_own]]
    ) -> None: ...
    @overload
    def __init__(
        self: Consumer[bytes, Any], bootstrap_servers: Servers | None = None, **settings: Unpack[ConsumerBytesNamed]
    ) -> None: ...
    @overload
    def __init__(
        self: Consumer[str, bytes], bootstrap_servers: Servers | None = None, **settings: Unpack[ConsumerTextBytes]
    ) -> None: ...
    @overload
    def __init__(
        self: Consumer[str, str], bootstrap_servers: Servers | None = None, **settings: Unpack[ConsumerTextText]
    ) -> None: ...
    @overload
    def __init__(
        self: Consumer[str, V_own], bootstrap_servers: Servers | None = None, **settings: Unpack[ConsumerTextOwn[V_own]]
    ) -> None: ...
    @overload
    def __init__(
        self: Consumer[str, Any], bootstrap_servers: Servers | None = None, **settings: Unpack[ConsumerTextNamed]
    ) -> None: ...
    @overload
    def __init__(
        self: Consumer[K_own, bytes], bootstrap_servers: Servers | None = None, **settings: Unpack[ConsumerOwnBytes[K_own]]
    ) -> None: ...
    @overload
    def __init__(
        self: Consumer[K_own, str], bootstrap_servers: Servers | None = None, **settings: Unpack[ConsumerOwnText[K_own]]
    ) -> None: ...
    @overload
    def __init__(
        self: Consumer[K_own, V_own], bootstrap_servers: Servers | None = None, **settings: Unpack[ConsumerOwnOwn[K_own, V_own]]
    ) -> None: ...
    @overload
    def __init__(
        self: Consumer[K_own, Any], bootstrap_servers: Servers | None = None, **settings: Unpack[ConsumerOwnNamed[K_own]]
    ) -> None: ...
    @overload
    def __init__(
        self: Consumer[Any, bytes], bootstrap_servers: Servers | None = None, **settings: Unpack[ConsumerNamedBytes]
    ) -> None: ...
    @overload
    def __init__(
        self: Consumer[Any, str], bootstrap_servers: Servers | None = None, **settings: Unpack[ConsumerNamedText]
    ) -> None: ...
    @overload
    def __init__(
        self: Consumer[Any, V_own], bootstrap_servers: Servers | None = None, **settings: Unpack[ConsumerNamedOwn[V_own]]
    ) -> None: ...
    @overload
    def __init__(
        self: Consumer[Any, Any], bootstrap_servers: Servers | None = None, **settings: Unpack[ConsumerNamedNamed]
    ) -> None: ...
    @overload
    def __init__(self, bootstrap_servers: Mapping[str, Any], **settings: Unpack[ConsumerAny]) -> None: ...
    @overload
    def __init__(
        self, bootstrap_servers: Servers | None, config: Mapping[str, Any] | None, **settings: Unpack[ConsumerAny]
    ) -> None: ...
    @overload
    def __init__(
        self, bootstrap_servers: Servers | None = None, *, config: Mapping[str, Any] | None, **settings: Unpack[ConsumerAny]
    ) -> None: ...
    def __init__(
        self,
        bootstrap_servers: Any = None,
        config: Mapping[str, Any] | None = None,
        *,
        world: ClientWorld | None = None,
        **settings: Any,
    ) -> None:
        """Settings have Kafka's names: with `_` for `.` as keywords, or as they are in `config`."""
        self._is_closed = True  # until it is open
        options = consumer_options(bootstrap_servers, config, settings)
        world = world or real_client_world()
        check_security(options.settings, world)
        self._prepare(options)
        self._guard = ThreadGuard(world.threads)
        self._clock = world.clock
        self._thread = thread = world.threads.start_loop("ottla-consumer")

        def wake() -> None:  # without `self`: the core must not keep a dropped consumer alive
            thread.post(core.parts.runner.wake)

        async def make() -> ConsumerCore:
            return ConsumerCore(world, options.settings, wake, options.deserializers, options.interceptors)

        self._core = core = thread.call(make)
        self._reader = core.reader
        lineage = world.threads.lineage()
        self._finalizer = weakref.finalize(self, _abandoned, core, thread, lineage, lineage.generation)
        self._is_closed = False

    # Which partitions

    assign = guarded(calls.assign)
    subscribe = guarded(calls.subscribe)
    unsubscribe = blocking(calls.unsubscribe)
    assignment = guarded(calls.assignment)
    subscription = guarded(calls.subscription)
    group_metadata = guarded(calls.group_metadata)
    enforce_rebalance = guarded(calls.enforce_rebalance)

    # Reading

    poll = blocking_read(calls.poll)
    batches = blocking_read(calls.batches)
    consume_arrow = blocking_read(calls.consume_arrow)
    consume_columns = blocking_read(calls.consume_columns)
    read_ranges = faces.blocking_steps(calls.read_ranges)
    wakeup = faces.plain(calls.wakeup)
    _refill = blocking_read(calls.refill, "next")

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

    # Where in the partitions

    position = blocking(calls.position)
    seek = guarded(calls.seek)
    seek_to_beginning = guarded(calls.seek_to_beginning)
    seek_to_end = guarded(calls.seek_to_end)
    seek_to_time = guarded(calls.seek_to_time)
    pause = guarded(calls.pause)
    resume = guarded(calls.resume)
    paused = guarded(calls.paused)

    # Offsets

    commit = blocking(calls.commit)
    commit_async = guarded(calls.commit_async)
    committed = blocking(calls.committed)
    offsets_for_times = blocking(calls.offsets_for_times)
    beginning_offsets = blocking(calls.beginning_offsets)
    end_offsets = blocking(calls.end_offsets)
    lag = guarded(calls.lag)

    # The cluster

    partitions_for = blocking(calls.partitions_for)
    list_topics = blocking(calls.list_topics)
    client_instance_id = blocking(calls.client_instance_id)

    # The end

    close = faces.blocking(calls.close)

    def __enter__(self) -> Consumer[K, V]:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        # After an error the records of the last step may not have been dealt with.
        faces.finished(self._close(CLOSE_TIMEOUT_S, None, is_step_done=kind is None))

    def __repr__(self) -> str:
        state = "closed" if self._is_closed else f"{len(self._core.subscription.partitions)} partitions"
        return f"Consumer({self._options.settings!r}, {state})"

    # The steps of `ConsumerFace`

    def _do(self, call: Callable[[], T]) -> T:
        async def run() -> T:
            return call()

        return self._thread.call(run)

    async def _run(self, call: Callable[[], Awaitable[T]]) -> T:
        return self._thread.call(call)

    def _post(self, call: Callable[[], Any]) -> None:
        self._thread.post(call)

    async def _give_turn(self) -> None:
        """The loop has a thread of its own."""

    async def _await_answer(self, found: Any) -> None:
        """Listeners and callbacks of this face are plain functions."""

    def _end(self, timeout_s: float) -> None:
        self._finalizer.detach()
        self._do(self._core.finish_close)
        self._thread.stop(timeout_s)

    @property
    def _measured(self) -> ClientMetrics:
        return self._core.parts.metrics


def _abandoned(core: ConsumerCore, thread: LoopThread, lineage: Lineage, generation: int) -> None:
    """A consumer was garbage collected, or the process exits, without `close`."""
    if lineage.generation == generation:
        consumer_dropped(logger, core.joined_group)
        thread.stop(0.1)
