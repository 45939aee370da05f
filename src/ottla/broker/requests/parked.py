"""`Parked`: a request whose reply is not ready. Its connection keeps it in its place among the replies.

A response with many elements is encoded in a worker thread, where others can run meanwhile: on the loop 60,000 elements would
take 0.2 s. So are the refusals of requests with many elements.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.broker.requests.context import CloseConnection, Handled, Pending, RequestContext
from ottla.broker.requests.scheduler import SMALL_CALL_BYTES, SlicedWork
from ottla.env import OffLoop
from ottla.errors import KafkaError, drop_frames
from ottla.wire.api_table import ApiKey
from ottla.wire.base import Message, Part
from ottla.wire.elements import has_many_elements

if TYPE_CHECKING:
    from ottla.broker.requests.pipeline import RequestPipeline, Route
    from ottla.env import Steps

PARSED_ON_LOOP_BYTES = 32 * 1024
"""Larger requests are parsed in a worker thread, Produce only with many elements: 60,000 take 0.1 to 0.2 s."""

NO_ACKS, ANY_ACKS = 0, 1

PARSED_BYTES_PER_BYTE = 25
PARSED_BYTES_MAX = 32 << 20
"""How much memory a parsed request and its response take: for each element up to 250 bytes, and 250 more in the response."""


class Prepared(NamedTuple):
    """A reply made in a worker thread."""

    parts: list[Part]
    response: Message
    refused: str | None
    """The parts of the request that were refused, for the log."""


class Parked:
    """A request that waits for its response, and a response that waits for its encoding."""

    __slots__ = (
        "_context",
        "_pipeline",
        "_preparing",
        "_route",
        "fault",
        "frame_bytes",
        "is_ready",
        "on_ready",
        "parts",
        "pending",
        "request",
    )

    def __init__(
        self, pipeline: RequestPipeline, route: Route, context: RequestContext, request: Any, frame_bytes: int, pending: Pending
    ) -> None:
        self._pipeline = pipeline
        self._route = route
        self._context = context
        self._preparing: SlicedWork | None = None
        self.request = request
        """None until it is parsed, if that is done off the loop."""
        self.frame_bytes = frame_bytes
        self.pending = pending
        self.is_ready = False
        self.parts: list[Part] | None = None
        self.fault: CloseConnection | None = None
        """Set instead of `parts` if the connection has to end."""
        self.on_ready: Callable[[], None] | None = None
        pending.deliver_to(self._deliver)

    @property
    def lets_pass(self) -> bool:
        """Whether a Produce request behind this one may be handled before this one is answered.

        Kafka handles one request of a connection at a time. Produce requests are appended in order when they are handled, so
        the next one may be appended while this one waits for replicas or the disk.
        """
        return self._route.key == ApiKey.PRODUCE and not self.pending.holds_back

    @property
    def is_awaited(self) -> bool:
        """Whether a client waits for the response. One that wants none may have gone, and wants its records stored."""
        return getattr(self.request, "acks", ANY_ACKS) != NO_ACKS

    def abandon(self) -> None:
        """The connection has gone."""
        self.on_ready = None
        self.pending.abandon()
        if self._preparing is not None:
            self._preparing.abandon()

    def _deliver(self, response: Message | None, failure: BaseException | None) -> None:
        pending = self.pending
        self._pipeline.count_usage(self._route, self._context, self.frame_bytes, response, failure, is_parked=True)
        if pending.may_be_large and pending.encoded is None and self._is_large(response, failure):
            scheduler = self._pipeline.scheduler
            self._preparing = SlicedWork(scheduler, self._context, self._prepare(response, failure))
            self._preparing.run(scheduler.now_s())
        else:
            self._conclude(response, failure)

    def _is_large(self, response: Message | None, failure: BaseException | None) -> bool:
        if response is not None:
            return has_many_elements(response)
        return isinstance(failure, KafkaError) and self.frame_bytes > PARSED_ON_LOOP_BYTES  # a refusal names all its elements

    def _prepare(self, response: Message | None, failure: BaseException | None) -> Steps[Handled]:
        call = partial(self._pipeline.prepare, self._route, self._context, self.request, response, failure)
        prepared: Prepared | None = None
        try:
            prepared = yield OffLoop(call, SMALL_CALL_BYTES)
        except CloseConnection as fault:
            response, failure = None, fault
        except Exception:
            pass  # a bug of the handler's: `conclude` tries again, and reports it
        self._preparing = None
        self._conclude(response, failure, prepared)
        return None

    def _conclude(self, response: Message | None, failure: BaseException | None, prepared: Prepared | None = None) -> None:
        try:
            self.parts = self._pipeline.conclude(
                self._route,
                self._context,
                self.request,
                self.frame_bytes,
                response,
                failure,
                prepared,
                self.pending.encoded,
                is_parked=True,
            )
            if self.pending.ends_connection:
                self.fault = CloseConnection("the login has failed", self.parts)
        except CloseConnection as fault:
            self.fault = drop_frames(fault)  # they hold the frame, and this holds the fault
        self.pending.give_back()
        self.is_ready = True
        if self.on_ready is not None:
            self.on_ready()
