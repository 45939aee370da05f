"""Memory limit for the requests of all connections together: those coming in, and those being handled.

A hundred peers may each announce a frame of 100 MB: without a bound on the sum, slow or hostile senders take all memory. Frames
of up to 64 KB are not counted; the number of connections bounds them. Larger frames count with the size of their buffers, which
grow as bytes come (`wire/framing.py`):

- Up to half of the limit, every step is granted.
- Above half, only small steps are granted: a frame still grows, but the announced length alone takes little.
- At the limit, a connection that needs more is not read from. It is woken, in order, when memory comes back.
- While a connection waits, those whose frames have been coming in for longer than `GRACE_S` are closed: a slow sender must not
  hold the memory that others need. As long as there is room, no connection is closed for being slow.

The fetches of other brokers have memory of their own (`FOLLOWERS_BYTES`): produce requests that hold all of the other may wait
for just these fetches.

`queued.max.request.bytes` sets the limit; the default is four of the largest requests, and at least 256 MB. One event loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ottla.wire.framing import STEP_BYTES_MIN

LIMIT_BYTES_MIN = 256 << 20
REQUESTS_AT_LEAST = 4
GRACE_S = 5.0
FOLLOWERS_BYTES = 64 << 20


class Taker(Protocol):
    """A connection, as `RequestMemory` sees it."""

    def memory_available(self) -> None:
        """Memory came back: ask again."""
        ...

    def evict(self) -> None:
        """Close the connection: others wait for the memory it holds."""
        ...


def request_memory_limit(queued_max_request_bytes: int, socket_request_max_bytes: int) -> int:
    """How many bytes all requests together may take, from `queued.max.request.bytes` and `socket.request.max.bytes`."""
    if queued_max_request_bytes > 0:
        return queued_max_request_bytes
    return max(LIMIT_BYTES_MIN, REQUESTS_AT_LEAST * socket_request_max_bytes)


class RequestMemory:
    """The request memory of one node."""

    __slots__ = ("_incoming_since_s", "_on_short", "_waiting", "for_followers", "limit_bytes", "used_bytes")

    def __init__(
        self, queued_max_request_bytes: int, socket_request_max_bytes: int, on_short: Callable[[], None] | None = None
    ) -> None:
        """`on_short` is called when a connection begins to wait: from then on `evict_slow` has to be called regularly."""
        self._on_short = on_short
        self.limit_bytes = request_memory_limit(queued_max_request_bytes, socket_request_max_bytes)
        self.for_followers: RequestMemory | None = None
        """The memory for the fetches of other brokers, if they have their own."""
        self.used_bytes = 0
        self._waiting: dict[Taker, None] = {}
        self._incoming_since_s: dict[Taker, float] = {}

    @property
    def is_short(self) -> bool:
        """Whether a connection waits for memory."""
        return bool(self._waiting)

    def take(self, size_bytes: int) -> bool:
        """Take memory; False if there is not enough. A small step is granted while anything is left."""
        used = self.used_bytes + size_bytes
        if used > self.limit_bytes >> 1 and (size_bytes > 2 * STEP_BYTES_MIN or self.used_bytes >= self.limit_bytes):
            return False
        self.used_bytes = used
        return True

    def give(self, size_bytes: int) -> None:
        """Give memory back; waiting connections ask again."""
        self.used_bytes -= size_bytes
        if self._waiting and self.used_bytes < self.limit_bytes:
            waiting, self._waiting = self._waiting, {}
            for taker in waiting:
                taker.memory_available()

    def wait(self, taker: Taker) -> None:
        """Call `taker.memory_available` when memory has come back."""
        was_short = self.is_short
        self._waiting[taker] = None
        if not was_short and self._on_short is not None:
            self._on_short()

    def note_incoming(self, taker: Taker, now_s: float) -> None:
        """A large frame has begun to come in from `taker`."""
        self._incoming_since_s[taker] = now_s

    def forget_incoming(self, taker: Taker) -> None:
        """The large frame from `taker` is complete, or `taker` has ended."""
        self._incoming_since_s.pop(taker, None)
        self._waiting.pop(taker, None)

    def evict_slow(self, now_s: float) -> None:
        """Called every second while a connection waits: close those whose frames come in too slowly."""
        if not self._waiting:
            return
        late = [taker for taker, since_s in self._incoming_since_s.items() if now_s - since_s > GRACE_S]
        # A connection that waits for memory is slow through no fault of its own. If only such connections hold the memory,
        # they wait for each other: the older half is closed.
        slow = [taker for taker in late if taker not in self._waiting] or late[: (len(late) + 1) // 2]
        for taker in slow:
            taker.evict()
