"""`Link`: one outbound connection. Sends requests, limits those in flight, and awaits their answers.

Belongs to one event loop. Requests beyond `in_flight_max` wait in a queue; answers come in order. A request that is not
answered in time ends the link, because no later answer can overtake it. So does any other error. All waiting callers then get
the error. A link that has ended cannot be reopened: its user connects a new one.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ottla import __version__
from ottla.env.net import DEFAULT_OPTIONS, Network, SocketOptions, Stream
from ottla.link.conversation import Answer, Conversation, Greeted
from ottla.link.errors import ConnectFailed, LinkEnded, LinkError, PeerFault, RequestTimedOut
from ottla.link.versions import PeerVersions
from ottla.wire.apis import APIS
from ottla.wire.base import Message, Part

ANSWER_BYTES_MAX = 0x1000_0000
"""The largest answer accepted. It is below the size that the first bytes of a TLS or HTTP server decode to."""


@dataclass(frozen=True, slots=True)
class LinkOptions:
    """Options of a link. The times are Kafka's defaults."""

    client_id: str | None = "ottla"
    connect_timeout_ms: int = 10_000
    """The limit for connection and handshake together."""
    request_timeout_ms: int = 30_000
    in_flight_max: int = 5
    """The most requests that are sent and not answered. Further requests wait in the link."""
    answer_bytes_max: int = ANSWER_BYTES_MAX
    socket: SocketOptions = DEFAULT_OPTIONS


DEFAULT_LINK_OPTIONS = LinkOptions()


class _Waiting:
    """A caller that waits for an answer."""

    __slots__ = ("future", "timer")

    def __init__(self, future: asyncio.Future[Any], timer: asyncio.TimerHandle) -> None:
        self.future = future
        self.timer = timer


class Link:
    """A connection to one node, open for requests once `connect` has returned it."""

    def __init__(self, host: str, port: int, options: LinkOptions) -> None:
        self.host = host
        self.port = port
        self.options = options
        self._loop = asyncio.get_running_loop()
        self._conversation = Conversation(self.address, options.client_id, __version__, options.answer_bytes_max)
        self._stream: Stream | None = None
        self._greeted: asyncio.Future[PeerVersions] = self._loop.create_future()
        self._waiting: dict[int, _Waiting] = {}
        self._unsent: deque[tuple[Sequence[Part], bool]] = deque()
        """Requests that wait to be sent, and whether each gets an answer and so counts as in flight."""
        self._on_wire = 0
        self._failure: LinkError | None = None

    @classmethod
    async def connect(cls, network: Network, host: str, port: int, options: LinkOptions = DEFAULT_LINK_OPTIONS) -> Link:
        """Connect and shake hands. Raises `ConnectFailed` or `PeerFault`."""
        link = cls(host, port, options)
        try:
            async with asyncio.timeout(options.connect_timeout_ms / 1000):
                await link._open(network)
        except TimeoutError:
            doing, advice = "accept a connection", "check host, port and firewalls"
            if link._stream is not None:
                doing, advice = (
                    "send its versions",
                    "it may be overloaded, or no Kafka listener (web servers wait, too): check the port",
                )
            failure = ConnectFailed(
                link.address, f"{link.address} did not {doing} within {options.connect_timeout_ms} ms: {advice}"
            )
            link._end(failure)
            raise failure from None
        except OSError as error:
            raise _connect_failed(link.address, error) from None
        except BaseException:
            link.close()
            raise
        return link

    async def _open(self, network: Network) -> None:
        self._stream = await network.connect(self.host, self.port, self, self.options.socket)
        self._stream.resume()
        self._stream.send(self._conversation.greet())
        await self._greeted

    # Requests

    @property
    def address(self) -> str:
        """host:port, as in error texts."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def versions(self) -> PeerVersions:
        """The versions that the peer serves."""
        versions = self._conversation.versions
        assert versions is not None, "a link is handed out after the handshake"
        return versions

    @property
    def is_over(self) -> bool:
        """Whether the link has ended, for any reason."""
        return self._failure is not None

    async def request(self, message: Message, timeout_ms: int | None = None, version: int | None = None) -> Any:
        """Send `message` and await its answer. The default `version` is the newest that both sides know."""
        return await self.send(message, timeout_ms, version)

    def send(self, message: Message, timeout_ms: int | None = None, version: int | None = None) -> asyncio.Future[Any]:
        """Send `message` and return a future of its answer. Cancelling the future discards the answer.

        The timeout counts from now and includes the time in the link's queue.
        """
        if self._failure is not None:
            raise self._failure
        correlation_id, parts = self._conversation.ask(message, version)
        limit_ms = self.options.request_timeout_ms if timeout_ms is None else timeout_ms
        future: asyncio.Future[Any] = self._loop.create_future()
        timer = self._loop.call_later(limit_ms / 1000, self._time_is_up, correlation_id, message.KEY, limit_ms)
        self._waiting[correlation_id] = _Waiting(future, timer)
        self._unsent.append((parts, True))
        self._send_unsent()
        return future

    def send_unanswered(self, message: Message, version: int | None = None) -> None:
        """Send a request that the peer does not answer: Produce with acks=0."""
        if self._failure is not None:
            raise self._failure
        self._unsent.append((self._conversation.ask_unanswered(message, version), False))
        self._send_unsent()

    def close(self) -> None:
        """End the link now. Callers that still wait get `LinkEnded`."""
        self._end(LinkEnded(self.address, f"the connection to {self.address} was closed on this side"))

    # Events of the stream (env.StreamOwner)

    def buffer(self) -> memoryview:
        return self._conversation.buffer()

    def received(self, count: int) -> None:
        try:
            events = self._conversation.received(count)
        except PeerFault as fault:
            self._end(fault)
            return
        for event in events:
            if isinstance(event, Answer):
                self._answered(event)
            elif isinstance(event, Greeted):
                if not self._greeted.done():
                    self._greeted.set_result(event.versions)
            elif self._stream is not None:
                self._stream.send(event.parts)

    def drained(self) -> None:
        """Nothing to do: `in_flight_max` limits what the stream queues."""

    def ended(self, error: OSError | None) -> None:
        text = self._conversation.end_text()
        if error is not None:
            text = f"the connection to {self.address} failed: {error.strerror or error}"
        self._end(LinkEnded(self.address, text) if self._greeted.done() else ConnectFailed(self.address, text))

    # Internals

    def _send_unsent(self) -> None:
        assert self._stream is not None
        while self._unsent:
            parts, is_answered = self._unsent[0]
            if is_answered:
                if self._on_wire >= self.options.in_flight_max:
                    return
                self._on_wire += 1
            self._unsent.popleft()
            self._stream.send(parts)

    def _answered(self, answer: Answer) -> None:
        self._on_wire -= 1
        if self._unsent:
            self._send_unsent()
        waiting = self._waiting.pop(answer.correlation_id)
        waiting.timer.cancel()
        if not waiting.future.done():
            waiting.future.set_result(answer.message)

    def _time_is_up(self, correlation_id: int, api_key: int, limit_ms: int) -> None:
        late = self._waiting.pop(correlation_id)
        text = (
            f"{self.address} did not answer {APIS[api_key].name} within {limit_ms} ms: it may be overloaded or unreachable. "
            "Try again, or allow more time (request.timeout.ms)"
        )
        _fail(late.future, RequestTimedOut(self.address, text))
        self._end(LinkEnded(self.address, f"the connection to {self.address} was given up: a request was not answered in time"))

    def _end(self, failure: LinkError) -> None:
        if self._failure is not None:
            return
        self._failure = failure
        self._unsent.clear()
        if self._stream is not None:
            self._stream.close()
        _fail(self._greeted, failure)
        waiting, self._waiting = self._waiting, {}
        for each in waiting.values():
            each.timer.cancel()
            _fail(each.future, failure)


def _fail(future: asyncio.Future[Any], failure: LinkError) -> None:
    if not future.done():
        future.set_exception(failure)
        future.exception()  # marks it as retrieved: the loop must not log it if the caller has gone


def _connect_failed(address: str, error: OSError) -> ConnectFailed:
    if isinstance(error, ConnectionRefusedError):
        return ConnectFailed(address, f"nothing listens at {address}: check the address, and that the node is up")
    # A host that cannot be resolved raises socket.gaierror, which only env/real may import: compare the name instead.
    if type(error).__name__ == "gaierror":
        text = f"the host of {address} is not known: {error.strerror or error}. Check the name"
        return ConnectFailed(address, text, is_retriable=False)
    return ConnectFailed(address, f"{address} cannot be reached: {error.strerror or error}")
