"""What a handler receives with a request (`RequestContext`) and what it may return (a response or a `Pending`).

A handler is a plain function `handle(context, request)`. It returns the response; or a `Pending`, which is completed later on
the same loop; or None if the protocol wants no reply (acks=0). It may raise `KafkaError`: its module's `refuse` then turns
the error into a response of its API. Each connection keeps its replies in the order of its requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Final

from ottla.config.broker_security import UNSECURED, ListenerSecurity
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import ANONYMOUS, Principal
from ottla.metadata.acls import CLUSTER_NAME, ResourceType
from ottla.wire.base import Message, Part

if TYPE_CHECKING:
    from ottla.broker.partitions.kernel import PartitionTail
    from ottla.broker.requests.authorization import DeniedParts, Grants
    from ottla.broker.requests.login import Login
    from ottla.broker.services import Services
    from ottla.records.kernel_batch import CheckedBatch


NOT_COUNTED: Final = -1
"""What the request has used does not count for its client's quotas yet."""


class CloseConnection(Exception):
    """The peer's connection has to be closed: it broke the protocol, or a request without a reply failed. The text says why."""

    def __init__(self, why: str, last_reply: list[Part] | None = None) -> None:
        super().__init__(why)
        self.last_reply = last_reply
        """Sent before the connection ends."""


class ConnectionInfo:
    """The peer, its principal and the listener of a connection; shared by all its requests."""

    __slots__ = (
        "_principal",
        "client_software_name",
        "client_software_version",
        "end_if_gone",
        "grants",
        "id",
        "is_controller_listener",
        "is_follower",
        "listener",
        "login",
        "muted_until_s",
        "peer",
        "security",
    )

    def __init__(
        self,
        id: int,
        listener: str,
        peer: tuple[str, int],
        is_controller_listener: bool = False,
        principal: Principal = ANONYMOUS,
        security: ListenerSecurity = UNSECURED,
    ) -> None:
        self.id = id
        self.listener = listener
        self.peer = peer
        self.is_controller_listener = is_controller_listener
        self.is_follower = False
        """Whether the peer says that it is a broker's fetcher. No more than a hint: it gets the memory kept for followers."""
        self._principal = principal
        self.security = security
        """Of the listener. A connection keeps what its listener had when it was accepted."""
        self.client_software_name = ""
        self.client_software_version = ""
        self.grants: Grants | None = None
        """See `Authorization.grants_of`: None until they are asked for."""
        self.login: Login | None = None
        """None: the listener has no SASL, or the connection is logged in for good."""
        self.end_if_gone: Callable[[], None] | None = None
        """Ends the connection if its peer has gone, which is not noticed while a request is at work: nothing is read then."""
        self.muted_until_s = 0.0
        """Until when nothing is read from it: its client is above its quota (`throttle.py`)."""

    @property
    def is_forwarded(self) -> bool:
        """Whether it stands for a client whose request a broker has passed on: such a peer has no port."""
        return self.is_controller_listener and not self.peer[1]

    @property
    def principal(self) -> Principal:
        return self._principal

    @principal.setter
    def principal(self, principal: Principal) -> None:
        """Who the peer is, now that it has logged in."""
        self._principal, self.grants = principal, None


class RequestContext:
    """The header of one request, its connection and the node's services."""

    __slots__ = (
        "api_key",
        "checked",
        "client_id",
        "connection",
        "correlation_id",
        "denied",
        "grants",
        "held_s",
        "received_s",
        "services",
        "throttle_ms",
        "version",
    )

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
        self.denied: DeniedParts | None = None
        """The topics that were taken out of the request because access to them is denied."""
        self.held_s = 0.0
        """How long the request had held the loop when it was parked, and since."""
        self.throttle_ms = NOT_COUNTED
        """For how long the connection is muted when the reply is sent."""
        self.grants: Grants | None = None
        """What its client may do, once the request is authorized; None if everything is allowed. Handlers ask `allows`."""

    def allows(self, operation: int, resource_type: int, name: str, *, count: int = 1, is_silent: bool = False) -> bool:
        """Whether the client may do `operation` to the resource, which the request names `count` times.

        `is_silent`: a denial is not told to the client, so it is no line of the audit log either.
        """
        grants = self.grants
        return grants is None or grants.allows(operation, resource_type, name, self.api_key, count=count, is_silent=is_silent)

    def allows_on_cluster(self, operation: int) -> bool:
        """Whether the client may do `operation` to the cluster, where that is one way of several; never told to the client."""
        return self.allows(operation, ResourceType.CLUSTER, CLUSTER_NAME, is_silent=True)

    def require(self, operation: int, resource_type: int, name: str = CLUSTER_NAME) -> None:
        """Raise the refusal unless `allows`."""
        grants = self.grants
        if grants is not None and not grants.allows(operation, resource_type, name, self.api_key):
            raise grants.refusal(operation, resource_type, name)


class Declined:
    """The fast path of an API has left a request to its handler, with nothing changed.

    `checked` is what it found out about the batches of a produce request, by partition: the handler does not repeat it. A
    request with many elements is better parsed in a worker thread.
    """

    __slots__ = ("checked", "has_many_elements")

    def __init__(self, checked: Mapping[PartitionTail, CheckedBatch], has_many_elements: bool = False) -> None:
        self.checked = checked
        self.has_many_elements = has_many_elements


class Pending:
    """A response that is completed later, once, by the code that parked it. The pipeline sets where it is delivered.

    `abandon` is called when the connection has ended: a subclass drops what it registered, and no reply is sent.
    """

    __slots__ = ("_deliver", "_failure", "_is_done", "_response")

    ends_connection = False
    """Whether the connection ends with this answer."""
    encoded: list[Part] | None = None
    """The frame of the reply, if it was made from the frame of the request."""
    may_be_large = False
    """Whether the response may have many elements. A large one is encoded in a worker thread."""

    def __init__(self) -> None:
        self._deliver: Callable[[Message | None, BaseException | None], None] | None = None
        self._response: Message | None = None
        self._failure: BaseException | None = None
        self._is_done = False

    @property
    def is_done(self) -> bool:
        return self._is_done

    @property
    def holds_back(self) -> bool:
        """Whether the request behind it has to wait until it is done, even if both are Produce requests."""
        return False

    @property
    def outcome(self) -> tuple[Message | None, BaseException | None]:
        """The response or the failure; valid once `is_done`."""
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
        """Called once, by the pipeline: call `deliver` with the outcome, at once if there is one already.

        `deliver` is dropped after the call. It refers to the object that keeps this one: the cycle would hold every request and
        its frame until the garbage collector runs.
        """
        if self._is_done:
            deliver(self._response, self._failure)
        else:
            self._deliver = deliver

    def give_back(self) -> None:
        """The request is answered, and its reply encoded: give back what was reserved for it."""

    def answer_now(self) -> None:
        """The node is stopping: a request that waits only for more to answer with is answered with what there is."""

    def give_up(self) -> None:
        """Others need the memory of the request, which has waited for long: answer it now, if that can be done."""

    def abandon(self) -> None:
        """The connection has ended. Drops the request at once, because the code that parked this may keep it for long."""
        self._is_done = True
        self._deliver = None


class PendingTask(Pending):
    """A response that a coroutine returns: for requests that wait for the controller or the disk. Too slow for the hot path."""

    __slots__ = ("may_give_up", "task")

    may_be_large = True

    def __init__(self, work: Coroutine[Any, Any, Message | None], may_give_up: bool = False) -> None:
        """`may_give_up`: it waits for others, perhaps for as long as its client says, and may be cancelled meanwhile."""
        super().__init__()
        self.may_give_up = may_give_up
        self.task = asyncio.get_running_loop().create_task(work)
        self.task.add_done_callback(self._ended)

    def give_up(self) -> None:
        if self.may_give_up:
            self.fail(
                KafkaError(
                    ErrorCode.REQUEST_TIMED_OUT,
                    "too many large requests wait on this node. It may still take effect: look before asking again",
                )
            )
            self.task.cancel()

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
