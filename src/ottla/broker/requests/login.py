"""The first stage of every request on a listener with SASL: nothing passes before the login but one good ApiVersions.

    FIRST        ApiVersions or SaslHandshake
    VERSIONS     ApiVersions was answered: SaslHandshake
    TOKENS       a mechanism is chosen: SaslAuthenticate
    RAW_TOKENS   the same after SaslHandshake version 0: the messages of the mechanism without Kafka's headers
    OTHER        a session that has ended was given another mechanism: its next message ends the connection
    OPEN         logged in; every request passes until the session ends. SaslHandshake begins the next login
    OVER         failed; the connection is about to end

What is no such request closes the connection at once. A failed login is answered late (`ListenerLogins.failure_delay_ms`), and
the connection ends with the answer. A login without a lifetime removes itself from its connection, so that later requests pass
without a test. Each failed login is one line in the log, which names peer, mechanism, user and reason.

One connection, one event loop. Work that takes long, such as the credential of a delegation token, runs in a worker thread.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from ottla.broker.authentication.exchange import Exchange, LoggedIn, LoginFailed
from ottla.broker.authentication.listener_logins import ListenerLogins
from ottla.broker.requests.context import CloseConnection, ConnectionInfo, Pending, RequestContext
from ottla.broker.requests.parked import PARSED_ON_LOOP_BYTES, Parked
from ottla.errors import DecodeError, KafkaError
from ottla.errors.codes import ErrorCode
from ottla.wire.api_table import ApiKey
from ottla.wire.base import Message, Part, UnsupportedVersion
from ottla.wire.headers import parse_request, read_request_header
from ottla.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from ottla.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

if TYPE_CHECKING:
    from ottla.broker.requests.pipeline import RequestPipeline, Route
    from ottla.ids import Principal

logger = logging.getLogger("ottla.requests")

AGAIN_EVERY_S: Final = 1.0
"""A connection may log in again once in so long, as in Kafka."""
_SHOWN_MAX: Final = 64
_HANDSHAKE: Final = ApiKey.SASL_HANDSHAKE.to_bytes(2, "big")
_VERSIONS: Final = ApiKey.API_VERSIONS.to_bytes(2, "big")

Reply = list[Part] | Parked | None


class LoginState(Enum):
    FIRST = 0
    VERSIONS = 1
    TOKENS = 2
    RAW_TOKENS = 3
    OTHER = 4
    OPEN = 5
    OVER = 6


class LoginAnswer(Pending):
    """An answer that comes later: after the delay of a failure, or after work in a worker thread."""

    __slots__ = ("encoded", "ends_connection", "timer")

    def __init__(self) -> None:
        super().__init__()
        self.encoded: list[Part] | None = None
        self.ends_connection = False
        self.timer: asyncio.TimerHandle | None = None

    def end_with(self, response: Message | None, delay_ms: int) -> None:
        """Answer after `delay_ms`, and end the connection."""
        self.ends_connection = True
        self.timer = asyncio.get_running_loop().call_later(delay_ms / 1000, self.complete, response)

    def abandon(self) -> None:
        super().abandon()
        if self.timer is not None:
            self.timer.cancel()


class Login:
    """The login of one connection, and its session."""

    __slots__ = (
        "_again_s",
        "_exchange",
        "_expires_s",
        "_logins",
        "_mechanism",
        "_state",
        "_working",
        "on_open",
    )

    def __init__(self, logins: ListenerLogins) -> None:
        self._logins = logins
        self._state = LoginState.FIRST
        self._mechanism = ""
        self._exchange: Exchange | None = None
        self._expires_s: float | None = None
        """When the session ends; None before the first login."""
        self._again_s = float("-inf")
        """When the connection last began to log in again."""
        self._working: asyncio.Task[None] | None = None
        self.on_open: Callable[[], None] | None = None
        """Called once, when the first login has succeeded."""

    @property
    def receive_bytes_max(self) -> int:
        """The size that a frame before the login may have."""
        return self._logins.receive_bytes_max

    @property
    def failure_delay_ms(self) -> int:
        return self._logins.failure_delay_ms

    def versions_told(self) -> None:
        """An ApiVersions request was answered: there is no second one before the login."""
        if self._state is LoginState.FIRST:
            self._state = LoginState.VERSIONS

    def takes(self, frame: bytearray, now_s: float) -> bool:
        """Whether the request is one of the login's, or may not pass. All others are handled as on any listener."""
        if self._state is LoginState.OPEN:
            assert self._expires_s is not None
            return now_s >= self._expires_s or (frame[:2] == _HANDSHAKE and now_s - self._again_s >= AGAIN_EVERY_S)
        return self._state is not LoginState.FIRST or frame[:2] != _VERSIONS

    def answer(self, pipeline: RequestPipeline, connection: ConnectionInfo, frame: bytearray, received_s: float) -> Reply:
        """The answer to a request that `takes` is true for; raises `CloseConnection` if it may not come now."""
        match self._state:
            case LoginState.RAW_TOKENS:
                context = _context(pipeline, connection, ApiKey.SASL_AUTHENTICATE, received_s)
                return self._advance(pipeline, context, None, bytes(frame), len(frame))
            case LoginState.OPEN:
                if frame[:2] != _HANDSHAKE or received_s - self._again_s < AGAIN_EVERY_S:
                    raise self._expired(pipeline, connection)
                self._again_s = received_s
            case LoginState.OTHER | LoginState.OVER:
                raise self._refused(pipeline, connection, "the login had failed already")
            case LoginState.FIRST | LoginState.VERSIONS | LoginState.TOKENS:
                pass
        try:
            header, _ = read_request_header(frame)
            key, version = header.request_api_key, header.request_api_version
            expected = ApiKey.SASL_AUTHENTICATE if self._state is LoginState.TOKENS else ApiKey.SASL_HANDSHAKE
            route = pipeline.route_of(connection, key)
            if route is None or (key != expected and (expected == ApiKey.SASL_HANDSHAKE or len(frame) > PARSED_ON_LOOP_BYTES)):
                raise DecodeError(f"a request with API key {key} came before a login", 0)
            _, request = parse_request(frame)
        except (DecodeError, UnsupportedVersion) as fault:
            raise self._refused(pipeline, connection, str(fault)) from None
        context = _context(pipeline, connection, key, received_s, version, header.correlation_id, header.client_id)
        if isinstance(request, SaslHandshakeRequest) and key == expected:
            return self._choose(pipeline, context, route, request, len(frame))
        if isinstance(request, SaslAuthenticateRequest):
            return self._advance(pipeline, context, request, bytes(request.auth_bytes), len(frame))
        error = KafkaError(ErrorCode.ILLEGAL_SASL_STATE, "a login has begun: only SaslAuthenticate may come now")
        self._note_failure(pipeline, connection, f"{route.name} came in the middle of it")
        return self._end(pipeline, context, route, request, len(frame), route.refuse(context, request, error))

    # Handshake

    def _choose(
        self, pipeline: RequestPipeline, context: RequestContext, route: Route, request: SaslHandshakeRequest, frame_bytes: int
    ) -> Reply:
        mechanisms = list(self._logins.mechanisms)
        response = SaslHandshakeResponse(mechanisms=mechanisms)
        is_again, chosen = self._expires_s is not None, self._logins.mechanisms.get(request.mechanism)
        if chosen is None:
            self._mechanism = request.mechanism
            self._note_failure(
                pipeline, context.connection, f"the listener does not offer it; it offers {', '.join(mechanisms)}"
            )
            if is_again:
                raise CloseConnection("an unknown mechanism")
            response.error_code = ErrorCode.UNSUPPORTED_SASL_MECHANISM
            return self._end(pipeline, context, route, request, frame_bytes, response)
        if is_again and request.mechanism != self._mechanism:
            self._note_failure(pipeline, context.connection, f"it logs in again with {request.mechanism}")
            self._state = LoginState.OTHER
        else:
            self._mechanism = request.mechanism
            self._exchange = chosen.new_exchange()
            self._state = LoginState.TOKENS if context.version > 0 else LoginState.RAW_TOKENS
        return pipeline.conclude(route, context, request, frame_bytes, response, None)

    # Messages of the mechanism

    def _advance(
        self,
        pipeline: RequestPipeline,
        context: RequestContext,
        request: SaslAuthenticateRequest | None,
        message: bytes,
        frame_bytes: int,
    ) -> Reply:
        """Answer a message of the mechanism. `request` is None for one without Kafka's header."""
        assert self._exchange is not None, "a mechanism is chosen"
        route = pipeline.route_of(context.connection, ApiKey.SASL_AUTHENTICATE)
        assert route is not None, "it is served on every listener"
        work = self._exchange.prepare(message)
        if work is None:
            try:
                response = self._step(context, message)
            except LoginFailed as failed:
                self._note_failure(pipeline, context.connection, str(failed))
                refusal = None if request is None else self._refusal(failed)
                return self._end(pipeline, context, route, request, frame_bytes, refusal)
            if request is None:
                return _raw(response)
            return pipeline.conclude(route, context, request, frame_bytes, response, None)
        answer = LoginAnswer()
        if request is None:
            answer.encoded = []
        self._working = asyncio.get_running_loop().create_task(
            self._advance_later(pipeline, context, message, work, answer, is_raw=request is None)
        )
        return Parked(pipeline, route, context, request, frame_bytes, answer)

    async def _advance_later(
        self,
        pipeline: RequestPipeline,
        context: RequestContext,
        message: bytes,
        work: Callable[[], None],
        answer: LoginAnswer,
        is_raw: bool,
    ) -> None:
        try:
            await pipeline.scheduler.workers.run(work)
            response = self._step(context, message)
        except LoginFailed as failed:
            self._note_failure(pipeline, context.connection, str(failed))
            self._state = LoginState.OVER
            answer.end_with(None if is_raw else self._refusal(failed), self._logins.failure_delay_ms)
        except Exception as failure:
            self._state = LoginState.OVER
            answer.fail(failure)
        else:
            if is_raw:
                answer.encoded = _raw(response)
            answer.complete(response)

    def _step(self, context: RequestContext, message: bytes) -> SaslAuthenticateResponse:
        assert self._exchange is not None, "a mechanism is chosen"
        said, outcome = self._exchange.step(message)
        response = SaslAuthenticateResponse(auth_bytes=said)
        if outcome is not None:
            response.session_lifetime_ms = self._open(context, outcome)
        return response

    def _open(self, context: RequestContext, outcome: LoggedIn) -> int:
        """The login has succeeded; returns how long its session lasts in ms, 0: without end."""
        connection = context.connection
        is_again = self._expires_s is not None
        if is_again and outcome.principal != connection.principal:
            raise LoginFailed(f"the connection belongs to {_shown(connection.principal)}, and no other user may go on with it")
        services = context.services
        limit_ms = self._logins.mechanisms[self._mechanism].reauthentication_ms
        lifetimes_ms = [limit_ms] if limit_ms > 0 else []
        if outcome.expires_ms is not None:
            lifetimes_ms.append(max(0, outcome.expires_ms - services.world.clock.now_ms()))
        self._exchange = None
        self._state = LoginState.OPEN
        connection.principal = outcome.principal
        if lifetimes_ms:
            self._expires_s = asyncio.get_running_loop().time() + min(lifetimes_ms) / 1000
        else:
            connection.login = None
        logger.debug(
            "%s:%d on %s is logged in as %s with %s",
            *connection.peer,
            connection.listener,
            _shown(outcome.principal),
            self._mechanism,
        )
        on_open, self.on_open = self.on_open, None
        if on_open is not None:
            on_open()
        return min(lifetimes_ms, default=0)

    # Failures

    def _refusal(self, failed: LoginFailed) -> SaslAuthenticateResponse:
        told = failed.told or f"Authentication failed: these credentials are not valid for SASL mechanism {self._mechanism}"
        return SaslAuthenticateResponse(error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=told)

    def _end(
        self,
        pipeline: RequestPipeline,
        context: RequestContext,
        route: Route,
        request: Message | None,
        frame_bytes: int,
        response: Message | None,
    ) -> Parked:
        """Answer after the delay of a failed login, and end the connection."""
        self._state = LoginState.OVER
        answer = LoginAnswer()
        answer.end_with(response, self._logins.failure_delay_ms)
        return Parked(pipeline, route, context, request, frame_bytes, answer)

    def _refused(self, pipeline: RequestPipeline, connection: ConnectionInfo, why: str) -> CloseConnection:
        self._state = LoginState.OVER
        pipeline.report_fault(connection, f"{why}; the listener wants a login with SASL first")
        return CloseConnection(why)

    def _expired(self, pipeline: RequestPipeline, connection: ConnectionInfo) -> CloseConnection:
        pipeline.counters.connections.sessions_expired += 1
        host, port = connection.peer
        pipeline.fault_log.report(
            logging.INFO,
            host,
            "closing the connection of %s:%d on %s: the session of %s is over, and the client has not logged in again",
            host,
            port,
            connection.listener,
            _shown(connection.principal),
        )
        return CloseConnection("the session is over")

    def _note_failure(self, pipeline: RequestPipeline, connection: ConnectionInfo, reason: str) -> None:
        """Count a failed login and log it. Nothing here may show what the client has sent beyond names."""
        pipeline.counters.connections.logins_failed += 1
        host, port = connection.peer
        username = "" if self._exchange is None else self._exchange.username
        pipeline.fault_log.report(
            logging.WARNING,
            host,
            "the login%s of %s:%d on %s with %s failed: %s",
            f" of user {_shown(username)}" if username else "",
            host,
            port,
            connection.listener,
            _shown(self._mechanism),
            reason,
        )


def _shown(name: Principal | str) -> str:
    """A name that a peer has chosen, for a line of the log."""
    text = str(name)
    text = text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}…"
    return text if text.isprintable() else repr(text)


def _raw(response: SaslAuthenticateResponse) -> list[Part]:
    said = bytes(response.auth_bytes)
    return [len(said).to_bytes(4, "big") + said]


def _context(
    pipeline: RequestPipeline,
    connection: ConnectionInfo,
    key: int,
    received_s: float,
    version: int = 0,
    correlation_id: int = 0,
    client_id: str | None = None,
) -> RequestContext:
    services: Any = pipeline.services
    return RequestContext(services, connection, key, version, correlation_id, client_id, received_s)
