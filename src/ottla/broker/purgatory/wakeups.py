"""Waking fetches that wait: not within the append that brings them records, but right after it, once for all.

An append only notes that there is news. The fetches that may be answered now are tried at the loop's next turn: by then the
producer has its reply, and everything else that came in meanwhile goes into one answer. However many wait for one partition,
no turn of the loop takes more than `TRIES_PER_TURN` of them, so that the other connections get theirs.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.broker.partitions.partition import Partition
    from ottla.broker.purgatory.delayed_fetch import DelayedFetch

TRIES_PER_TURN = 32


class Wakeups:
    """The fetches of one node that are to be tried at the loop's next turn."""

    __slots__ = ("_is_scheduled", "_news", "_ready")

    def __init__(self) -> None:
        self._news: dict[Partition, None] = {}
        self._ready: dict[DelayedFetch, None] = {}
        self._is_scheduled = False

    def has_news(self, partition: Partition) -> None:
        """There is more to read: tell those whose wish may be fulfilled by that."""
        self._news[partition] = None
        self._schedule()

    def has_changed(self, partition: Partition) -> None:
        """Another leader, another epoch, or offline: all who wait have to look again."""
        self._ready.update(partition.watches)
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
        for fetch in list(self._ready)[:TRIES_PER_TURN]:
            del self._ready[fetch]
            fetch.try_answer()
        if self._ready:
            self._schedule()
