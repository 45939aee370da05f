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
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

from ottla.client.consumer import calls
from ottla.client.consumer.arguments import consumer_options
from ottla.client.consumer.calls import CLOSE_TIMEOUT_S, ConsumerFace
from ottla.client.consumer.core import ConsumerCore
from ottla.client.consumer.guard import TaskGuard, awaiting, awaiting_read
from ottla.client.consumer.reader import RecordReader
from ottla.client.consumer.record import ConsumerRecord
from ottla.client.faces import check_loop, consumer_dropped, on_loop, plain
from ottla.client.link_options import check_security
from ottla.client.metrics import ClientMetrics
from ottla.client.type_parameters import K, V
from ottla.client.world import ClientWorld, real_client_world
from ottla.env.threads import Lineage
from ottla.errors import IllegalStateError

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
    """Reads records from a Kafka cluster with asyncio, as a member of a group or by itself.

        async with aio.Consumer("localhost:9092", group_id="readers", auto_offset_reset="earliest") as consumer:
            consumer.subscribe(["events"])
            async for record in consumer:    # without end; poll() returns a list
                print(record.key, record.value)

    `bootstrap_servers` is `host:port`, several of them in one text or in a list. Settings have Kafka's names with
    underscores as keywords (`auto_offset_reset="earliest"`), or with dots in `config`; `ConfigError` names what is wrong
    with one, and what was probably meant. A consumer belongs to one task at a time; another one gets `ConcurrentUseError`.
    The end of the block commits what was dealt with, if automatic commits are on, and leaves the group.
    """

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
        self._prepare(consumer_options(bootstrap_servers, config, settings))
        self._world = world or real_client_world()
        check_security(self._options.settings, self._world)
        self._clock = self._world.clock
        self._guard = TaskGuard()
        self._made: ConsumerCore | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        """The event loop that it belongs to: the one of the first call."""
        self._is_closed = False

    # Which partitions

    assign = plain(calls.assign)
    subscribe = plain(calls.subscribe)
    unsubscribe = awaiting(calls.unsubscribe)
    assignment = plain(calls.assignment)
    subscription = plain(calls.subscription)
    group_metadata = plain(calls.group_metadata)
    enforce_rebalance = plain(calls.enforce_rebalance)

    # Reading

    poll = awaiting_read(calls.poll)
    batches = awaiting_read(calls.batches)
    consume_arrow = awaiting_read(calls.consume_arrow)
    consume_columns = awaiting_read(calls.consume_columns)
    read_ranges = plain(calls.read_ranges)
    wakeup = plain(calls.wakeup)
    _refill = awaiting_read(calls.refill, "iteration")

    async def __aiter__(self) -> AsyncIterator[ConsumerRecord[K, V]]:
        """Every record, without end. The record of the step before counts as dealt with when the next one is asked for."""
        reader = self._reader
        while True:
            pending = reader.pending
            if reader.step >= len(pending):
                await self._refill()
                continue
            record = pending[reader.step]
            reader.step += 1
            yield record

    # Where in the partitions

    position = awaiting(calls.position)
    seek = plain(calls.seek)
    seek_to_beginning = plain(calls.seek_to_beginning)
    seek_to_end = plain(calls.seek_to_end)
    seek_to_time = plain(calls.seek_to_time)
    pause = plain(calls.pause)
    resume = plain(calls.resume)
    paused = plain(calls.paused)

    # Offsets

    commit = awaiting(calls.commit)
    commit_async = plain(calls.commit_async)
    committed = awaiting(calls.committed)
    offsets_for_times = awaiting(calls.offsets_for_times)
    beginning_offsets = awaiting(calls.beginning_offsets)
    end_offsets = awaiting(calls.end_offsets)
    lag = plain(calls.lag)

    # The cluster

    partitions_for = awaiting(calls.partitions_for)
    list_topics = awaiting(calls.list_topics)
    client_instance_id = awaiting(calls.client_instance_id)

    # The end

    close = plain(calls.close)

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

    # The steps of `ConsumerFace`

    @property
    def _core(self) -> ConsumerCore:
        if self._is_closed:
            raise IllegalStateError("this consumer is closed: make another one")
        if self._made is None:
            try:
                self._made = ConsumerCore(
                    self._world, self._options.settings, None, self._options.deserializers, self._options.interceptors
                )
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

    @property
    def _reader(self) -> RecordReader:
        return (self._made or self._core).reader

    def _do(self, call: Callable[[], T]) -> T:
        return call()

    async def _run(self, call: Callable[[], Awaitable[T]]) -> T:
        return await call()

    def _post(self, call: Callable[[], Any]) -> None:
        call()

    async def _give_turn(self) -> None:
        await asyncio.sleep(0)

    async def _await_answer(self, found: Any) -> None:
        if asyncio.iscoroutine(found):
            await found

    def _begin_close(self) -> bool:
        if self._made is None:
            self._is_closed = True
        if not self._is_closed:
            check_loop(self._loop, "consumer")
        return not self._is_closed

    def _end(self, timeout_s: float) -> None:
        self._finalizer.detach()
        if self._made is not None:
            self._made.finish_close()

    @property
    def _measured(self) -> ClientMetrics:
        core = self._made  # from any thread: only a consumer that is not started yet needs the loop
        return (self._core if core is None else core).parts.metrics


def _abandoned(core: ConsumerCore, loop: asyncio.AbstractEventLoop, lineage: Lineage, generation: int) -> None:
    """A consumer was garbage collected, or the process exits, without `close`."""
    if lineage.generation == generation:
        consumer_dropped(logger, core.joined_group)
        on_loop(loop, core.finish_close)
