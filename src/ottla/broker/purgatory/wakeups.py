"""Tries parked fetches again after an append: on the loop's next turn, once for all appends of a turn.

An append only marks its partition. The fetches that may be answered now are tried on the loop's next turn: by then the producer
has its reply, and one response carries all records appended until then. A turn tries at most `TRIES_PER_TURN` fetches, and
for at most `SLICE_S`, however many are parked, so that other connections are served in between.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ottla.broker.requests.scheduler import SLICE_S

if TYPE_CHECKING:
    from ottla.broker.partitions.partition import Partition
    from ottla.broker.purgatory.delayed_fetch import DelayedFetch

TRIES_PER_TURN = 32


class Wakeups:
    """The parked fetches of one node that are tried on the loop's next turn."""

    __slots__ = ("_is_scheduled", "_news", "_ready")

    def __init__(self) -> None:
        self._news: dict[Partition, None] = {}
        self._ready: dict[DelayedFetch, None] = {}
        self._is_scheduled = False

    def has_news(self, partition: Partition) -> None:
        """There is more to read: try the fetches whose missing bytes may be there now."""
        self._news[partition] = None
        self._schedule()

    def has_changed(self, partition: Partition) -> None:
        """The partition has another leader or epoch, or is offline: try all its fetches."""
        self._ready.update(partition.watches)
        self.has_more_for_followers(partition)
        self._schedule()

    def has_more_for_followers(self, partition: Partition) -> None:
        """The log has grown: try the followers' fetches, which do not wait for the high watermark."""
        is_awaited = False
        for watch in partition.follower_watches:
            fetch = watch.look()
            if fetch is not None:
                self._ready[fetch] = None
                is_awaited = True
        if is_awaited:
            self._schedule()

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        self._is_scheduled = False
        news, self._news = self._news, {}
        for partition in news:
            size_bytes = partition.take_unread_bytes()
            for fetch in partition.watches:
                if fetch.may_be_answered_by(size_bytes):
                    self._ready[fetch] = None
        if len(self._ready) == 1:
            self._ready.popitem()[0].try_answer()
        elif self._ready:
            self._try_for_a_slice()

    def _try_for_a_slice(self) -> None:
        now_s = asyncio.get_running_loop().time
        until_s = now_s() + SLICE_S
        for fetch in list(self._ready)[:TRIES_PER_TURN]:
            del self._ready[fetch]
            fetch.try_answer()
            if now_s() >= until_s:
                break
        if self._ready:
            self._schedule()
