"""The contract between the clients' machines and their driver.

A machine never sends anything. Its `step` returns requests; the driver (`client/runtime.py`) sends each on the connection that
it names and hands the outcome back to the machine that made it, exactly once: `answered` or `failed`. After every outcome, at
every deadline and whenever its owner has changed something and calls `wake`, the driver calls `step` again.

Times are milliseconds of a monotonic clock, as `now_ms`. Everything runs on the driver's event loop; what other threads may
touch says so itself.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any, Final, Protocol

from ottla.errors import KafkaError
from ottla.wire.base import Message
from ottla.wire.messages.api_versions import ApiVersionsRequest

ANY_NODE: Final = -1
"""In place of a node id: any broker will do. The driver takes the one with the fewest requests in flight."""

CONTROLLER: Final = -2
"""In place of a node id: the active controller, as far as the metadata knows it."""


class Channel(IntEnum):
    """Which connection to a node carries a request. A node answers in order, so requests that it parks get their own."""

    DATA = 0
    FETCH = 1
    """Fetch requests: a broker parks them for up to fetch.max.wait.ms."""
    GROUP = 2
    """Requests to a group's coordinator: JoinGroup and SyncGroup are parked while a group rebalances."""
    HEARTBEAT = 3
    """Heartbeats of a classic member: they must not wait behind its own parked JoinGroup."""


Adapt = Callable[[int], Message]
"""Makes a request's message for the version that both sides know. Most messages need none: encoding leaves out what a version
lacks, where the schema allows it."""


class Request:
    """One request that a machine wants sent. `context` belongs to the machine; the driver does not look at it."""

    __slots__ = ("adapt", "channel", "context", "is_answered", "message", "node", "timeout_ms", "version_max")

    def __init__(
        self,
        message: Message,
        node: int = ANY_NODE,
        *,
        channel: Channel = Channel.DATA,
        timeout_ms: int | None = None,
        context: Any = None,
        is_answered: bool = True,
        version_max: int | None = None,
        adapt: Adapt | None = None,
    ) -> None:
        self.message = message
        self.node = node
        self.channel = channel
        self.timeout_ms = timeout_ms
        """None: the client's request.timeout.ms."""
        self.context = context
        self.is_answered = is_answered
        """False: the node sends no response (Produce with acks=0). `answered` is then called with None once it is sent."""
        self.version_max = version_max
        """The newest version to use; None: the newest that both sides know. Produce before transaction version 2 needs it."""
        self.adapt = adapt
        """If set, it makes the message to send; `message` then only tells the API."""

    def __repr__(self) -> str:
        return f"Request({type(self.message).__name__} to {self.node}, {self.channel.name})"


class Connect(Request):
    """Opens the connection to a node and sends nothing. `answered` is called with None when it is open.

    For a machine that decides what to send only when the connection is there: until then a leader may move.
    """

    __slots__ = ()

    def __init__(self, node: int, channel: Channel = Channel.DATA) -> None:
        super().__init__(ApiVersionsRequest(), node, channel=channel)  # every connection begins with this exchange


class Rebootstrap(Request):
    """Closes every connection and sends nothing. `answered` is called with None afterwards.

    The next requests to `ANY_NODE` connect to the bootstrap servers, whose host names are looked up again.
    """

    __slots__ = ("reason",)

    def __init__(self, reason: str) -> None:
        super().__init__(ApiVersionsRequest())
        self.reason = reason
        """Why, for the log."""


class Connections(Protocol):
    """The connections to nodes, as far as machines depend on them."""

    def is_open(self, node_id: int, channel: Channel = Channel.DATA) -> bool:
        """Whether a request to a node leaves at once."""
        ...


class Machine(Protocol):
    """What the driver runs."""

    def step(self, now_ms: int) -> list[Request]:
        """Do what is due, and return the requests to send now."""
        ...

    def answered(self, request: Request, response: Any, version: int, now_ms: int) -> None:
        """The response to `request`, which was sent in `version`. Error codes inside it are the machine's to read."""
        ...

    def failed(self, request: Request, error: KafkaError, now_ms: int) -> None:
        """No response came or will come. The node may have executed the request, unless `error.is_unsent`.

        A lost connection and a timeout are retriable; failed authentication and an unsupported version are not.
        """
        ...

    def next_deadline_ms(self) -> int | None:
        """When `step` must be called at the latest; None: only after the next event."""
        ...
