"""`Producer`: the synchronous producer. Threads may share one.

`send` hashes, encodes and appends in the calling thread; the event loop in a thread of its own sends. A calling thread blocks
only for the metadata of a topic that it uses for the first time and for buffer.memory, up to max.block.ms.

What runs on the event loop, and asyncio itself, is imported with the first producer that is made: importing the name costs
little.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Awaitable, Callable, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

from ottla.client.faces import blocking, blocking_steps, finished, plain, producer_dropped
from ottla.client.producer import calls
from ottla.client.producer.calls import CLOSE_GRACE_S, OnDelivery, ProducerFace
from ottla.client.producer.intake import Headers, Intake
from ottla.client.type_parameters import K, V
from ottla.client_core.producer.batch import ProducerBatch
from ottla.config.client import producer_settings
from ottla.env.threads import Lineage, LoopThread, Signal, Threads
from ottla.errors import IllegalStateError, TimeoutError
from ottla.errors.texts import counted
from ottla.records.kernels import Delivery

if TYPE_CHECKING:  # what runs on the event loop is loaded with the first producer
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
    from ottla.client.metrics import ClientMetrics
    from ottla.client.producer.core import ProducerCore
    from ottla.client.type_parameters import K_own, Servers, V_own
    from ottla.client.world import ClientWorld

    class PlainSend:
        """The kernel's class without its `send`, which knows no types of keys and values."""

        _clock_ns: Callable[[], int]
        _generation: int
        _lineage: Lineage
else:
    from ottla.records.kernels import PlainSend

T = TypeVar("T")
logger = logging.getLogger("ottla.client.producer")


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


class Producer(ProducerFace[K, V], PlainSend):
    """Sends records to Kafka.

        with Producer("localhost:9092", value_serializer="json") as producer:
            delivery = producer.send("events", {"a": 1}, key=b"k")
            delivery.result(timeout=10)      # RecordMetadata(topic, partition, offset, timestamp)

    `bootstrap_servers` is `host:port`, several of them in one text or in a list. Settings have Kafka's names with
    underscores as keywords (`linger_ms=20`), or with dots in `config`; `ConfigError` names what is wrong with one, and what
    was probably meant. Threads may share a producer. The end of the `with` block sends what is left, as `close` does.
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
        from ottla.client.link_options import check_security
        from ottla.client.producer.core import ProducerCore
        from ottla.client.world import real_client_world

        if partitioner is not None:
            settings["partitioner_class"] = partitioner
        made = producer_settings(bootstrap_servers, config, settings)
        world = real_client_world() if world is None else world
        check_security(made, world)
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
            self._thread.stop(CLOSE_GRACE_S)
            raise
        is_plain = self._intake.is_plain() and core.transactions is None
        self._plain_topics = core.accumulator.topics if is_plain else {}
        self._is_closed = False
        self._finalizer = weakref.finalize(self, _abandoned, core, self._thread, self._lineage, self._generation)

    # Sending

    if TYPE_CHECKING:  # it is `PlainSend.send`, which knows no types of keys and values
        send = blocking(calls.send)

    def _send_other(
        self,
        topic: str,
        value: Any,
        key: Any,
        partition: int | None,
        timestamp: int | None,
        headers: Headers,
        on_delivery: OnDelivery | None,
    ) -> Delivery:
        """Send a record that `PlainSend` has left: it has headers, a partition or a serializer, or needs a new batch."""
        if self._is_closed or self._lineage.generation != self._generation:
            raise self._unusable()
        if self._intake.interceptors is not None:
            return finished(self._send_intercepted(topic, value, key, partition, timestamp, headers, on_delivery))
        found = self._append(self._core, topic, value, key, partition, timestamp, headers, on_delivery)
        if isinstance(found, Delivery):
            return found
        number, record = found
        return finished(self._send_slowly(topic, number, record, on_delivery, (key, value)))

    send_many = blocking(calls.send_many)

    # Waiting and asking

    flush = blocking(calls.flush)
    partitions_for = blocking(calls.partitions_for)
    client_instance_id = blocking(calls.client_instance_id)
    watch_batches = plain(calls.watch_batches)
    close = blocking(calls.close)

    def __enter__(self) -> Producer[K, V]:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.close(None if error is None else CLOSE_GRACE_S)

    # Transactions

    init_transactions = blocking(calls.init_transactions)
    begin_transaction = blocking(calls.begin_transaction)
    commit_transaction = blocking(calls.commit_transaction)
    abort_transaction = blocking(calls.abort_transaction)
    send_offsets_to_transaction = blocking(calls.send_offsets_to_transaction)
    prepare_transaction = blocking(calls.prepare_transaction)
    complete_transaction = blocking(calls.complete_transaction)
    detach_transaction = blocking(calls.detach_transaction)
    finish_transaction = blocking(calls.finish_transaction)
    keep_transaction = blocking(calls.keep_transaction)
    transaction = contextmanager(blocking_steps(calls.transaction))

    # The steps of `ProducerFace`

    def _opened(self) -> ProducerCore:
        if self._is_closed or self._lineage.generation != self._generation:
            raise self._unusable()
        return self._core

    async def _run(self, call: Callable[[ProducerCore], Awaitable[T]]) -> T:
        from asyncio import CancelledError

        core = self._opened()
        try:
            return self._thread.call(lambda: call(core))
        except (CancelledError, RuntimeError):
            if self._is_closed:  # another thread has, and its event loop has ended
                raise self._unusable() from None
            raise

    def _wake(self) -> None:
        try:
            self._thread.post(self._core.wake)
        except RuntimeError:
            if not self._is_closed:  # if it is, the loop has ended and nothing is left to do
                raise

    def _signal(self) -> Signal:
        return self._world.threads.signal()

    async def _wait(self, signal: Signal, timeout_s: float) -> None:
        signal.wait(timeout_s)

    async def _give_turn(self) -> None:
        """The loop has a thread of its own."""

    @property
    def _is_in_callback(self) -> bool:
        return self._thread.is_current

    @property
    def _measured(self) -> ClientMetrics:
        return self._core.metrics

    async def _close(self, timeout_s: float | None) -> None:
        if self._lineage.generation != self._generation:
            self._is_closed, self._plain_topics = True, {}
            return
        if self._thread.is_current:
            raise IllegalStateError("a delivery callback must not close its producer: it would wait for itself")
        self._is_closed, self._plain_topics = True, {}
        try:
            self._thread.call(lambda: self._core.close(timeout_s))
        finally:
            self._finalizer.detach()
            self._thread.stop(CLOSE_GRACE_S)

    def _unusable(self) -> IllegalStateError:
        if self._lineage.generation == self._generation:
            return IllegalStateError("this producer is closed: make a new one")
        left = sum(batch.count for batch in self._core.accumulator.incomplete)
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
