"""The way of every request, from its frame to the frame of its reply. The stages stand below in their order:

    frame        `net/connection.py` has split it off and waited for its turn and for memory (`memory.py`, `scheduler.py`)
    login        on a listener with SASL, nothing but the login itself passes before it (`login.py`)
    fast path    answers the most frequent requests from frame to frame, with the grants that it finds
    header       `_handle_frame` reads it, finds the API's descriptor, parses the body; a large one in a worker thread
    authorize    `_admit`: what is denied is refused, or taken out (`authorization.py`)
    handler      returns the response, or a `Pending` that is completed later (`context.py`, `parked.py`)
    refuse       `conclude`: an error becomes a response of the API, answers to denied topics are added
    throttle     what the request has used is noted; the connection of a client above its quota is muted, and the response says
                 for how long (`throttle.py`)
    encode       the reply; a large one was encoded in a worker thread. `net/connection.py` sends the replies in the order of
                 their requests

`RequestPipeline.handle` is a plain call. It returns the parts to send; None if no reply is wanted; or a `Parked` request, whose
reply comes later. It raises `CloseConnection` if the peer's connection has to end, after it logged a line that names the
request. A hostile peer cannot cause more than a few such lines (`fault_log.py`).

A `KafkaError` becomes a response through the API's own `refuse`. A peer's fault closes its connection. A broken invariant is
passed to `on_broken`, which stops the node. Anything else is a bug of ours: it is logged with its traceback, and the client
gets UNKNOWN_SERVER_ERROR. Touches no socket. Belongs to one event loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Container, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, cast

from ottla.broker.requests.apis import SERVED, HandlerModule, Quota, load_handler, load_optional, versions_served
from ottla.broker.requests.authorization import Authorization, admit, with_denied
from ottla.broker.requests.context import (
    NOT_COUNTED,
    CloseConnection,
    ConnectionInfo,
    Declined,
    Handled,
    Pending,
    PendingTask,
    RequestContext,
)
from ottla.broker.requests.counters import RECENT, RECENT_MASK, ApiCounters, Counters
from ottla.broker.requests.fault_log import FaultLog
from ottla.broker.requests.interception import Intercept, InterceptedRequest
from ottla.broker.requests.loop_health import LoopHealth, RequestHold
from ottla.broker.requests.parked import PARSED_BYTES_MAX, PARSED_BYTES_PER_BYTE, PARSED_ON_LOOP_BYTES, Parked, Prepared
from ottla.broker.requests.refusals import summary_of
from ottla.broker.requests.request_log import request_log
from ottla.broker.requests.scheduler import FIRST_SLICE_S, SMALL_CALL_BYTES, Scheduler, SlicedWork
from ottla.broker.requests.throttle import Throttling, Usage, mute, put_delay, with_delay
from ottla.broker.services import NodeServices, Services
from ottla.env import OffLoop, Reserve
from ottla.errors import BrokenInvariant, CorruptRecords, DecodeError, KafkaError, drop_frames
from ottla.errors.codes import ErrorCode, error_name
from ottla.ids import Uuid
from ottla.wire.apis import APIS, ApiKey
from ottla.wire.base import Message, Part, UnsupportedVersion
from ottla.wire.headers import encode_response, parse_request, read_request_header

if TYPE_CHECKING:
    from ottla.broker.partitions.kernel import PartitionTail
    from ottla.broker.requests.authorization import Grants
    from ottla.env import Steps
    from ottla.records.kernel_batch import CheckedBatch

logger = logging.getLogger("ottla.requests")

ANSWERED_FROM_FRAMES = (ApiKey.PRODUCE, ApiKey.OFFSET_COMMIT)
"""The APIs with a fast path that answers frames without decoding them into messages. Their keys fit into one byte."""


class AnswersFrames(Protocol):
    """The fast path of an API: answers its most frequent requests from frame to frame."""

    def answer(self, frame: bytearray, grants: Grants | None, /) -> list[Part] | Message | Pending | Declined | None:
        """The reply; or the response, if a part of it was refused.

        `Declined` or None: nothing changed, the general path handles it. `Declined` carries what was checked already. So it
        is where `grants` (None: everything is allowed) lack something that the request needs.
        """
        ...


class Route:
    """How one API's requests are handled on one kind of listener: the functions, the versions and the counters."""

    __slots__ = ("counters", "handle", "is_searched", "key", "name", "newest", "oldest", "refuse")

    def __init__(self, key: int, module: HandlerModule, newest: int, counters: ApiCounters, is_searched: bool) -> None:
        self.key = key
        self.name = APIS[key].name
        self.oldest = APIS[key].oldest
        self.newest = newest
        self.handle = module.handle
        self.refuse = module.refuse
        self.is_searched = is_searched
        self.counters = counters


class RequestPipeline:
    """The pipeline of one node, on the running loop. `services` has to be set before the first `handle`."""

    def __init__(
        self, services: NodeServices | None = None, load: Callable[[int, bool], HandlerModule | None] = load_handler
    ) -> None:
        self.services = services
        self._load = load
        self._monotonic_s = asyncio.get_running_loop().time
        self._routes: dict[int, Route] = {}
        self._controller_routes: dict[int, Route] = {}
        self._fast_paths: dict[int, AnswersFrames] = {}
        self.scheduler = Scheduler()
        self.authorization = Authorization(self._monotonic_s)
        self.throttling = Throttling()
        self.counters = Counters()
        self.fault_log = FaultLog(self._monotonic_s, logger)
        self.health = LoopHealth(self._monotonic_s)
        self.searched: Container[int] = frozenset(key for key, api in SERVED.items() if api.is_searched)
        """The APIs whose responses are searched for refused parts; from the first request of each on."""
        self.on_broken: Callable[[BaseException], None] | None = None
        """Called with a broken invariant: the node has to stop."""
        self.intercept: Intercept | None = None
        """Set by tests to delay, fail, lose or rewrite requests (`interception.py`)."""

    # Frame, fast path

    def handle(self, connection: ConnectionInfo, frame: bytearray) -> list[Part] | Parked | None:
        """Handle the request in `frame`; `CloseConnection` if its connection has to end."""
        received_s = self._monotonic_s()
        login = connection.login
        if login is not None and login.takes(frame, received_s):
            return login.answer(self, connection, frame, received_s)
        failure: Exception | None = None
        response: Message | None = None
        checked: Mapping[PartitionTail, CheckedBatch] | None = None
        if (
            len(frame) > 1
            and not frame[0]
            and (fast_path := self._fast_paths.get(frame[1])) is not None
            and self.intercept is None
            and not connection.is_controller_listener
        ):
            try:
                authorization = self.authorization
                grants = None if authorization.authorizer is None else authorization.grants_of(connection)
                answered = fast_path.answer(frame, grants)
                if isinstance(answered, list):
                    counters = self._routes[frame[1]].counters
                    counters.requests += 1
                    counters.bytes_in += len(frame)
                    if self.throttling.rule is not None:
                        self._throttle_frame(connection, frame, received_s, answered)
                    hold_s = self._count_reply(counters, received_s, answered) - received_s
                    if hold_s > counters.hold_noted_s:
                        self._note_hold_of(frame, connection, counters, received_s, hold_s)
                    if request_log.is_on:
                        self._log_frame(frame, connection, answered, hold_s)
                    return answered
                if isinstance(answered, Pending):
                    return self._park_frame(connection, frame, received_s, answered)
                if isinstance(answered, Declined):
                    if answered.has_many_elements:
                        return self._parse_off_loop(connection, frame, received_s)
                    checked = answered.checked
                else:
                    response = answered
            except Exception as caught:
                failure = caught
        is_large = len(frame) > PARSED_ON_LOOP_BYTES and self.intercept is None and (frame[0] or frame[1] != ApiKey.PRODUCE)
        if is_large and failure is None:
            return self._parse_off_loop(connection, frame, received_s)
        return self._handle_frame(connection, frame, received_s, checked, response, failure)

    # Header, descriptor, body

    def _handle_frame(
        self,
        connection: ConnectionInfo,
        frame: bytearray,
        received_s: float,
        checked: Mapping[PartitionTail, CheckedBatch] | None,
        response: Message | None,
        failure: Exception | None,
    ) -> list[Part] | Parked | None:
        """The general path. `response` or `failure`: the fast path has handled the request, but has not encoded the reply."""
        try:
            header, request = parse_request(frame)
        except (DecodeError, UnsupportedVersion) as fault:
            raise self._unreadable(connection, frame, str(fault)) from None
        except Exception as flaw:
            raise self._not_loaded(connection, flaw) from None
        key, version = header.request_api_key, header.request_api_version
        routes = self._controller_routes if connection.is_controller_listener else self._routes
        route = routes.get(key) or self.route_of(connection, key)
        if route is None:
            raise self._unreadable(connection, frame)
        services = cast("Services", self.services)  # handlers on a controller's listener use only `NodeServices`
        context = RequestContext(services, connection, key, version, header.correlation_id, header.client_id, received_s)
        context.checked = checked
        if not route.oldest <= version <= route.newest:
            return self._unserved_version(route, context, request, frame)
        if failure is not None or response is not None:
            return self.conclude(route, context, request, len(frame), response, failure)
        try:
            handled = self._admit(route, context, request)
        except Exception as failure:
            return self.conclude(route, context, request, len(frame), None, failure)
        if isinstance(handled, Pending):
            if handled.is_done:
                return self.conclude(route, context, request, len(frame), *handled.outcome)
            return self._park(route, context, request, len(frame), handled)
        return self.conclude(route, context, request, len(frame), handled, None)

    def _parse_off_loop(self, connection: ConnectionInfo, frame: bytearray, received_s: float) -> list[Part] | Parked | None:
        """Handle a request that may have many elements: it is parsed in a worker thread, where others can run meanwhile."""
        try:
            header, _ = read_request_header(frame)
        except DecodeError as fault:
            raise self._unreadable(connection, frame, str(fault)) from None
        key, version = header.request_api_key, header.request_api_version
        route = self.route_of(connection, key)
        if route is None or not route.oldest <= version <= route.newest:
            raise self._unreadable(connection, frame)
        assert self.services is not None
        context = RequestContext(
            cast(Services, self.services), connection, key, version, header.correlation_id, header.client_id, received_s
        )
        waiting: list[Parked] = []
        work = SlicedWork(self.scheduler, context, self._parse_and_handle(route, context, frame, waiting))
        waiting.append(Parked(self, route, context, None, len(frame), work))
        work.hold()
        work.run(received_s + FIRST_SLICE_S)
        return waiting[0]

    def _parse_and_handle(
        self, route: Route, context: RequestContext, frame: bytearray, waiting: list[Parked]
    ) -> Steps[Handled]:
        is_of_follower = route.key == ApiKey.FETCH and context.connection.is_follower
        memory_bytes = min(len(frame) * PARSED_BYTES_PER_BYTE, PARSED_BYTES_MAX)
        yield Reserve(memory_bytes, is_for_request=True, is_of_follower=is_of_follower)
        try:
            _, request = yield OffLoop(partial(parse_request, frame), SMALL_CALL_BYTES)
        except (DecodeError, UnsupportedVersion) as fault:
            raise self._unreadable(context.connection, frame, str(fault)) from None
        except Exception as flaw:
            raise self._not_loaded(context.connection, flaw) from None
        waiting.pop().request = request
        return self._admit(route, context, request)

    # Authorize, handler

    def _admit(self, route: Route, context: RequestContext, request: Any) -> Handled:
        """Authorize a request, then hand it to its handler, or to a test that intercepts it."""
        handle = route.handle if self.intercept is None else partial(self._handle, route)
        return admit(self.authorization, context, request, route.refuse, handle)

    def _handle(self, route: Route, context: RequestContext, request: Any) -> Handled:
        """Handle a request while a test intercepts some."""
        interception = None if self.intercept is None else self.intercept(context, request)
        if interception is not None:
            return InterceptedRequest(interception, lambda: route.handle(context, request))
        return route.handle(context, request)

    # Refuse, throttle, encode

    def conclude(
        self,
        route: Route,
        context: RequestContext,
        request: Any,
        frame_bytes: int,
        response: Message | None,
        failure: BaseException | None,
        prepared: Prepared | None = None,
        encoded: list[Part] | None = None,
        is_parked: bool = False,
    ) -> list[Part] | None:
        """The parts of a reply, from the handler's response or failure. Counts the request."""
        began_s = self._monotonic_s() if is_parked else context.received_s
        counters = route.counters
        counters.requests += 1
        counters.bytes_in += frame_bytes
        parts = encoded
        if context.denied is not None and prepared is None:
            response, failure = with_denied(context, request, route.refuse, response, failure)
        if prepared is not None:
            parts, response = prepared.parts, prepared.response
            if prepared.refused is not None:
                counters.errors += 1
                self._report(logging.INFO, context, route, prepared.refused)
        elif failure is not None:
            counters.errors += 1
            if encoded is None:
                response = self._refused(route, context, request, failure)
        elif route.is_searched and response is not None and (refused := summary_of(response, self._topic_name)) is not None:
            counters.errors += 1
            self._report(logging.INFO, context, route, refused)
        if self.throttling.rule is not None:
            response = self._throttled(route, context, frame_bytes, response, failure, parts)
        if response is not None and parts is None:
            try:
                parts = encode_response(response, context.version, context.correlation_id)
            except Exception as flaw:
                counters.errors += 1
                parts = self._encode_refusal(route, context, request, flaw)
        hold_s = self._count_reply(counters, context.received_s, parts) - began_s
        if hold_s > counters.hold_noted_s:
            self.health.note_request(counters, _hold(route.name, context, frame_bytes, began_s, hold_s))
        if request_log.is_on:
            request_log.line(
                route.name,
                context.version,
                context.correlation_id,
                context.client_id,
                context.connection,
                frame_bytes,
                None if parts is None else sum(map(len, parts)),
                self._monotonic_s() - context.received_s,
            )
        if failure is not None:
            drop_frames(failure)
        return parts

    def prepare(
        self, route: Route, context: RequestContext, request: Any, response: Message | None, failure: BaseException | None
    ) -> Prepared:
        """The reply for a response or a `KafkaError`, whatever its size: for a worker thread. Changes nothing."""
        refused: str | None = None
        if isinstance(failure, KafkaError):
            refused = _refusal_text(failure)
            response = route.refuse(context, request, failure)
        if context.denied is not None:
            response = context.denied.added_to(response)
        assert response is not None
        response = with_delay(response, context.throttle_ms)
        if failure is None and route.is_searched:
            refused = summary_of(response, self._topic_name)
        return Prepared(encode_response(response, context.version, context.correlation_id), response, refused)

    def _park(self, route: Route, context: RequestContext, request: Any, frame_bytes: int, pending: Pending) -> Parked:
        hold_s = context.held_s = self._monotonic_s() - context.received_s
        if hold_s > route.counters.hold_noted_s:
            hold = _hold(route.name, context, frame_bytes, context.received_s, hold_s)
            self.health.note_request(route.counters, hold)
        if isinstance(pending, PendingTask):
            self.health.follow_task(pending.task, _hold(route.name, context, frame_bytes, 0.0, 0.0))
        return Parked(self, route, context, request, frame_bytes, pending)

    def _park_frame(
        self, connection: ConnectionInfo, frame: bytearray, received_s: float, pending: Pending
    ) -> list[Part] | Parked | None:
        """Park a request that was handled from its frame: it is not decoded."""
        header, _ = read_request_header(frame)
        key, version = header.request_api_key, header.request_api_version
        services = cast(Services, self.services)
        context = RequestContext(services, connection, key, version, header.correlation_id, header.client_id, received_s)
        if pending.is_done:
            return self.conclude(self._routes[key], context, None, len(frame), *pending.outcome, encoded=pending.encoded)
        return self._park(self._routes[key], context, None, len(frame), pending)

    def _note_hold_of(
        self, frame: bytearray, connection: ConnectionInfo, counters: ApiCounters, began_s: float, hold_s: float
    ) -> None:
        """Note the hold by a request that was answered from its frame, without a context."""
        header, _ = read_request_header(frame)
        name, version = APIS[header.request_api_key].name, header.request_api_version
        hold = RequestHold(began_s, hold_s, name, version, len(frame), header.client_id, connection)
        self.health.note_request(counters, hold)

    def _log_frame(self, frame: bytearray, connection: ConnectionInfo, reply: list[Part], time_s: float) -> None:
        """Log a request that was answered from its frame, without a context."""
        header, _ = read_request_header(frame)
        name, version = APIS[header.request_api_key].name, header.request_api_version
        reply_bytes = sum(map(len, reply))
        request_log.line(name, version, header.correlation_id, header.client_id, connection, len(frame), reply_bytes, time_s)

    def _topic_name(self, topic_id: Uuid) -> str | None:
        assert self.services is not None
        topic = self.services.metadata.topic_by_id(topic_id)
        return None if topic is None else topic.name

    def _count_reply(self, counters: ApiCounters, received_s: float, parts: list[Part] | None) -> float:
        """Count a reply and the time since its request was received. Returns the time now."""
        if parts is not None:
            counters.bytes_out += len(parts[0]) if len(parts) == 1 else sum(map(len, parts))
        now_s = self._monotonic_s()
        time_s = now_s - received_s
        counters.time_s_total += time_s
        recent_s = counters.recent_s
        if len(recent_s) < RECENT:
            recent_s.append(time_s)
        else:
            recent_s[counters.requests & RECENT_MASK] = time_s
        if time_s > counters.time_s_max:
            counters.time_s_max = time_s
        return now_s

    # Throttle

    def count_usage(
        self,
        route: Route,
        context: RequestContext,
        frame_bytes: int,
        response: Message | None,
        failure: BaseException | None,
        is_parked: bool = False,
    ) -> None:
        """Note in `context` for how long its connection is to be muted; once, before the response is encoded."""
        rule = self.throttling.rule
        if rule is None or context.throttle_ms != NOT_COUNTED:
            return
        quota, context.throttle_ms = SERVED[route.key].quota, 0
        if quota == Quota.NONE and not (
            isinstance(failure, KafkaError) and failure.code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        ):
            return
        now_s = self._monotonic_s()
        time_s = context.held_s if is_parked else now_s - context.received_s
        is_answered = response is not None or failure is not None or quota != Quota.PRODUCE
        usage = Usage(context.connection, context.client_id, quota, frame_bytes, 0, time_s, now_s, is_answered)
        context.throttle_ms = rule.delay_ms(usage)
        if quota == Quota.CONTROLLER_MUTATION and response is not None:
            context.throttle_ms = max(context.throttle_ms, getattr(response, "throttle_time_ms", 0))

    def _throttled(
        self,
        route: Route,
        context: RequestContext,
        frame_bytes: int,
        response: Message | None,
        failure: BaseException | None,
        parts: list[Part] | None,
    ) -> Message | None:
        """The response, which says for how long the connection is muted from now on; put into `parts` if they are made."""
        self.count_usage(route, context, frame_bytes, response, failure)
        delay_ms = context.throttle_ms
        if delay_ms <= 0:
            return response
        mute(context.connection, self._monotonic_s(), delay_ms)
        if parts is None:
            return response if response is None else with_delay(response, delay_ms)
        throttle_at = SERVED[route.key].throttle_at
        if response is None and throttle_at is not None:
            put_delay(parts, throttle_at, delay_ms)
        return response

    def _throttle_frame(self, connection: ConnectionInfo, frame: bytearray, received_s: float, reply: list[Part]) -> None:
        """The same for a request that was answered from its frame, without a context."""
        header, _ = read_request_header(frame)
        key, rule, now_s = header.request_api_key, self.throttling.rule, self._monotonic_s()
        assert rule is not None, "asked only if there is one"
        api = SERVED[key]
        delay_ms = rule.delay_ms(
            Usage(connection, header.client_id, api.quota, len(frame), 0, now_s - received_s, now_s, bool(reply))
        )
        if delay_ms > 0:
            mute(connection, now_s, delay_ms)
            if reply and api.throttle_at is not None:
                put_delay(reply, api.throttle_at, delay_ms)

    # Failures

    def _refused(self, route: Route, context: RequestContext, request: Any, failure: BaseException) -> Message | None:
        """The response to a request that failed; `CloseConnection` if there can be none."""
        if isinstance(failure, KafkaError):
            self._report(logging.INFO, context, route, _refusal_text(failure))
            error = failure
        elif isinstance(failure, CloseConnection | DecodeError | CorruptRecords):
            self._report(logging.WARNING, context, route, f"{failure}. The connection is closed")
            raise failure if isinstance(failure, CloseConnection) else CloseConnection(str(failure)) from None
        elif isinstance(failure, asyncio.CancelledError):
            raise CloseConnection("the node is stopping") from None
        elif isinstance(failure, BrokenInvariant):
            self._report(logging.CRITICAL, context, route, f"{failure}. The node stops", failure)
            if self.on_broken is not None:
                self.on_broken(failure)
            raise CloseConnection(str(failure)) from None
        else:
            self._report(logging.ERROR, context, route, "unexpected error; please report it", failure)
            error = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "unexpected error; the node's log has the details")
        try:
            return route.refuse(context, request, error)
        except CloseConnection:
            raise
        except Exception as second:
            self._report(logging.ERROR, context, route, "no error response could be made; please report it", second)
            raise CloseConnection("no error response could be made") from None

    def _encode_refusal(self, route: Route, context: RequestContext, request: Any, flaw: Exception) -> list[Part]:
        """The response cannot be written in the request's version: a bug of the handler's."""
        refusal = self._refused(route, context, request, flaw)
        if refusal is not None:
            try:
                return encode_response(refusal, context.version, context.correlation_id)
            except Exception as second:
                self._report(
                    logging.ERROR, context, route, "its error response cannot be encoded either; please report it", second
                )
        raise CloseConnection("a response could not be encoded") from None

    def _unserved_version(self, route: Route, context: RequestContext, request: Any, frame: bytearray) -> list[Part] | None:
        """Answer ApiVersions in a version that is not served with version 0, which every client can read; close for other APIs.

        Newer clients find out the served versions in this way on every connection. It is no failure and is not logged.
        """
        if route.key != ApiKey.API_VERSIONS:
            raise self._unreadable(context.connection, frame)
        context.version = 0
        refusal = KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"versions {route.oldest} to {route.newest} are served")
        return self.conclude(route, context, request, len(frame), route.refuse(context, request, refusal), None)

    def route_of(self, connection: ConnectionInfo, key: int) -> Route | None:
        """The route of an API on the connection's listener; None: it is not served there."""
        routes = self._controller_routes if connection.is_controller_listener else self._routes
        route = routes.get(key)
        if route is None:
            try:
                module = self._load(key, connection.is_controller_listener)
            except Exception as flaw:
                raise self._not_loaded(connection, flaw) from None
            if module is None and not connection.is_controller_listener and self.services is not None:
                module = load_optional(key, self.services)
            if module is not None:
                assert self.services is not None
                newest = versions_served(key, self.services)[1]
                route = routes[key] = Route(key, module, newest, self.counters.of(key), key in self.searched)
                if key in ANSWERED_FROM_FRAMES and hasattr(module, "frame_answers"):
                    self._fast_paths[key] = module.frame_answers(self.services)
        return route

    def _unreadable(self, connection: ConnectionInfo, frame: bytearray, fault: str = "") -> CloseConnection:
        """Log a frame that holds no request we can answer; return the exception to raise. `fault` is the decoder's text."""
        what, why = f"a frame of {len(frame)} bytes", fault
        try:
            header, _ = read_request_header(frame)
        except DecodeError:
            pass
        else:
            key, version = header.request_api_key, header.request_api_version
            what = (
                f"{APIS[key].name} version {version} (correlation id {header.correlation_id}, client id {header.client_id!r})"
            )
            route = self.route_of(connection, key)
            if APIS[key].is_removed:
                why = "this API was removed from the protocol"
            elif route is None:
                why = "this API is not served here; ApiVersions tells which are"
            elif not route.oldest <= version <= route.newest:
                why = f"of this API, versions {route.oldest} to {route.newest} are served"
        self.report_fault(connection, f"{what}: {why}")
        return CloseConnection(why)

    def _not_loaded(self, connection: ConnectionInfo, flaw: Exception) -> CloseConnection:
        """Log that an API's module could not be imported at its first request; return the exception to raise.

        The next request tries again: with all file descriptors of the process in use, importing works once one is closed.
        """
        why = f"the code for its request could not be loaded: {type(flaw).__name__}: {flaw}"
        self.report_fault(connection, why)
        return CloseConnection(why)

    def report_fault(self, connection: ConnectionInfo, text: str) -> None:
        """Log why a peer's connection is closed."""
        self.counters.connections.faults += 1
        host, port = connection.peer
        self.fault_log.report(
            logging.WARNING, host, "closing the connection of %s:%d on %s after %s", host, port, connection.listener, text
        )

    def report_eviction(self, connection: ConnectionInfo) -> None:
        """Log that a connection is closed because of the request memory it holds."""
        self.counters.connections.evicted += 1
        host, port = connection.peer
        self.fault_log.report(
            logging.WARNING,
            host,
            "closing the connection of %s:%d on %s: its request comes in too slowly, while others wait for memory; "
            "queued.max.request.bytes says how much there is",
            host,
            port,
            connection.listener,
        )

    def _report(self, level: int, context: RequestContext, route: Route, text: str, bug: BaseException | None = None) -> None:
        """Log why a request failed, with a traceback if the cause is our bug."""
        host, port = context.connection.peer
        line = "%s version %d (correlation id %d, client id %r) from %s:%d on %s failed: %s"
        request = (route.name, context.version, context.correlation_id, context.client_id)
        facts = (*request, host, port, context.connection.listener, text)
        if bug is None:
            self.fault_log.report(level, host, line, *facts)
        else:
            self.fault_log.report_bug(level, bug, line, *facts)


def _refusal_text(error: KafkaError) -> str:
    return f"{error_name(error.code)}: {error}"


def _hold(name: str, context: RequestContext, size_bytes: int, began_s: float, held_s: float) -> RequestHold:
    return RequestHold(began_s, held_s, name, context.version, size_bytes, context.client_id, context.connection)
