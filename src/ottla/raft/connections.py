"""Which requests are under way to which node, and how long to wait after a failure. One request per node at a time."""

from __future__ import annotations

from typing import NamedTuple

from ottla.raft.effects import Destination
from ottla.wire.base import Message

NEVER_MS = 1 << 62


class InFlight(NamedTuple):
    """A request that was sent and neither answered nor failed."""

    correlation: int
    message: Message
    destination: Destination


class Connections:
    """By node id. A node is ready if nothing is under way to it and its backoff has passed."""

    def __init__(self, retry_backoff_ms: int) -> None:
        self._retry_backoff_ms = retry_backoff_ms
        self._in_flight: dict[int, InFlight] = {}
        self._backoff_until_ms: dict[int, int] = {}
        self._last_correlation = 0
        self._next_bootstrap = 0

    def is_ready(self, node_id: int, now_ms: int) -> bool:
        return node_id not in self._in_flight and self._backoff_until_ms.get(node_id, 0) <= now_ms

    def is_backing_off(self, node_id: int, now_ms: int) -> bool:
        """Whether a request to this node has failed a short while ago."""
        return self._backoff_until_ms.get(node_id, 0) > now_ms

    @property
    def has_any(self) -> bool:
        return bool(self._in_flight)

    def ready_at_ms(self, node_id: int) -> int:
        """When to look again: `NEVER_MS` while a request is under way, since its end is an event."""
        return NEVER_MS if node_id in self._in_flight else self._backoff_until_ms.get(node_id, 0)

    def sent(self, destination: Destination, message: Message) -> int:
        """Note a request; returns its correlation id."""
        self._last_correlation += 1
        self._in_flight[destination.id] = InFlight(self._last_correlation, message, destination)
        return self._last_correlation

    def ended(self, node_id: int, correlation: int, succeeded: bool, now_ms: int) -> None:
        """A request was answered, or has failed: a failure starts the backoff."""
        under_way = self._in_flight.get(node_id)
        if under_way is not None and under_way.correlation == correlation:
            del self._in_flight[node_id]
        if succeeded:
            self._backoff_until_ms.pop(node_id, None)
        else:
            self._backoff_until_ms[node_id] = now_ms + self._retry_backoff_ms

    def under_way(self, node_id: int, correlation: int) -> InFlight | None:
        """The request with this correlation id; None if it was given up."""
        found = self._in_flight.get(node_id)
        return found if found is not None and found.correlation == correlation else None

    def reset(self) -> None:
        """The role has changed: answers that are still to come are ignored, and no node is waited for."""
        self._in_flight.clear()
        self._backoff_until_ms.clear()

    def next_bootstrap(self, servers: tuple[tuple[str, int], ...], now_ms: int) -> Destination | None:
        """The next bootstrap server that is ready, in turns."""
        for _ in servers:
            index = self._next_bootstrap % len(servers)
            self._next_bootstrap += 1
            if self.is_ready(-2 - index, now_ms):
                host, port = servers[index]
                return Destination(-2 - index, host, port)
        return None

    def bootstrap_ready_at_ms(self, servers: tuple[tuple[str, int], ...]) -> int:
        return min((self.ready_at_ms(-2 - index) for index in range(len(servers))), default=NEVER_MS)
