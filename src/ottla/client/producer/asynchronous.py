"""`Producer` for asyncio: the same core as the synchronous producer's, on the caller's event loop.

`await producer.send(...)` returns a delivery handle; `await` that for the record's metadata. A `send` suspends only for the
metadata of a topic that it uses for the first time and for buffer.memory, up to max.block.ms.
"""

from __future__ import annotations

import asyncio
import logging
import weakref
from asyncio import _get_running_loop
from builtins import TimeoutError as TimeIsUp
from collections.abc import Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

from ottla.client.faces import check_loop, on_loop, plain, producer_dropped
from ottla.client.link_options import check_security
from ottla.client.metrics import ClientMetrics
from ottla.client.producer import calls
from ottla.client.producer.calls import CLOSE_GRACE_S, ProducerFace
from ottla.client.producer.core import ProducerCore, wait_for_batch
from ottla.client.producer.intake import Intake
from ottla.client.type_parameters import K, V
from ottla.client.world import ClientWorld, real_client_world
from ottla.client_core.producer.batch import ProducerBatch
from ottla.config.client import producer_settings
from ottla.env.threads import Lineage
from ottla.errors import IllegalStateError

if TYPE_CHECKING:
    from ottla.client.keywords import (
        ProducerAny,
        ProducerBytesBytes,
        ProducerBytesNamed,
        ProducerBytesOwn,
        ProducerBytesText,
        ProducerNamedBytes,
        ProducerNamedNamed,
        ProducerNamedOwn,
        ProducerNamedText,
        ProducerOwnBytes,
        ProducerOwnNamed,
        ProducerOwnOwn,
        ProducerOwnText,
        ProducerTextBytes,
        ProducerTextNamed,
        ProducerTextOwn,
        ProducerTextText,
    )
    from ottla.client.type_parameters import K_own, Servers, V_own

T = TypeVar("T")
logger = logging.getLogger("ottla.client.producer")


class TaskWaiting:
    """How a task waits for a batch."""

    def wait(self, batch: ProducerBatch, timeout_s: float | None) -> None:
        raise IllegalStateError("this delivery is not done, and belongs to an asyncio producer: await it instead of result()")

    async def wait_async(self, batch: ProducerBatch) -> None:
        await wait_for_batch(batch)


class Producer(ProducerFace[K, V]):
    """Sends records to Kafka, with asyncio.

        async with aio.Producer("localhost:9092") as producer:
            delivery = await producer.send("events", b"value", key=b"k")
            metadata = await delivery

    `bootstrap_servers` is `host:port`, several of them in one text or in a list. Settings have Kafka's names with
    underscores as keywords (`linger_ms=20`), or with dots in `config`; `ConfigError` names what is wrong with one, and what
    was probably meant. A producer belongs to the event loop that it is first used on. The end of the block sends what is
    left, as `close` does.
    """

    @overload
    def __init__(
        self: Producer[bytes, bytes], bootstrap_servers: Servers | None = None, **settings: Unpack[ProducerBytesBytes]
    ) -> None: ...
    @overload
    def __init__(
        self: Producer[bytes, str], bootstrap_servers: Servers | None = None, **settings: Unpack[ProducerBytesText]
    ) -> None: ...
    @overload
    def __init__(
        self: Producer[bytes, V_own], bootstrap_servers: Servers | None = None, **settings: Unpack[ProducerBytesOwn[V_own]]
    ) -> None: ...
    @overload
    def __init__(
        self: Producer[bytes, Any], bootstrap_servers: Servers | None = None, **settings: Unpack[ProducerBytesNamed]
    ) -> None: ...
    @overload
    def __init__(
        self: Producer[str, bytes], bootstrap_servers: Servers | None = None, **settings: Unpack[ProducerTextBytes]
    ) -> None: ...
    @overload
    def __init__(
        self: Producer[str, str], bootstrap_servers: Servers | None = None, **settings: Unpack[ProducerTextText]
    ) -> None: ...
    @overload
    def __init__(
        self: Producer[str, V_own], bootstrap_servers: Servers | None = None, **settings: Unpack[ProducerTextOwn[V_own]]
    ) -> None: ...
    @overload
    def __init__(
        self: Producer[str, Any], bootstrap_servers: Servers | None = None, **settings: Unpack[ProducerTextNamed]
    ) -> None: ...
    @overload
    def __init__(
        self: Producer[K_own, bytes], bootstrap_servers: Servers | None = None, **settings: Unpack[ProducerOwnBytes[K_own]]
    ) -> None: ...
    @overload
    def __init__(
        self: Producer[K_own, str], bootstrap_servers: Servers | None = None, **settings: Unpack[ProducerOwnText[K_own]]
    ) -> None: ...
    @overload
    def __init__(
        self: Producer[K_own, V_own], bootstrap_servers: Servers | None = None, **settings: Unpack[ProducerOwnOwn[K_own, V_own]]
    ) -> None: ...
    @overload
    def __init__(
        self: Producer[K_own, Any], bootstrap_servers: Servers | None = None, **settings: Unpack[ProducerOwnNamed[K_own]]
    ) -> None: ...
    @overload
    def __init__(
        self: Producer[Any, bytes], bootstrap_servers: Servers | None = None, **settings: Unpack[ProducerNamedBytes]
    ) -> None: ...
    @overload
    def __init__(
        self: Producer[Any, str], bootstrap_servers: Servers | None = None, **settings: Unpack[ProducerNamedText]
    ) -> None: ...
    @overload
    def __init__(
        self: Producer[Any, V_own], bootstrap_servers: Servers | None = None, **settings: Unpack[ProducerNamedOwn[V_own]]
    ) -> None: ...
    @overload
    def __init__(
        self: Producer[Any, Any], bootstrap_servers: Servers | None = None, **settings: Unpack[ProducerNamedNamed]
    ) -> None: ...
    @overload
    def __init__(self, bootstrap_servers: Mapping[str, Any], **settings: Unpack[ProducerAny]) -> None: ...
    @overload
    def __init__(
        self, bootstrap_servers: Servers | None, config: Mapping[str, Any] | None, **settings: Unpack[ProducerAny]
    ) -> None: ...
    @overload
    def __init__(
        self, bootstrap_servers: Servers | None = None, *, config: Mapping[str, Any] | None, **settings: Unpack[ProducerAny]
    ) -> None: ...
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
        check_security(self._settings, self._world)
        self._process_id = self._world.threads.process_id()
        self._clock_ms = self._world.clock.now_ms
        self._core: ProducerCore | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        """The event loop that it belongs to: the one of the first call."""
        self._plain_topics = {}
        self._is_closed = False

    async def start(self) -> None:
        """Start on the running loop. The first call of any method, and `async with`, do that too."""
        self._opened()

    # Sending

    send = plain(calls.send)
    send_many = plain(calls.send_many)

    # Waiting and asking

    flush = plain(calls.flush)
    partitions_for = plain(calls.partitions_for)
    client_instance_id = plain(calls.client_instance_id)
    watch_batches = plain(calls.watch_batches)
    close = plain(calls.close)

    async def __aenter__(self) -> Producer[K, V]:
        self._opened()
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        await self.close(None if error is None else CLOSE_GRACE_S)

    # Transactions

    init_transactions = plain(calls.init_transactions)
    begin_transaction = plain(calls.begin_transaction)
    commit_transaction = plain(calls.commit_transaction)
    abort_transaction = plain(calls.abort_transaction)
    send_offsets_to_transaction = plain(calls.send_offsets_to_transaction)
    prepare_transaction = plain(calls.prepare_transaction)
    complete_transaction = plain(calls.complete_transaction)
    detach_transaction = plain(calls.detach_transaction)
    finish_transaction = plain(calls.finish_transaction)
    keep_transaction = plain(calls.keep_transaction)
    transaction = asynccontextmanager(plain(calls.transaction))

    # The steps of `ProducerFace`

    def _opened(self) -> ProducerCore:
        core = self._core
        if core is None or self._is_closed or _get_running_loop() is not self._loop:
            return self._start()
        return core

    def _start(self) -> ProducerCore:
        if self._is_closed:
            raise IllegalStateError("this producer is closed: make a new one")
        if self._world.threads.process_id() != self._process_id:
            raise IllegalStateError("this producer was made before a fork: make a new one in this process")
        if self._core is None:
            self._core = core = ProducerCore(self._settings, self._world, TaskWaiting())
            self._intake = intake = Intake(core)
            if intake.is_plain() and core.transactions is None:
                self._plain_topics = core.accumulator.topics
            lineage = self._world.threads.lineage()
            self._loop = loop = asyncio.get_running_loop()
            self._finalizer = weakref.finalize(self, _abandoned, core, loop, lineage, lineage.generation)
        else:
            check_loop(self._loop, "producer")
        return self._core

    async def _run(self, call: Callable[[ProducerCore], Awaitable[T]]) -> T:
        return await call(self._start())

    def _wake(self) -> None:
        if self._core is not None:
            self._core.wake()

    def _signal(self) -> asyncio.Event:
        return asyncio.Event()

    async def _wait(self, signal: asyncio.Event, timeout_s: float) -> None:
        with suppress(TimeIsUp):
            async with asyncio.timeout(timeout_s):
                await signal.wait()

    async def _give_turn(self) -> None:
        await asyncio.sleep(0)

    @property
    def _measured(self) -> ClientMetrics:
        core = self._core  # from any thread: only a producer that is not started yet needs the loop
        return (self._start() if core is None else core).metrics

    async def _close(self, timeout_s: float | None) -> None:
        check_loop(self._loop, "producer")
        self._is_closed, self._plain_topics = True, {}
        if self._core is not None:
            self._finalizer.detach()
            await self._core.close(timeout_s)


def _abandoned(core: ProducerCore, loop: asyncio.AbstractEventLoop, lineage: Lineage, generation: int) -> None:
    """A producer was garbage collected, or the process exits, without `close`."""
    if lineage.generation == generation:
        producer_dropped(logger, core.accumulator.record_count)
        on_loop(loop, core.abandon)
