"""`Link`: one outbound connection. Sends requests, limits those in flight, and awaits their answers.

Belongs to one event loop. Requests beyond `in_flight_max` wait in a queue; answers come in order. A request that is not
answered in time ends the link, because no later answer can overtake it. So does any other error. All waiting callers then get
the error. A link that has ended cannot be reopened: its user connects a new one.

Requests wait in the queue also while the node throttles this client (`throttled_until_s`), and during a reauthentication: when
the node limits the session (KIP-368), the link logs in again before its end, on the same connection, as soon as nothing is in
flight.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from ottla import __version__
from ottla.env.net import DEFAULT_OPTIONS, Network, SocketOptions, Stream
from ottla.env.tls import TlsFailed
from ottla.env.world import Randomness
from ottla.link.conversation import Answer, Conversation, Expected, Greeted
from ottla.link.counters import LinkCounters
from ottla.link.errors import ConnectFailed, EncryptionFailed, LinkEnded, LinkError, PeerFault, RequestTimedOut
from ottla.link.security import NO_SECURITY, LinkSecurity
from ottla.link.throttle import client_wait_ms
from ottla.link.versions import PeerVersions
from ottla.wire.apis import APIS
from ottla.wire.base import Message, Part

ANSWER_BYTES_MAX = 0x1000_0000
"""The largest answer accepted. It is below the size that the first bytes of a TLS or HTTP server decode to."""

REAUTHENTICATE_PERCENT: Final = (85, 95)
"""When to log in again: at a random point between these shares of the session's lifetime, as Kafka's clients do."""

REAUTHENTICATE_S_MIN: Final = 1.1
"""Kafka refuses a second login within one second."""


@dataclass(frozen=True, slots=True)
class LinkOptions:
    """Options of a link. The times are Kafka's defaults."""

    client_id: str | None = "ottla"
    connect_timeout_ms: int = 10_000
    """The limit for connection, TLS, handshake and login together."""
    request_timeout_ms: int = 30_000
    in_flight_max: int = 5
    """The most requests that are sent and not answered. Further requests wait in the link."""
    answer_bytes_max: int = ANSWER_BYTES_MAX
    socket: SocketOptions = DEFAULT_OPTIONS
    security: LinkSecurity = NO_SECURITY
    may_need_login: bool = True
    """Whether to suggest a login if the peer closes the connection on the first request. False where brokers have answered."""


DEFAULT_LINK_OPTIONS = LinkOptions()


class _Waiting:
    """A caller that waits for an answer."""

    __slots__ = ("asked_s", "future", "limit_ms", "request", "sent_s", "timer")

    def __init__(self, request: Expected, future: asyncio.Future[Any], asked_s: float, limit_ms: int) -> None:
        self.request = request
        self.future = future
        self.asked_s = asked_s
        self.sent_s = asked_s
        self.limit_ms = limit_ms
        self.timer: asyncio.TimerHandle | None = None


class Link:
    """A connection to one node, open for requests once `connect` has returned it."""

    def __init__(
        self,
        host: str,
        port: int,
        options: LinkOptions,
        randomness: Randomness | None = None,
        counters: LinkCounters | None = None,
    ) -> None:
        self.host = host
        self.port = port
        self.options = options
        self.counters = counters or LinkCounters()
        self.throttled_until_s = 0.0
        """Until when requests wait because the node throttles this client, on the loop's clock."""
        self._randomness = randomness
        self._loop = asyncio.get_running_loop()
        self._conversation = Conversation(self.address, options.client_id, __version__, options.answer_bytes_max)
        self._stream: Stream | None = None
        self._greeted: asyncio.Future[PeerVersions] = self._loop.create_future()
        self._waiting: dict[int, _Waiting] = {}
        self._unsent: deque[tuple[Sequence[Part], _Waiting | None]] = deque()
        """Requests that wait to be sent, each with the caller that waits for its answer and so counts as in flight."""
        self._leaving: list[asyncio.Future[None]] = []
        """The futures of unanswered requests whose bytes are not all sent."""
        self._on_wire = 0
        self._active_s = self._loop.time()
        self._is_open = False  # set when `connect` returns
        self._is_held = False  # whether requests wait: a login is due, or the node throttles
        self._is_login_due = False
        self._throttle_timer: asyncio.TimerHandle | None = None
        self._login_timer: asyncio.TimerHandle | None = None
        self._login: asyncio.Task[None] | None = None
        self._failure: LinkError | None = None

    @classmethod
    async def connect(
        cls,
        network: Network,
        host: str,
        port: int,
        options: LinkOptions = DEFAULT_LINK_OPTIONS,
        randomness: Randomness | None = None,
        counters: LinkCounters | None = None,
    ) -> Link:
        """Connect, shake hands and log in. Raises `ConnectFailed`, `PeerFault` or `AuthenticationFailed`.

        `randomness` is needed to log in with SCRAM. `counters` is for an owner that measures what the link does.
        """
        link = cls(host, port, options, randomness, counters)
        try:
            async with asyncio.timeout(options.connect_timeout_ms / 1000):
                await link._open(network)
        except TimeoutError:
            step, advice = link._next_step()
            text = f"{link.address} did not {step} within {options.connect_timeout_ms} ms: {advice}"
            failure = ConnectFailed(link.address, text)
            link._end(failure)
            raise failure from None
        except TlsFailed as error:
            raise EncryptionFailed(link.address, str(error)) from None
        except OSError as error:
            raise _connect_failed(link.address, error) from None
        except BaseException:
            link.close()
            raise
        return link

    async def _open(self, network: Network) -> None:
        security = self.options.security
        self._stream = await network.connect(self.host, self.port, self, self.options.socket, security.tls)
        self._stream.resume()
        greeting = self._conversation.greet()
        self.counters.sent_bytes += sum(map(len, greeting))
        self._stream.send(greeting)
        await self._greeted
        if security.sasl is not None:
            await self._log_in()
        self._is_open = True
        self.counters.opened()

    def _next_step(self) -> tuple[str, str]:
        """What the peer has not done in time, and what to check."""
        if self._stream is None:
            if self.options.security.tls is None:
                return "accept a connection", "check host, port and firewalls"
            return "accept a connection and finish the TLS handshake", "check host, port, firewalls, and that it speaks TLS"
        if self._conversation.versions is None:
            return (
                "send its versions",
                "it may be overloaded, or no Kafka listener (web servers wait, too): check the port and security.protocol",
            )
        return "finish the login", "it may be overloaded, or the function that returns the token is slow"

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

    @property
    def in_flight(self) -> int:
        """How many requests wait for their answers, or to be sent."""
        return len(self._waiting)

    @property
    def idle_since_s(self) -> float | None:
        """When the link last sent or received something, on the loop's clock; None while a request waits for its answer."""
        return None if self._waiting or self._unsent else self._active_s

    async def request(self, message: Message, timeout_ms: int | None = None, version: int | None = None) -> Any:
        """Send `message` and await its answer. The default `version` is the newest that both sides know."""
        return await self.send(message, timeout_ms, version)

    def send(self, message: Message, timeout_ms: int | None = None, version: int | None = None) -> asyncio.Future[Any]:
        """Send `message` and return a future of its answer. Cancelling the future discards the answer.

        The timeout counts from now and includes the time in the link's queue, but not the time that the node throttles us.
        """
        waiting, parts = self._ask(message, timeout_ms, version)
        self._unsent.append((parts, waiting))
        self._send_unsent()
        return waiting.future

    def send_unanswered(self, message: Message, version: int | None = None) -> asyncio.Future[None]:
        """Send a request that the peer does not answer: Produce with acks=0. The future is done when all its bytes are sent."""
        if self._failure is not None:
            raise self._failure
        future: asyncio.Future[None] = self._loop.create_future()
        self._leaving.append(future)
        self._unsent.append((self._conversation.ask_unanswered(message, version), None))
        self._send_unsent()
        return future

    def close(self) -> None:
        """End the link now. Callers that still wait get `LinkEnded`."""
        self._end(LinkEnded(self.address, f"the connection to {self.address} was closed on this side"))

    # Events of the stream (env.StreamOwner)

    def buffer(self) -> memoryview:
        return self._conversation.buffer()

    def received(self, count: int) -> None:
        self.counters.received(count)
        if self._login is None:  # a login does not keep an idle link alive
            self._active_s = self._loop.time()
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
        self._have_left()

    def ended(self, error: OSError | None) -> None:
        if isinstance(error, TlsFailed):
            self._end(EncryptionFailed(self.address, str(error)))
            return
        text = self._conversation.end_text(self.options.security.tls is not None)
        if error is not None:
            text = f"the connection to {self.address} failed: {error.strerror or error}"
        if not self._is_open:
            if self._greeted.done():
                text += ". It ended during the login: a firewall between may allow no SASL, or the node is just stopping"
            elif error is not None and self.options.security.tls is None:
                text += ". If this listener speaks TLS, set security.protocol to SSL or SASL_SSL"
            self._end(ConnectFailed(self.address, text))
            return
        is_refusal = error is None and self._waiting and not self.counters.answers  # a killed node resets, or closes while idle
        if is_refusal and self.options.may_need_login and self.options.security.sasl is None:
            text += ". If this listener wants a login, set security.protocol to SASL_PLAINTEXT or SASL_SSL"
        self._end(LinkEnded(self.address, text))

    # Sending

    def _ask(self, message: Message, timeout_ms: int | None, version: int | None) -> tuple[_Waiting, Sequence[Part]]:
        if self._failure is not None:
            raise self._failure
        request, parts = self._conversation.ask(message, version)
        limit_ms = self.options.request_timeout_ms if timeout_ms is None else timeout_ms
        waiting = _Waiting(request, self._loop.create_future(), self._loop.time(), limit_ms)
        waiting.timer = self._loop.call_later(limit_ms / 1000, self._time_is_up, waiting)
        self._waiting[request.correlation_id] = waiting
        return waiting, parts

    def _send_unsent(self) -> None:
        unsent = self._unsent
        while unsent and not self._is_held:
            parts, waiting = unsent[0]
            if waiting is not None and self._on_wire >= self.options.in_flight_max:
                return
            unsent.popleft()
            self.counters.sent(sum(map(len, parts)))
            self._send_now(parts, waiting)
        self._have_left()

    def _have_left(self) -> None:
        """Tell the senders of unanswered requests that these have left, if nothing waits to be sent."""
        if self._leaving and not self._unsent and self._stream is not None and not self._stream.unsent_bytes:
            leaving, self._leaving = self._leaving, []
            for future in leaving:
                if not future.done():
                    future.set_result(None)

    def _send_now(self, parts: Sequence[Part], waiting: _Waiting | None) -> None:
        assert self._stream is not None
        if self._login is None:
            self._active_s = self._loop.time()
        if waiting is not None:
            self._on_wire += 1
            self._conversation.sent(waiting.request)
            waiting.sent_s = self._active_s
        self._stream.send(parts)

    def _answered(self, answer: Answer) -> None:
        self._on_wire -= 1
        waiting = self._waiting.pop(answer.request.correlation_id)
        assert waiting.timer is not None
        waiting.timer.cancel()
        if self._is_open and self._login is None:
            self.counters.answered(self._active_s - waiting.sent_s, answer.request.api_key)
        wait_ms = client_wait_ms(answer.request.api_key, answer.request.version, answer.message)
        if wait_ms:
            self._throttle(wait_ms)
        if self._is_login_due:
            self._log_in_when_quiet()
        elif self._unsent:
            self._send_unsent()
        if not waiting.future.done():
            waiting.future.set_result(answer.message)

    def _time_is_up(self, waiting: _Waiting) -> None:
        free_s = self.throttled_until_s + waiting.limit_ms / 1000
        if self.throttled_until_s > waiting.asked_s and free_s > self._loop.time():
            waiting.timer = self._loop.call_at(free_s, self._time_is_up, waiting)  # it was held back, and counts from then
            return
        del self._waiting[waiting.request.correlation_id]
        text = (
            f"{self.address} did not answer {APIS[waiting.request.api_key].name} within {waiting.limit_ms} ms: it may be "
            "overloaded or unreachable. Try again, or allow more time (request.timeout.ms)"
        )
        _fail(waiting.future, RequestTimedOut(self.address, text))
        self._end(LinkEnded(self.address, f"the connection to {self.address} was given up: a request was not answered in time"))

    # Throttling and reauthentication: requests wait

    def _throttle(self, wait_ms: int) -> None:
        self.counters.throttled(wait_ms)
        until_s = self._loop.time() + wait_ms / 1000
        if until_s <= self.throttled_until_s:
            return
        self.throttled_until_s = until_s
        if self._throttle_timer is not None:
            self._throttle_timer.cancel()
        self._throttle_timer = self._loop.call_at(until_s, self._throttle_is_over)
        self._is_held = True

    def _throttle_is_over(self) -> None:
        self._throttle_timer = None
        self._release()

    def _release(self) -> None:
        self._is_held = self._is_login_due or self._throttle_timer is not None
        self._send_unsent()

    async def _log_in(self) -> None:
        """Log in, and plan the next time."""
        from ottla.link.login import log_in  # late: the mechanisms need hashlib and more

        sasl = self.options.security.sasl
        assert sasl is not None
        lifetime_ms = await log_in(self.versions, self._request_now, sasl, self._randomness)
        self.counters.logins += 1
        if lifetime_ms > 0:
            earliest, latest = REAUTHENTICATE_PERCENT
            spread = self._randomness.below(latest - earliest) if self._randomness is not None else 0
            delay_s = max(lifetime_ms * (earliest + spread) / 100_000, REAUTHENTICATE_S_MIN)
            self._login_timer = self._loop.call_later(delay_s, self._login_is_due)

    async def _request_now(self, message: Message) -> Any:
        """Like `request`, but passes by those that wait."""
        waiting, parts = self._ask(message, None, None)
        self.counters.sent_bytes += sum(map(len, parts))
        self._send_now(parts, waiting)
        return await waiting.future

    def _login_is_due(self) -> None:
        self._is_login_due = self._is_held = True
        self._log_in_when_quiet()

    def _log_in_when_quiet(self) -> None:
        """Answers come in order: the login would only time out behind a request that the node has parked."""
        if self._on_wire == 0 and self._login is None:
            self._login = self._loop.create_task(self._log_in_again())

    async def _log_in_again(self) -> None:
        began_s = self._loop.time()
        try:
            await self._log_in()
        except LinkError as error:
            self.counters.logged_in_again(None)
            self._end(error)
            return
        self.counters.logged_in_again(self._loop.time() - began_s)
        self._login = None
        self._is_login_due = False
        self._release()

    # The end

    def _end(self, failure: LinkError) -> None:
        if self._failure is not None:
            return
        self._failure = failure
        if self._is_open:
            self.counters.ended()
        self._unsent.clear()
        if self._stream is not None:
            self._stream.close()
        _fail(self._greeted, failure)
        waiting, self._waiting = self._waiting, {}
        for timer in (self._throttle_timer, self._login_timer, *(each.timer for each in waiting.values())):
            if timer is not None:
                timer.cancel()
        if self._login is not None and self._login is not asyncio.current_task(self._loop):
            self._login.cancel()
        for future in (*(each.future for each in waiting.values()), *self._leaving):
            _fail(future, failure)


def _fail(future: asyncio.Future[Any], failure: LinkError) -> None:
    if not future.done():
        future.set_exception(failure)
        future.exception()  # marks it as retrieved: the loop must not log it if the caller has gone


def _connect_failed(address: str, error: OSError) -> ConnectFailed:
    if isinstance(error, ConnectionRefusedError):
        text = f"nothing listens at {address}: check the address, and that the node is up"
        return ConnectFailed(address, text, is_refused=True)
    # A host that cannot be resolved raises socket.gaierror, which only env/real may import: compare the name instead.
    if type(error).__name__ == "gaierror":
        text = f"the host of {address} is not known: {error.strerror or error}. Check the name"
        return ConnectFailed(address, text, is_retriable=False)
    if address in str(error):
        return ConnectFailed(address, str(error))
    return ConnectFailed(address, f"{address} cannot be reached: {error.strerror or error}")
