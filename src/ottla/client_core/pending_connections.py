"""`Connecting`: the nodes that a machine waits to be connected to before it sends them requests.

A request that is handed to the driver without an open connection stays bound to its node until the connection is up or has
failed, by default 10 s later, even if the partition's leader moves meanwhile. A machine that asks here first hands out a
`Connect` instead, and chooses the node when the connection is there. While a connection is slow, the metadata is refreshed: the
leader may have moved.

Part of a machine, not one itself: the owner passes outcomes of `Connect` on, and counts `next_deadline_ms` among its own.
"""

from __future__ import annotations

from ottla.client_core.machine import Channel, Connect, Connections
from ottla.client_core.metadata import Metadata
from ottla.errors import KafkaError


class Connecting:
    """Which nodes are connected on one channel, and which are being connected to."""

    def __init__(self, metadata: Metadata, refresh_ms: int, channel: Channel = Channel.DATA) -> None:
        self.connections: Connections | None = None
        """None: every node is connected."""
        self._metadata = metadata
        self._refresh_ms = refresh_ms
        self._channel = channel
        self._under_way: dict[int, int] = {}
        """Node → when the metadata is refreshed next, because the connection is still not up."""
        self._failures: dict[int, KafkaError] = {}

    def is_open(self, node: int) -> bool:
        """Whether a request to the node leaves at once."""
        return self.connections is None or self.connections.is_open(node, self._channel)

    def failure(self, node: int) -> KafkaError | None:
        """Why the last attempt to connect to the node failed; None if it did not."""
        return self._failures.get(node)

    def connect(self, node: int, now_ms: int) -> list[Connect]:
        """What connects to the node: one request, or none if that is under way."""
        if node in self._under_way:
            return []
        self._under_way[node] = now_ms + self._refresh_ms
        return [Connect(node, self._channel)]

    def look(self, now_ms: int) -> None:
        """Have the metadata refreshed if a connection is slow. Called in each step of the owner."""
        for node, at_ms in self._under_way.items():
            if now_ms >= at_ms:
                self._metadata.refresh(f"node {node} is still being connected to")
                self._under_way[node] = now_ms + self._refresh_ms

    def next_deadline_ms(self, own_ms: int | None = None) -> int | None:
        """When `look` must be called, or the owner's own deadline, whichever comes first."""
        deadlines = [*self._under_way.values()] if own_ms is None else [*self._under_way.values(), own_ms]
        return min(deadlines, default=None)

    def answered(self, request: Connect) -> None:
        """The connection is open."""
        self._under_way.pop(request.node, None)
        self._failures.pop(request.node, None)

    def failed(self, request: Connect, error: KafkaError) -> None:
        """The connection could not be opened."""
        self._under_way.pop(request.node, None)
        self._failures[request.node] = error
