"""One budget for the memory of all requests of a node, in shares. A hundred peers may each announce a frame of 100 MB: without
a bound on the sum, slow or hostile senders take all memory.

A request takes memory at up to four stations, and each station has a share of its own, so that no request waits for itself:

    frames      while it comes in and is handled: its bytes                       queued.max.request.bytes, at least 256 MB
    requests    once it is parsed, until it is answered                           64 MB, and as much for those up to 4 MB
    responses   while a long listing is made for it                               64 MB
    waiting     instead of `requests`, when all is done and it only waits         64 MB

The fetches of other brokers have shares of their own of the first two (64 MB each), because requests that hold all of the
others may wait for just these fetches. A request that finds its share used up waits, in turns of connections; what others have
is never taken away, but from slow senders and long waits when others need the memory (`FrameShare.evict_slow`, `WaitingShare`).

Frames of up to 64 KB are not counted; the number of connections bounds them. Larger frames count with the size of their
buffers, which grow as bytes come (`wire/framing.py`):

- Up to half of the limit, every step is granted.
- Above half, only small steps are granted: a frame still grows, but the announced length alone takes little.
- At the limit, a connection that needs more is not read from. It is woken, in order, when memory comes back.
- While a connection waits, those whose frames have been coming in for longer than `GRACE_S` are closed: a slow sender must not
  hold the memory that others need. As long as there is room, no connection is closed for being slow.

`queued.max.request.bytes` limits the frames; the default is four of the largest requests, and at least 256 MB. One event loop.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from ottla.wire.framing import STEP_BYTES_MIN

if TYPE_CHECKING:
    from ottla.broker.requests.scheduler import SlicedWork
    from ottla.env import Reserve, Workers

SHARE_BYTES = 64 << 20
"""Of each share but that of the frames."""
SMALL_REQUEST_BYTES = 4 << 20
"""Requests that take up to this much memory do not wait for larger ones."""
FRAMES_BYTES_MIN = 256 << 20
LARGEST_FRAMES_MIN = 4
GRACE_S = 5.0
BURST_BYTES = 16 << 20
QUIET_S = 2.0
QUIET_BYTES = 1 << 20
"""It is quiet when no more than this is freed in `QUIET_S`."""

T = TypeVar("T")


class RequestMemory:
    """The budget of one node."""

    __slots__ = ("_followers", "_large_requests", "_responses", "_small_requests", "frames", "waiting")

    def __init__(self) -> None:
        self.frames: FrameShare | None = None
        """The frames of clients; None until `limit_frames`."""
        self._small_requests = Share(SHARE_BYTES)
        self._large_requests = Share(SHARE_BYTES)
        self._followers = Share(SHARE_BYTES)
        self._responses = Share(SHARE_BYTES)
        self.waiting = WaitingShare(SHARE_BYTES)

    def limit_frames(
        self, queued_max_request_bytes: int, socket_request_max_bytes: int, on_short: Callable[[], None]
    ) -> FrameShare:
        """Set the limits of frames; `on_short`: see `FrameShare`."""
        self.frames = FrameShare(queued_max_request_bytes, socket_request_max_bytes, on_short)
        self.frames.for_followers = FrameShare(SHARE_BYTES, socket_request_max_bytes, on_short)
        return self.frames

    def reserve(self, owner: int, work: SlicedWork, wanted: Reserve) -> bool:
        """Whether the memory is there now; else `work` is resumed when it is."""
        if not wanted.is_for_request:
            share = self._responses
        elif wanted.is_of_follower:
            share = self._followers
        else:
            share = self._small_requests if wanted.memory_bytes <= SMALL_REQUEST_BYTES else self._large_requests
        return share.reserve(owner, work, wanted.memory_bytes)

    def pass_over_abandoned(self) -> None:
        """A work that may have waited for memory has gone: those behind it need not wait for it."""
        for share in (self._responses, self._small_requests, self._large_requests, self._followers):
            share.give_back(0)

    def is_for_requests(self, share: Share | None) -> bool:
        """Whether memory from this share is kept until the request is answered."""
        return share is not None and share is not self._responses


class RoundRobin(Generic[T]):
    """A queue in which owners take turns; of each owner the first come is the first served."""

    __slots__ = ("_by_owner",)

    def __init__(self) -> None:
        self._by_owner: dict[int, deque[T]] = {}

    def __bool__(self) -> bool:
        return bool(self._by_owner)

    def put(self, owner: int, item: T) -> None:
        self._by_owner.setdefault(owner, deque()).append(item)

    @property
    def first(self) -> T:
        """What `take` takes next."""
        return next(iter(self._by_owner.values()))[0]

    def take(self) -> T:
        owner = next(iter(self._by_owner))
        items = self._by_owner.pop(owner)
        item = items.popleft()
        if items:
            self._by_owner[owner] = items  # behind all others
        return item


class Share:
    """Memory that sliced works reserve, in turns of their connections."""

    __slots__ = ("_free_bytes", "_size_bytes", "_waiting")

    def __init__(self, size_bytes: int) -> None:
        self._size_bytes = self._free_bytes = size_bytes
        self._waiting: RoundRobin[tuple[SlicedWork, int]] = RoundRobin()

    def reserve(self, owner: int, work: SlicedWork, memory_bytes: int) -> bool:
        memory_bytes = min(memory_bytes, self._size_bytes)
        if not self._waiting and memory_bytes <= self._free_bytes:
            self._take(work, memory_bytes)
            return True
        self._waiting.put(owner, (work, memory_bytes))
        return False

    def give_back(self, memory_bytes: int) -> None:
        """Reserved memory is free again: resume the works that it is enough for."""
        self._free_bytes += memory_bytes
        waiting = self._waiting
        while waiting and (waiting.first[0].is_done or waiting.first[1] <= self._free_bytes):
            work, wanted_bytes = waiting.take()
            if not work.is_done:
                self._take(work, wanted_bytes)
                work.resume(None, None)

    def _take(self, work: SlicedWork, memory_bytes: int) -> None:
        self._free_bytes -= memory_bytes
        work.reserved_bytes, work.reserved_in = memory_bytes, self


class WaitingShare(Share):
    """Room for the reservations of requests that only wait: for a controller without a quorum, for a replica, for records.

    Clients choose how long that may take. When there is no room, requests that have waited for `GRACE_S` are given up, the
    oldest first: a fetch is answered with what there is, others with REQUEST_TIMED_OUT.
    """

    __slots__ = ("_since_s", "_timer")

    def __init__(self, size_bytes: int) -> None:
        super().__init__(size_bytes)
        self._since_s: dict[SlicedWork, float] = {}
        """Work that waits → since when; the oldest first."""
        self._timer: asyncio.TimerHandle | None = None

    def add(self, work: SlicedWork) -> None:
        """A work with a reservation only waits from now on."""
        self._since_s[work] = asyncio.get_running_loop().time()
        self._settle()

    def give_back(self, memory_bytes: int) -> None:
        """A request is answered."""
        self._free_bytes += memory_bytes
        self._settle()

    def _settle(self) -> None:
        """Take over the reservations for which there is room; set a timer if one is left."""
        for gone in [work for work in self._since_s if work.reserved_in is None]:
            del self._since_s[gone]
        is_full = False
        for work in list(self._since_s):
            share = work.reserved_in
            if share is None or share is self:
                continue
            if work.reserved_bytes > self._free_bytes:
                is_full = True
                continue
            self._free_bytes -= work.reserved_bytes
            work.reserved_in = self
            share.give_back(work.reserved_bytes)
        if is_full and self._timer is None:
            loop = asyncio.get_running_loop()
            oldest_s = next(iter(self._since_s.values()))
            self._timer = loop.call_at(max(oldest_s + GRACE_S, loop.time()), self._give_up_oldest)

    def _give_up_oldest(self) -> None:
        self._timer = None
        now_s = asyncio.get_running_loop().time()
        needed_bytes = sum(work.reserved_bytes for work in self._since_s if work.reserved_in not in (None, self))
        for work, since_s in list(self._since_s.items()):
            if needed_bytes <= 0 or since_s + GRACE_S > now_s:
                break
            del self._since_s[work]
            if work.reserved_in is not None:
                needed_bytes -= work.reserved_bytes
                work.give_up()
        self._settle()


class Taker(Protocol):
    """A connection, as `FrameShare` sees it."""

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
    return max(FRAMES_BYTES_MIN, LARGEST_FRAMES_MIN * socket_request_max_bytes)


class FreedMemory:
    """Hands memory back to the system after a burst of connections or of large frames, once it is quiet.

    The C library keeps freed blocks below one that is still in use: of 10,000 TLS handshakes that never ended 500 MB.
    """

    __slots__ = ("_freed_bytes", "_return_memory", "_seen_bytes", "_task", "_timer", "_workers")

    def __init__(self, workers: Workers, return_memory: Callable[[], None] | None) -> None:
        self._workers = workers
        self._return_memory = return_memory
        self._freed_bytes = self._seen_bytes = 0
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    def note(self, size_bytes: int) -> None:
        """So many bytes have been freed."""
        self._freed_bytes += size_bytes
        if self._freed_bytes >= BURST_BYTES and self._timer is None and self._return_memory is not None:
            self._timer = asyncio.get_running_loop().call_later(QUIET_S, self._look)

    def close(self) -> None:
        self._return_memory = None
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        self._timer = None
        loop = asyncio.get_running_loop()
        if self._freed_bytes > self._seen_bytes + QUIET_BYTES:
            self._seen_bytes = self._freed_bytes
            self._timer = loop.call_later(QUIET_S, self._look)
            return
        self._freed_bytes = self._seen_bytes = 0
        if self._return_memory is not None:
            self._task = loop.create_task(self._run(self._return_memory))

    async def _run(self, return_memory: Callable[[], None]) -> None:
        await self._workers.run(return_memory)


class FrameShare:
    """Memory for large frames: those coming in, and those whose requests are being handled."""

    __slots__ = ("_incoming_since_s", "_on_short", "_waiting", "for_followers", "freed", "limit_bytes", "used_bytes")

    def __init__(
        self, queued_max_request_bytes: int, socket_request_max_bytes: int, on_short: Callable[[], None] | None = None
    ) -> None:
        """`on_short` is called when a connection begins to wait: from then on `evict_slow` has to be called regularly."""
        self._on_short = on_short
        self.limit_bytes = request_memory_limit(queued_max_request_bytes, socket_request_max_bytes)
        self.for_followers: FrameShare | None = None
        """The memory for the fetches of other brokers, if they have their own."""
        self.freed: FreedMemory | None = None
        self.used_bytes = 0
        self._waiting: dict[Taker, None] = {}
        self._incoming_since_s: dict[Taker, float] = {}

    @property
    def is_short(self) -> bool:
        """Whether a connection waits for memory."""
        return bool(self._waiting) or (self.for_followers is not None and self.for_followers.is_short)

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
        if self.freed is not None:
            self.freed.note(size_bytes)
        if self._waiting and self.used_bytes < self.limit_bytes:
            waiting, self._waiting = self._waiting, {}
            for taker in waiting:
                taker.memory_available()

    def wait(self, taker: Taker) -> None:
        """Call `taker.memory_available` when memory has come back."""
        was_short = bool(self._waiting)
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
        if self.for_followers is not None:
            self.for_followers.evict_slow(now_s)
        if not self._waiting:
            return
        late = [taker for taker, since_s in self._incoming_since_s.items() if now_s - since_s > GRACE_S]
        # A connection that waits for memory is slow through no fault of its own. If only such connections hold the memory,
        # they wait for each other: the older half is closed.
        slow = [taker for taker in late if taker not in self._waiting] or late[: (len(late) + 1) // 2]
        for taker in slow:
            taker.evict()
