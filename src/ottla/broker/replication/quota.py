"""A limit on the bytes per second of throttled replicas, over a sliding time: `replication.quota.window.*`. Pure.

A broker has three of them: `leader.replication.throttled.rate` limits what it sends to followers, and
`follower.replication.throttled.rate` what it fetches, each for the replicas that a topic's setting lists. All bytes of
listed replicas count. Only those that are not in sync wait: a throttle must not push a replica out of the ISR. The third is for
moves to other log directories (`partitions/moves.py`).

The rate is that of Kafka: the bytes of the last windows, divided by the time since the oldest of them began, but at least one
window. Kafka looks only whether it is too high before it fills a response of up to ten megabytes; here a response also ends
when the allowance is used up. Of each partition it still holds as much as always, or a second's worth if that is less
(`portion_bytes`): a fetch ends in the middle of a batch, and what is cut off has to be sent again.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from ottla.config.values import LONG_MAX

UNLIMITED: Final = LONG_MAX
PAUSE_S: Final = 0.1
"""Nothing is sent until this much time's worth may be: many tiny fetches would cost more than they bring."""
PORTION_BYTES_MIN: Final = 64 << 10
_ALL: Final = "*"


def portion_bytes(bytes_per_s: int) -> int:
    """How much of one throttled partition is sent at once, however little is left of the allowance."""
    return max(bytes_per_s, PORTION_BYTES_MIN)


class ReplicationQuota:
    """The bytes of throttled replicas in the last `window_count` windows of `window_s` seconds."""

    __slots__ = ("_listed", "_total_bytes", "_window_count", "_window_s", "_windows")

    def __init__(self, window_count: int, window_s: float) -> None:
        self._window_count = window_count
        self._window_s = window_s
        self._windows: deque[tuple[float, int]] = deque()
        """When each window with traffic began, and its bytes; the oldest first."""
        self._total_bytes = 0
        self._listed: dict[str, tuple[tuple[str, ...], frozenset[str]]] = {}
        """Topic → its setting, and the same as a set."""

    def record(self, size_bytes: int, now_s: float) -> None:
        """So many bytes of throttled replicas were sent or received."""
        self._forget(now_s)
        self._total_bytes += size_bytes
        if self._windows and now_s - self._windows[-1][0] < self._window_s:
            start_s, before = self._windows.pop()
            self._windows.append((start_s, before + size_bytes))
        else:
            self._windows.append((now_s, size_bytes))

    def rate(self, now_s: float) -> float:
        """Bytes per second."""
        self._forget(now_s)
        return self._total_bytes / self._elapsed_s(now_s)

    def allowance(self, bytes_per_s: int, now_s: float) -> int:
        """How many bytes may be sent or fetched now, but for the last portion; 0 if throttled replicas have to wait."""
        if bytes_per_s >= UNLIMITED:
            return UNLIMITED
        self._forget(now_s)
        left_bytes = int(bytes_per_s * self._elapsed_s(now_s)) - self._total_bytes
        return left_bytes if left_bytes > 0 and left_bytes >= int(bytes_per_s * PAUSE_S) else 0

    def wait_s(self, bytes_per_s: int, now_s: float) -> float:
        """After how many seconds `allowance` should be asked again, when it is 0."""
        self._forget(now_s)
        if bytes_per_s <= 0 or not self._windows:
            return self._window_s
        needed_s = self._total_bytes / bytes_per_s + PAUSE_S - (now_s - self._windows[0][0])
        # The oldest window may end before that, and then more is left.
        return min(max(needed_s, PAUSE_S / 10), self._window_s)

    def lists(self, topic: str, partition: int, node_id: int, setting: tuple[str, ...]) -> bool:
        """Whether a topic's `*.replication.throttled.replicas` names the replica of a partition on a node."""
        if not setting:
            return False
        known = self._listed.get(topic)
        if known is None or known[0] is not setting:
            known = self._listed[topic] = (setting, frozenset(setting))
        return _ALL in known[1] or f"{partition}:{node_id}" in known[1]

    def _elapsed_s(self, now_s: float) -> float:
        return max(self._window_s, now_s - self._windows[0][0] if self._windows else 0.0)

    def _forget(self, now_s: float) -> None:
        """Drop the windows that began too long ago."""
        oldest_s = now_s - self._window_count * self._window_s
        while self._windows and self._windows[0][0] < oldest_s:
            self._total_bytes -= self._windows.popleft()[1]
