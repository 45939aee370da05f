"""One request on its way through the broker: what a handler is handed, and what it may answer.

A handler is a plain function `handle(context, request)`. It returns the response; or a `Pending`, which is completed later on
the same loop; or None where the protocol wants no reply (acks=0). It may raise `KafkaError`: its module's `refuse` then turns
the error into a response of its API. Each connection keeps its replies in the order of its requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any

from ottla.wire.base import Message

if TYPE_CHECKING:
    from ottla.broker.partitions.kernel import PartitionTail
    from ottla.broker.services import Services
    from ottla.records.kernel_batch import CheckedBatch


class CloseConnection(Exception):
    """The peer broke the protocol, or asked without wanting a reply and failed: end its connection. The text says why."""


class ConnectionInfo:
    """What is known of the other side; the same for all requests of a connection."""

    __slots__ = ("client_software_name", "client_software_version", "id", "is_controller_listener", "listener", "peer")

    def __init__(self, id: int, listener: str, peer: tuple[str, int], is_controller_listener: bool = False) -> None:
        self.id = id
        self.listener = listener
        self.peer = peer
        self.is_controller_listener = is_controller_listener
        self.client_software_name = ""
        self.client_software_version = ""


class RequestContext:
    """One request: its header, where it came from, and the node's services."""

    __slots__ = ("api_key", "checked", "client_id", "connection", "correlation_id", "received_s", "services", "version")

    def __init__(
        self,
        services: Services,
        connection: ConnectionInfo,
        api_key: int,
        version: int,
        correlation_id: int,
        client_id: str | None,
        received_s: float,
    ) -> None:
        self.services = services
        self.connection = connection
        self.api_key = api_key
        self.version = version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.received_s = received_s
        self.checked: Mapping[PartitionTail, CheckedBatch] | None = None
        """See `Declined`."""


class Declined:
    """The fast path of an API has left a request to its handler, with nothing changed.

    `checked` is what it found out about the batches of a produce request, by partition: the handler does not repeat it.
    """

    __slots__ = ("checked",)

    def __init__(self, checked: Mapping[PartitionTail, CheckedBatch]) -> None:
        self.checked = checked


class Pending:
    """A reply that is not there yet. Whoever parks it completes it once; dispatch says where it goes then.

    `abandon` is called when the connection has gone: a subclass drops what it registered, and nothing is replied.
    """

    __slots__ = ("_deliver", "_failure", "_is_done", "_response")

    holds_back = False
    """Whether the request behind it must wait until it is done, whatever the two are."""

    def __init__(self) -> None:
        self._deliver: Callable[[Message | None, BaseException | None], None] | None = None
        self._response: Message | None = None
        self._failure: BaseException | None = None
        self._is_done = False

    @property
    def is_done(self) -> bool:
        return self._is_done

    @property
    def outcome(self) -> tuple[Message | None, BaseException | None]:
        """The response, or why there is none, of one that is done."""
        return self._response, self._failure

    def complete(self, response: Message | None) -> None:
        """Answer with `response` (None: no reply is wanted). A second completion is ignored."""
        self._finish(response, None)

    def fail(self, failure: BaseException) -> None:
        """Answer as if the handler had raised `failure`."""
        self._finish(None, failure)

    def _finish(self, response: Message | None, failure: BaseException | None) -> None:
        if self._is_done:
            return
        self._is_done, self._response, self._failure = True, response, failure
        deliver, self._deliver = self._deliver, None
        if deliver is not None:
            deliver(response, failure)

    def deliver_to(self, deliver: Callable[[Message | None, BaseException | None], None]) -> None:
        """Called by dispatch, once: where the answer goes, at once if it is there already.

        It is kept no longer than until then. It leads to who keeps this: a circle, that with every request and its frame would
        wait for the garbage collector.
        """
        if self._is_done:
            deliver(self._response, self._failure)
        else:
            self._deliver = deliver

    def abandon(self) -> None:
        """Nobody waits any more. The request is let go at once: who parks this may keep it for long."""
        self._is_done = True
        self._deliver = None


class PendingTask(Pending):
    """A reply that a coroutine makes: for requests that wait for the controller or the disk. Not for the hot path."""

    __slots__ = ("_task",)

    def __init__(self, work: Coroutine[Any, Any, Message | None]) -> None:
        super().__init__()
        self._task = asyncio.get_running_loop().create_task(work)
        self._task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[Message | None]) -> None:
        if task.cancelled():
            self.fail(asyncio.CancelledError())
        elif (failure := task.exception()) is not None:
            self.fail(failure)
        else:
            self.complete(task.result())


Handled = Message | Pending | None
"""What a handler returns."""


def future_of(handled: Handled) -> asyncio.Future[Any]:
    """What a handler returned, as a future of the running loop. It fails as the handler would have; it may be cancelled."""
    future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def deliver(response: Message | None, failure: BaseException | None) -> None:
        if future.done():
            return  # cancelled: the waiting task has ended
        if failure is not None:
            future.set_exception(failure)
        else:
            future.set_result(response)

    if isinstance(handled, Pending):
        handled.deliver_to(deliver)
    else:
        future.set_result(handled)
    return future
