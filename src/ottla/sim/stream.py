"""One end of a connection in the simulated network (`net.py` has the hosts and the faults between them).

Bytes arrive in order, with random delays and in random pieces. At most `window_bytes` are in transit or unread; the rest waits
in the sender's queue, as behind full kernel buffers. Calls to the owner of an end run in the context in which that end was
created, so that they belong to the owner's process.
"""

from __future__ import annotations

import asyncio
import errno
from collections import deque
from collections.abc import Sequence
from contextvars import Context, copy_context
from typing import TYPE_CHECKING

from ottla.env.net import Sendable, StreamOwner
from ottla.sim.loop import VirtualLoop

if TYPE_CHECKING:
    from ottla.sim.net import SimNetwork

PIECES_PER_SEND_MAX = 8
BYTE_TYPES = (bytes, bytearray, memoryview)


def reset_error() -> ConnectionResetError:
    return ConnectionResetError(errno.ECONNRESET, "the connection was cut by the simulated network")


class SimStream:
    """`Stream` in memory. `other` is the far end; `owner` is set before the first event."""

    def __init__(
        self, network: SimNetwork, local: tuple[str, int], peer: tuple[str, int], context: Context | None = None
    ) -> None:
        self._network = network
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop), "the simulated network needs virtual time"
        self._loop = loop
        self._context = context if context is not None else copy_context()
        self._queue: deque[Sendable] = deque()
        self._had_queue = False
        self._under_way_bytes = 0  # sent, and not yet received by the other side's owner
        self._last_arrival_s = 0.0
        self._inbox: deque[memoryview] = deque()
        self._held: deque[tuple[memoryview | None, OSError | None]] = deque()  # behind a partition
        self._end: tuple[OSError | None] | None = None  # of the incoming bytes, once the inbox is empty
        self._is_reading = False
        self._is_closing = False
        self.is_over = False
        self._is_lost = False
        self.owner: StreamOwner | None = None
        self.other: SimStream
        self.local = local
        self.peer = peer
        self.unsent_bytes = 0

    def peer_certificate(self) -> bytes | None:
        return None

    # Sending

    def send(self, parts: Sequence[Sendable]) -> None:
        if self.is_over or self._is_closing:
            return
        if self._end is not None and self._end[0] is not None:
            self._finish_soon(self._end[0])  # the peer reset it; a paused stream finds out when it sends
            return
        self._queue.extend(part for part in parts if len(part))
        self.unsent_bytes += sum(map(len, parts))
        self._push()
        self._had_queue = self._had_queue or bool(self._queue)

    def _push(self) -> None:
        """Send as much of the queue as the window has room for."""
        window_bytes = self._network.weather.window_bytes
        room = window_bytes - self._under_way_bytes
        if room < min(self.unsent_bytes, window_bytes // 2):
            return  # wait for more room: filling every gap would end in pieces of single bytes
        while self._queue and room > 0:
            head = self._queue.popleft()
            try:
                view = memoryview(head if isinstance(head, BYTE_TYPES) else head.read())
            except OSError as error:
                self.put_on_the_way(None, None)
                self._finish_soon(error)
                return
            if len(view) > room:
                self._queue.appendleft(view[room:])
                view = view[:room]
            room -= len(view)
            self.unsent_bytes -= len(view)
            self._under_way_bytes += len(view)
            for piece in self._network.pieces(view):
                if self._network.strikes():
                    self._loop.call_at_true(self._arrival_s(), self._cut, context=self._context)
                self.put_on_the_way(memoryview(bytes(piece)), None)

    def put_on_the_way(self, piece: memoryview | None, error: OSError | None) -> None:
        """Schedule the arrival of bytes, or of the stream's end (None), at the other side."""
        # What is sent to a host without power arrives there, not at its dead process, whose timers never fire.
        context = self._network.context if self.other._is_lost else self.other._context
        self._loop.call_at_true(self._arrival_s(), self.other.arrive, piece, error, context=context)

    def _arrival_s(self) -> float:
        # Never two at the same time: the loop does not order timers with equal times.
        self._last_arrival_s = max(self._last_arrival_s + 1e-9, self._loop.true_time() + self._network.delay_s())
        return self._last_arrival_s

    def _room_again(self, count: int) -> None:
        self._under_way_bytes -= count
        if self.is_over:
            return
        self._push()
        if self.is_over or self._queue:
            return
        if self._is_closing:
            self._send_end()
        elif self._had_queue:
            self._had_queue = False
            if self.owner is not None:
                self.owner.drained()

    # Receiving

    def pause(self) -> None:
        self._is_reading = False

    def resume(self) -> None:
        if not self.is_over and not self._is_closing and not self._is_reading:
            self._is_reading = True
            self._loop.call_soon(self._deliver, context=self._context)

    def arrive(self, piece: memoryview | None, error: OSError | None) -> None:
        """Bytes or the end arrive. While the two hosts are partitioned they are held back."""
        if self._is_lost:
            self._arrive_at_lost(piece, error)
            return
        if self._held or self._network.blocks(self.peer[0], self.local[0]):
            self._held.append((piece, error))
            return
        if self.is_over or self._end is not None:
            return
        if piece is not None:
            self._inbox.append(piece)
        else:
            if error is not None:
                self._inbox.clear()  # a reset discards unread bytes
            self._end = (error,)
        self._deliver()

    def _arrive_at_lost(self, piece: memoryview | None, error: OSError | None) -> None:
        """Like `arrive`, at a host that has lost its power. Behind a partition the peer sends again until it ends."""
        if self._network.blocks(self.peer[0], self.local[0]):
            again_s = self._loop.true_time() + self._network.weather.resend_s_max
            self._loop.call_at_true(again_s, self.arrive, piece, error, context=self._network.context)
        else:
            self._network.lost(self)

    def partition_ended(self) -> None:
        self._loop.call_soon(self._release_held, context=self._context)

    def _release_held(self) -> None:
        held, self._held = self._held, deque()
        for piece, error in held:
            self.arrive(piece, error)

    def _deliver(self) -> None:
        while self._inbox and (self._is_reading or self._is_closing):
            piece = self._inbox.popleft()
            if self._is_closing:
                count = len(piece)
            else:
                assert self.owner is not None
                target = self.owner.buffer()
                count = min(len(target), len(piece))
                target[:count] = piece[:count]
                del target
                if count < len(piece):
                    self._inbox.appendleft(piece[count:])
                self.owner.received(count)
            self._loop.call_soon(self.other._room_again, count, context=self.other._context)
        if self._end is not None and not self._inbox and (self._is_reading or self._is_closing) and not self.is_over:
            self._finish(self._end[0])

    # Closing

    def close(self) -> None:
        if not self.is_over:
            error = reset_error() if self._inbox else None
            self.put_on_the_way(None, error)
            self._finish_soon(None)

    def close_when_sent(self) -> None:
        if self.is_over or self._is_closing:
            return
        self._is_closing = True
        self._is_reading = False
        if not self._queue:
            self._send_end()

    def _send_end(self) -> None:
        self.put_on_the_way(None, None)
        self._finish_soon(None)

    def _cut(self) -> None:
        """The network cuts the connection: both ends get a reset, and bytes in transit are lost."""
        self._network.counts["cuts"] += 1
        self.break_off()

    def break_off(self) -> None:
        """Reset both ends, each in its own context."""
        for end in (self, self.other):
            end._loop.call_soon(end._broken, context=end._context)

    def _broken(self) -> None:
        if not self.is_over:
            self._finish(reset_error())

    def vanish(self, is_lost: bool = False) -> None:
        """The process of this end is gone: end without a call to its owner. `is_lost`: its host has lost its power."""
        self.is_over = True
        self._is_lost = is_lost
        if is_lost and self.other._under_way_bytes > sum(map(len, self._inbox)):
            self._network.lost(self)  # the peer sends again what was on its way
        self._queue.clear()
        self.unsent_bytes = 0
        self._inbox.clear()

    def _finish_soon(self, error: OSError | None) -> None:
        self.vanish()
        self._loop.call_soon(self._report_end, error, context=self._context)

    def _finish(self, error: OSError | None) -> None:
        self.vanish()
        self._report_end(error)

    def _report_end(self, error: OSError | None) -> None:
        self._network.forget(self)
        if self.owner is not None:
            self.owner.ended(error)
