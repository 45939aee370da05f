"""The memory of large requests that only wait: for a controller without a quorum, for a replica that lags, for records.

A parsed request is kept until it is answered, and clients choose how long that may take. In the pool of requests at work two
of them would hold up all other large requests. So the reservation of a request that begins to wait moves here. When there is no
room, requests that have waited for `GRACE_S` are given up, the oldest first: a fetch is answered with what there is, others
with REQUEST_TIMED_OUT. One event loop.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.broker.requests.scheduler import SlicedWork

GRACE_S = 5.0


class WaitingMemory:
    """Room for the reservations of requests that wait."""

    __slots__ = ("_free_bytes", "_since_s", "_timer")

    def __init__(self, size_bytes: int) -> None:
        self._free_bytes = size_bytes
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
            pool = work.reserved_in
            if pool is None or pool is self:
                continue
            if work.reserved_bytes > self._free_bytes:
                is_full = True
                continue
            self._free_bytes -= work.reserved_bytes
            work.reserved_in = self
            pool.give_back(work.reserved_bytes)
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
