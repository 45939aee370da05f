"""The broker's side of one connection: splits received bytes into frames, dispatches them, sends the replies in order.

Requests are handled in the order they came, and their replies leave in that order. As in Kafka, a request waits until the one
before it is answered; only a Produce request may be handled while Produce requests before it wait (`Parked.lets_pass`). Most
requests are answered at once, so the queues here are empty most of the time.

Three bounds limit the memory of one connection. While a complete request waits for its turn, nothing more is received. While
more than `UNSENT_BYTES_MAX` of replies are unsent, nothing more is handled. Large frames ask for memory before they grow.

Connections share the loop by time, not by the number of requests. Requests that have come together are handled for
`TURN_S`; what is left then waits in the node's scheduler (`requests/scheduler.py`), where connections get one slice after the
other. A connection that has needed the scheduler goes there at once with its next requests, until they take less than a turn.
One event loop, plain calls.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from ottla.broker.requests.context import CloseConnection, ConnectionInfo
from ottla.broker.requests.memory import FrameShare
from ottla.broker.requests.parked import Parked
from ottla.broker.requests.pipeline import RequestPipeline
from ottla.broker.requests.scheduler import FIRST_SLICE_S, SLICE_S
from ottla.env import Sendable, Stream
from ottla.errors import DecodeError
from ottla.wire.base import Part
from ottla.wire.framing import FREE_BYTES, FrameSplitter

PARKED_MAX = 16
"""At most this many requests of one connection wait for their replies; clients send five at a time."""

UNSENT_BYTES_MAX = 256 * 1024
"""With more than this unsent, no further request of the connection is handled until all of it is sent."""

TURN_S = FIRST_SLICE_S
"""How long a connection handles requests in a row, when it does not come from the scheduler."""

SMALL_REPLY_BYTES = 4096
"""Replies up to this size leave in one send, if their requests came together."""

PRODUCE_KEY = b"\0\0"


class Connection:
    """`StreamOwner` of one accepted stream. `on_ended` is called once, when the connection has ended."""

    __slots__ = (
        "_frames",
        "_is_closing",
        "_is_costly",
        "_is_in_scheduler",
        "_is_leaving",
        "_is_paused",
        "_is_pumping",
        "_loop",
        "_memory",
        "_muting",
        "_on_ended",
        "_pipeline",
        "_replies",
        "_splitter",
        "info",
        "is_active",
        "is_making_room",
        "last_active_s",
        "stream",
        "unsent_bytes_seen",
    )

    def __init__(
        self,
        stream: Stream,
        info: ConnectionInfo,
        pipeline: RequestPipeline,
        memory: FrameShare,
        request_bytes_max: int,
        read_ahead: bytearray,
        on_ended: Callable[[Connection], None],
    ) -> None:
        self.stream = stream
        self.info = info
        self._loop = asyncio.get_running_loop()
        self._pipeline = pipeline
        self._memory = memory
        self._splitter = splitter = FrameSplitter(request_bytes_max, read_ahead, self._take_memory)
        if info.login is not None:
            splitter.limit(min(request_bytes_max, info.login.receive_bytes_max))
            info.login.on_open = lambda: splitter.limit(request_bytes_max)
        self._on_ended = on_ended
        info.end_if_gone = self._end_if_gone
        self._frames: deque[bytearray] = deque()  # complete, not handled yet
        self._replies: deque[Parked | list[Part]] = deque()  # begins with a parked request
        self._is_paused = False
        self._is_pumping = False
        self._is_in_scheduler = False
        self._is_costly = False
        self._is_leaving = False
        self._is_closing = False
        self._muting: asyncio.TimerHandle | None = None
        self.is_active = True
        """Whether bytes went in or out since the scan for idle connections last set this to False."""
        self.is_making_room = False
        """Closed because of max.connections; `on_ended` may not have been called yet."""
        self.last_active_s = 0.0
        self.unsent_bytes_seen = 0
        stream.resume()

    # Calls from the stream

    def buffer(self) -> memoryview:
        return self._splitter.writable()

    def received(self, count: int) -> None:
        self.is_active = True
        splitter = self._splitter
        reserved_before = splitter.reserved_bytes
        try:
            frames = splitter.received(count)
        except DecodeError as fault:
            self._pipeline.report_fault(self.info, f"{fault}")
            self._end_after_fault()
            return
        if splitter.reserved_bytes != reserved_before or splitter.is_starved:
            self._follow_large_frame(reserved_before)
        if frames:
            self._frames.extend(frames)
            if self._is_costly:
                self._wait_for_slice()
                self._pause_or_resume()
            elif len(self._frames) == 1 and not self._replies and not self.stream.unsent_bytes:
                self._answer_only_one()
            else:
                self._pump()

    def _answer_only_one(self) -> None:
        """Do what `_pump` would do for the most frequent case: one request, with none before it and none behind it."""
        try:
            out = self._handle([])
        except CloseConnection as closing:
            self._send_last([], closing)
            return
        if out:
            self.stream.send(out)
        if self.info.muted_until_s:
            self._mute()

    def drained(self) -> None:
        self.is_active = True
        self._pump()

    def ended(self, error: OSError | None) -> None:
        self._is_closing = True
        self.info.end_if_gone = None
        self._drop_work()
        self._on_ended(self)

    def _end_if_gone(self) -> None:
        """Nobody awaits what is done for a client that has gone. Records sent with acks=0 are stored if it said goodbye."""
        or_half = all(not isinstance(reply, Parked) or reply.is_awaited for reply in self._replies)
        if not self._is_closing and self.stream.has_lost_peer(or_half=or_half):
            self.end()

    # Handling

    def _pump(self, seconds: float = TURN_S) -> None:
        """Handle the requests that may be handled, send the replies that are ready, then pause or resume receiving."""
        if self._is_pumping or self._is_closing:
            return
        self._is_pumping = True
        out: list[Sendable] = []
        try:
            out = self._collect_replies(out)
            if self._frames and not self._is_in_scheduler:
                out = self._handle_for(seconds, out)
        except CloseConnection as closing:
            self._is_pumping = False
            self._send_last(out, closing)
            return
        self._is_pumping = False
        if out:
            self.stream.send(out)
        if self.info.muted_until_s and not self._is_leaving:
            self._mute()
        self._pause_or_resume()
        if self._is_leaving and not self._frames and not self._replies:
            self._is_closing = True
            self.stream.close_when_sent()

    def _handle_for(self, seconds: float, out: list[Sendable]) -> list[Sendable]:
        """Handle requests for that long, then wait in the scheduler with the rest."""
        now_s = self._loop.time
        until_s = now_s() + seconds
        while self._frames and self._may_handle(self._frames[0]):
            out = self._handle(out)
            if now_s() >= until_s:
                self._is_costly = True
                if self._frames:
                    self._wait_for_slice()
                break
        return out

    def _wait_for_slice(self) -> None:
        if not self._is_in_scheduler:
            self._is_in_scheduler = True
            self._pipeline.scheduler.put(self.info.id, self._take_slice)

    def _take_slice(self) -> None:
        """It is this connection's turn in the scheduler."""
        self._is_in_scheduler = False
        begun_s = self._loop.time()
        self._pump(SLICE_S)
        self._is_costly = self._is_in_scheduler or self._loop.time() - begun_s >= TURN_S

    def _pause_or_resume(self) -> None:
        if self._frames or self._splitter.is_starved or self._muting is not None:
            self._is_paused = True
            self.stream.pause()
        elif self._is_paused and not self._is_leaving:
            self._is_paused = False
            self.stream.resume()

    def _may_handle(self, frame: bytearray) -> bool:
        if self.stream.unsent_bytes > UNSENT_BYTES_MAX or (self.info.muted_until_s and not self._is_leaving):
            return False
        if not self._replies:
            return True
        last = self._replies[-1]
        # The replies before the last one let requests pass too, else the last one would not have been handled.
        return len(self._replies) < PARKED_MAX and frame[:2] == PRODUCE_KEY and (not isinstance(last, Parked) or last.lets_pass)

    def _handle(self, out: list[Sendable]) -> list[Sendable]:
        """Handle the next request; return what is to be sent now."""
        frame = self._frames[0]
        reply = self._pipeline.handle(self.info, frame)
        self._frames.popleft()
        if isinstance(reply, Parked):
            reply.on_ready = self._pump
            self._replies.append(reply)
            if not self._is_leaving:
                return out
            reply.pending.answer_now()
            return self._collect_replies(out)
        if len(frame) > FREE_BYTES:
            self._memory.give(len(frame))
        if reply is None:
            return out
        if self._replies:
            self._replies.append(reply)
            return self._collect_replies(out)
        return self._add(reply, out)

    def _collect_replies(self, out: list[Sendable]) -> list[Sendable]:
        """Add the replies that are ready to `out`, up to the first that is not."""
        replies = self._replies
        while replies:
            reply = replies[0]
            if isinstance(reply, Parked):
                if not reply.is_ready:
                    break
                replies.popleft()
                self._give_back(reply.frame_bytes)
                if reply.fault is not None:
                    raise reply.fault
                if reply.parts is not None:
                    out = self._add(reply.parts, out)
            else:
                replies.popleft()
                out = self._add(reply, out)
        return out

    def _add(self, parts: list[Part], out: list[Sendable]) -> list[Sendable]:
        """Add a reply to `out`. A large one is sent at once, with those before it, so that `unsent_bytes` counts it."""
        out += parts
        if len(parts) == 1 and len(parts[0]) <= SMALL_REPLY_BYTES:
            return out
        sent = out[:]
        out.clear()  # the same list: what was sent must not be sent again if a later request closes the connection
        self.stream.send(sent)
        return out

    # Muting

    def _mute(self) -> None:
        """Read and handle nothing until the client's throttle time is over."""
        if self._muting is None:
            self._is_paused = True
            self.stream.pause()
            self._muting = self._loop.call_at(self.info.muted_until_s, self._unmute)

    def _unmute(self) -> None:
        self._muting = None
        if self._loop.time() < self.info.muted_until_s:
            self._mute()  # a later reply has prolonged it
            return
        self.info.muted_until_s = 0.0
        self._pump()

    # Large frames

    def _take_memory(self, size_bytes: int) -> bool:
        """Take memory for a large frame; followers have their own, so that those who wait for them cannot hold them up."""
        followers = self._memory.for_followers
        if (
            followers is not None
            and self.info.is_follower
            and not (self._splitter.reserved_bytes or self._frames or self._replies)
        ):
            self._memory = followers  # nothing is taken from the other
        return self._memory.take(size_bytes)

    def _follow_large_frame(self, reserved_before: int) -> None:
        """Tell the budget that a large frame has begun, has grown, cannot grow, or is complete."""
        splitter, memory = self._splitter, self._memory
        if splitter.is_between_frames:
            memory.forget_incoming(self)
        elif reserved_before == 0:
            memory.note_incoming(self, self._loop.time())
        if splitter.is_starved:
            self._is_paused = True
            self.stream.pause()
            memory.wait(self)

    def memory_available(self) -> None:
        if not self._splitter.grow():
            self._memory.wait(self)
        elif not self._frames and not self._is_leaving and self._muting is None:
            self._is_paused = False
            self.stream.resume()

    def evict(self) -> None:
        self._pipeline.report_eviction(self.info)
        self.end()

    # Closing

    def _send_last(self, out: list[Sendable], closing: CloseConnection) -> None:
        """Send the replies that are ready, and the last one if there is one; then end."""
        out += closing.last_reply or ()
        if out:
            self.stream.send(out)
        self.end()

    def _end_after_fault(self) -> None:
        """End after bytes that are no frame. Before the login it takes as long as a failed login: who guesses, waits."""
        if self.info.login is None:
            self.end()
            return
        self._is_closing = True
        self.stream.pause()
        self._loop.call_later(self.info.login.failure_delay_ms / 1000, self.end)

    def leave(self) -> None:
        """Receive nothing more, answer what was received, then end. Fetches that wait are answered with what there is."""
        if self._frames or self._replies or self.stream.unsent_bytes:
            self._is_leaving = True
            self.stream.pause()
            for reply in list(self._replies):
                if isinstance(reply, Parked) and not reply.is_ready:
                    reply.pending.answer_now()
            self._pump()
        else:
            self.end()

    def end(self) -> None:
        """Do no more work; send what is queued, then end."""
        self._is_closing = True
        self._drop_work()
        if self.stream.unsent_bytes:
            self.stream.close_when_sent()
        else:
            self.stream.close()

    def _drop_work(self) -> None:
        replies, self._replies = self._replies, deque()
        for reply in replies:
            if isinstance(reply, Parked):
                reply.abandon()
                self._give_back(reply.frame_bytes)
        frames, self._frames = self._frames, deque()
        for frame in frames:
            self._give_back(len(frame))
        if self._muting is not None:
            self._muting.cancel()
        self._memory.forget_incoming(self)
        if self.info.login is not None:
            self.info.login.on_open = None
        # Connection and stream refer to each other: without this the buffer lives until the garbage collector runs.
        self._memory.give(self._splitter.abandon())

    def _give_back(self, frame_bytes: int) -> None:
        if frame_bytes > FREE_BYTES:
            self._memory.give(frame_bytes)
