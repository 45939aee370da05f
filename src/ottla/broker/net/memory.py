"""How much memory requests may take, all connections together: those coming in, and those being worked on.

A peer may announce a frame of 100 MB, and a hundred peers may: without a bound on the sum, slow or hostile senders take all the
memory there is. Frames of up to 64 KB are not counted; they are bounded by the number of connections. Larger ones are, with
what their buffers have grown to (`wire/framing.py` lets them grow as bytes come):

- Up to half of the limit, everybody gets what he asks for.
- Above, only small steps are granted: a frame still gets on, but an announcement alone no longer takes much.
- At the limit, who needs more waits, unread, and is woken in order as memory comes back.
- If somebody waits, those whose frames have been coming in for longer than a grace are cut off: a slow sender must not hold
  what others need. Nobody is cut off for being slow as long as there is room.

`queued.max.request.bytes` sets the limit; without it, it is four of the largest requests, and at least 256 MB. One event loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ottla.wire.framing import STEP_BYTES_MIN

LIMIT_BYTES_MIN = 256 << 20
REQUESTS_AT_LEAST = 4
GRACE_S = 5.0


class Taker(Protocol):
    """A connection, as far as memory is concerned."""

    def memory_available(self) -> None:
        """Ask again."""
        ...

    def evict(self) -> None:
        """End: others wait for what this one holds."""
        ...


def request_memory_limit(queued_max_request_bytes: int, socket_request_max_bytes: int) -> int:
    """How much all requests may take, in bytes, by the settings of these names."""
    if queued_max_request_bytes > 0:
        return queued_max_request_bytes
    return max(LIMIT_BYTES_MIN, REQUESTS_AT_LEAST * socket_request_max_bytes)


class RequestMemory:
    """One node's."""

    __slots__ = ("_incoming_since_s", "_on_short", "_waiting", "limit_bytes", "used_bytes")

    def __init__(
        self, queued_max_request_bytes: int, socket_request_max_bytes: int, on_short: Callable[[], None] | None = None
    ) -> None:
        """`on_short` is called when somebody begins to wait: from then on `evict_slow` is to be called once in a while."""
        self._on_short = on_short
        self.limit_bytes = request_memory_limit(queued_max_request_bytes, socket_request_max_bytes)
        self.used_bytes = 0
        self._waiting: dict[Taker, None] = {}
        self._incoming_since_s: dict[Taker, float] = {}

    @property
    def is_short(self) -> bool:
        """Whether somebody waits."""
        return bool(self._waiting)

    def take(self, size_bytes: int) -> bool:
        """Take memory, if there is so much. A first small step is always granted while anything is left."""
        used = self.used_bytes + size_bytes
        if used > self.limit_bytes >> 1 and (size_bytes > 2 * STEP_BYTES_MIN or self.used_bytes >= self.limit_bytes):
            return False
        self.used_bytes = used
        return True

    def give(self, size_bytes: int) -> None:
        """Give memory back; who waits may ask again."""
        self.used_bytes -= size_bytes
        if self._waiting and self.used_bytes < self.limit_bytes:
            waiting, self._waiting = self._waiting, {}
            for taker in waiting:
                taker.memory_available()

    def wait(self, taker: Taker) -> None:
        """Be told when it is worth asking again."""
        was_short = self.is_short
        self._waiting[taker] = None
        if not was_short and self._on_short is not None:
            self._on_short()

    def note_incoming(self, taker: Taker, now_s: float) -> None:
        """A large frame has begun to come in from `taker`."""
        self._incoming_since_s[taker] = now_s

    def forget_incoming(self, taker: Taker) -> None:
        """It is complete, or its sender is gone."""
        self._incoming_since_s.pop(taker, None)
        self._waiting.pop(taker, None)

    def evict_slow(self, now_s: float) -> None:
        """Called once in a while: cut off who is slow, if somebody waits."""
        if not self._waiting:
            return
        late = [taker for taker, since_s in self._incoming_since_s.items() if now_s - since_s > GRACE_S]
        # Who waits for memory himself cannot get on. But if nobody else holds it, the older half of them has to go.
        slow = [taker for taker in late if taker not in self._waiting] or late[: (len(late) + 1) // 2]
        for taker in slow:
            taker.evict()
