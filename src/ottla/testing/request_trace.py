"""The last requests that clients sent to a test broker, and how they ended: shown with a failed test.

Wraps two methods of the node's pipeline. A request costs a copy of its first bytes; it is decoded once a test has failed.
Requests of the test's own helpers and of other nodes are left out. Runs on the node's event loop.
"""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING, Any, Final, cast

from ottla.broker.requests.context import ConnectionInfo, RequestContext
from ottla.broker.requests.refusals import summary_of
from ottla.broker.requests.topics import subjects
from ottla.errors import DecodeError, KafkaError
from ottla.errors.codes import error_name
from ottla.testing.fault_rules import HELPER_CLIENT_ID
from ottla.testing.logs import stamp
from ottla.wire.apis import APIS
from ottla.wire.base import Message, UnsupportedVersion
from ottla.wire.headers import parse_request, read_request_header

if TYPE_CHECKING:
    from ottla.broker.net.listeners import Listeners
    from ottla.broker.requests.parked import Parked
    from ottla.broker.requests.pipeline import RequestPipeline, Route
    from ottla.broker.services import Services
    from ottla.wire.base import Part

REQUESTS_KEPT: Final = 200
REPEATS_MERGED: Final = 3
_KEPT_BYTES: Final = 4096
"""Of larger requests only the header is shown."""
_SUBJECTS_SHOWN: Final = 4
_FIELDS_SHOWN: Final = (
    *("acks", "group_id", "member_epoch", "generation_id", "generation_id_or_member_epoch", "transactional_id"),
    *("key", "coordinator_keys"),
)
_HELPER: Final = HELPER_CLIENT_ID.encode()
_HEADER_BYTES: Final = 10
"""API key, version, correlation id and the length of the client id, which follows."""


class TracedRequest:
    """One request: its first bytes, and its outcome in words, once it has one."""

    __slots__ = ("at", "connection", "correlation", "frame", "frame_bytes", "outcome")

    def __init__(self, at: float, connection: ConnectionInfo, frame: bytearray) -> None:
        self.at = at
        self.connection = connection
        self.correlation = bytes(frame[4:8])
        self.frame = bytes(frame[:_KEPT_BYTES])
        self.frame_bytes = len(frame)
        self.outcome: str | None = None


class RequestTrace:
    """The last requests of one node's clients."""

    def __init__(self, pipeline: RequestPipeline, listeners: Listeners, node_listener: str | None) -> None:
        self._pipeline = pipeline
        self._listeners = listeners
        self._dispatch, self._conclude = pipeline.handle, pipeline.conclude
        self._node_listener = node_listener
        self._requests: deque[TracedRequest] = deque(maxlen=REQUESTS_KEPT)
        # The pipeline has no hooks for this, so that a node in production does not pay for them.
        pipeline.handle = self.handle  # type: ignore[method-assign]
        pipeline.conclude = self.conclude  # type: ignore[method-assign]

    def handle(self, connection: ConnectionInfo, frame: bytearray) -> list[Part] | Parked | None:
        is_clients = not connection.is_controller_listener and connection.listener != self._node_listener
        if not is_clients or frame.startswith(_HELPER, _HEADER_BYTES):
            return self._dispatch(connection, frame)
        traced = TracedRequest(time.time(), connection, frame)
        self._requests.append(traced)
        try:
            reply = self._dispatch(connection, frame)
        except BaseException as error:
            traced.outcome = f"the connection was closed: {error}"
            raise
        if isinstance(reply, list) and traced.outcome is None:
            traced.outcome = "ok"  # the fast path answered it
        return reply

    def conclude(
        self,
        route: Route,
        context: RequestContext,
        request: Any,
        frame_bytes: int,
        response: Message | None,
        failure: BaseException | None,
        *more: Any,
        **named: Any,
    ) -> list[Part] | None:
        traced = self._find(context)
        if traced is not None:
            traced.outcome = self._outcome(response, failure)
        return self._conclude(route, context, request, frame_bytes, response, failure, *more, **named)

    def _find(self, context: RequestContext) -> TracedRequest | None:
        correlation = (context.correlation_id & 0xFFFFFFFF).to_bytes(4, "big")
        for traced in reversed(self._requests):
            if traced.connection is context.connection and traced.correlation == correlation:
                return traced
        return None

    def _outcome(self, response: Message | None, failure: BaseException | None) -> str:
        if isinstance(failure, KafkaError):
            return f"{error_name(failure.code)}: {failure}"
        if failure is not None:
            return f"the connection was closed: {failure or type(failure).__name__}"
        return "ok" if response is None else summary_of(response, self._pipeline._topic_name) or "ok"

    def lines(self, since: float) -> list[str]:
        """The requests since a time, the oldest first. Those that a client repeats are one line."""
        open_ids = {each.info.id for each in self._listeners.connections}
        told = [
            (each.at, describe_request(self._services, each), each.outcome or _waiting(each, open_ids))
            for each in self._requests
            if each.at >= since
        ]
        times: dict[tuple[str, str], list[float]] = {}
        for at, what, outcome in told:
            times.setdefault((what, outcome), []).append(at)
        lines = []
        for at, what, outcome in told:
            each = times[what, outcome]
            if len(each) < REPEATS_MERGED:
                lines.append(f"{stamp(at)} {what} → {outcome}")
            elif at == each[0]:
                lines.append(f"{stamp(at)} {what} → {outcome} ({len(each)} times, the last at {stamp(each[-1])})")
        return lines

    @property
    def _services(self) -> Services:
        return cast("Services", self._pipeline.services)


def _waiting(traced: TracedRequest, open_ids: set[int]) -> str:
    if traced.connection.id in open_ids:
        return f"no answer for {time.time() - traced.at:.1f} s now"
    return "no answer before the client closed the connection"


def describe_request(services: Services, traced: TracedRequest) -> str:
    """A request in words: client, API, version, topics and the fields that tell requests of an API apart."""
    host, port = traced.connection.peer
    try:
        header, _ = read_request_header(traced.frame)
    except DecodeError:
        return f"{host}:{port} a frame of {traced.frame_bytes} bytes that is no request"
    key, version = header.request_api_key, header.request_api_version
    head = f"{header.client_id or 'a client without id'} ({host}:{port}) {APIS[key].name} version {version}"
    if traced.frame_bytes > len(traced.frame):
        return f"{head} of {traced.frame_bytes} bytes"
    try:
        _, request = parse_request(traced.frame)
    except (DecodeError, UnsupportedVersion):
        return f"{head}, which cannot be decoded"
    context = RequestContext(services, traced.connection, key, version, header.correlation_id, header.client_id, received_s=0.0)
    return " ".join([head, *details(context, request)])


def details(context: RequestContext, request: Message) -> list[str]:
    """The fields of a request that matter to its reader, as words."""
    shown = [
        f"{name}={value if isinstance(value, int | str) else ','.join(map(str, value))}"
        for name in _FIELDS_SHOWN
        if (value := getattr(request, name, None)) not in (None, "", [])
    ]
    named = [name or "?" if index is None else f"{name or '?'}-{index}" for name, index in subjects(context, request)]
    if named:
        more = len(named) - _SUBJECTS_SHOWN
        shown.insert(0, ", ".join(named[:_SUBJECTS_SHOWN]) + (f" and {more} more" if more > 0 else ""))
    return shown
