"""Requests of this replica to other replicas of the metadata log, over `ottla.link`.

Two connections per node: a leader parks a Fetch, and a Vote must not wait behind it. A connection is made with its first
request and again after a failure.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from ottla.env.uninterrupted import uninterrupted
from ottla.link import LinkOptions
from ottla.raft.effects import Destination
from ottla.wire.api_table import ApiKey
from ottla.wire.base import Message

if TYPE_CHECKING:
    from ottla.broker.node_links import NodeLinks
    from ottla.link import Link

_FETCHES = (ApiKey.FETCH, ApiKey.FETCH_SNAPSHOT)

_Key = tuple[str, int, bool]


class QuorumLinks:
    """The outbound connections of one replica."""

    def __init__(self, to_controllers: NodeLinks, client_id: str, request_timeout_ms: int) -> None:
        self._to_controllers = to_controllers
        self._options = LinkOptions(
            client_id=client_id, connect_timeout_ms=request_timeout_ms, request_timeout_ms=request_timeout_ms
        )
        self._links: dict[_Key, asyncio.Future[Link]] = {}

    async def request(self, destination: Destination, message: Message, timeout_ms: int | None = None) -> Any:
        """The answer of a node; raises `LinkError` if there is none."""
        link = await self._link((destination.host, destination.port, message.KEY in _FETCHES))
        return await link.request(message, timeout_ms)

    async def _link(self, key: _Key) -> Link:
        found = self._links.get(key)
        if (
            found is not None
            and found.done()
            and (found.cancelled() or found.exception() is not None or found.result().is_over)
        ):
            found = None
        if found is None:
            host, port, _ = key
            found = asyncio.ensure_future(self._to_controllers.connect(host, port, self._options))
            found.add_done_callback(_retrieve)
            self._links[key] = found
        return await uninterrupted(found)

    def close(self) -> None:
        """Close all connections; requests under way fail."""
        for link in self._links.values():
            if not link.done():
                link.cancel()
            elif not link.cancelled() and link.exception() is None:
                link.result().close()
        self._links.clear()


def _retrieve(link: asyncio.Future[Link]) -> None:
    """Mark a failure as seen: the loop must not log it if no request waits any more."""
    if not link.cancelled():
        link.exception()
