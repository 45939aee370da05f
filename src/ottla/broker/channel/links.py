"""Connections from this node to the active controller: one per purpose, because a peer answers a connection's requests in turn.

A heartbeat must not wait behind a forwarded CreateTopics, nor an AlterPartition behind a heartbeat. A connection is opened when
its first request comes, and again when the controller has moved or the connection has ended. One event loop.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ottla.link import ConnectFailed, LinkOptions
from ottla.wire.api_table import ApiKey
from ottla.wire.base import Message

if TYPE_CHECKING:
    from ottla.broker.node_links import NodeLinks
    from ottla.link import Link

PURPOSES: Final = {
    ApiKey.BROKER_REGISTRATION: "heartbeat",
    ApiKey.BROKER_HEARTBEAT: "heartbeat",
    ApiKey.ALTER_PARTITION: "alter-partition",
    ApiKey.ALLOCATE_PRODUCER_IDS: "producer-ids",
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: "directory-assignment",
    ApiKey.CONTROLLER_REGISTRATION: "controller-registration",
}
"""API → the purpose of its connection, for a node's own requests."""
FORWARDING: Final = "forwarding"


class Address(NamedTuple):
    """Where a controller listens. With every `epoch` of the quorum it gets new connections: its node may have restarted."""

    node_id: int
    host: str
    port: int
    epoch: int = 0


class ControllerLinks:
    """The connections of node `node_id`."""

    def __init__(self, to_controllers: NodeLinks, node_id: int) -> None:
        self._to_controllers = to_controllers
        self._node_id = node_id
        self._links: dict[str, tuple[Address, Link]] = {}
        self._opening: dict[str, asyncio.Lock] = {}

    async def ask(self, address: Address, request: Message, timeout_ms: int) -> Any:
        """The response of the node at `address`. Raises `LinkError`; that closes the connection, and so does cancelling.

        `timeout_ms` is for all of it: requests before this one may wait for the same connection, and each try to open it.
        """
        purpose = PURPOSES.get(request.KEY, FORWARDING)
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + timeout_ms / 1000
        try:
            async with asyncio.timeout_at(deadline_s), self._opening.setdefault(purpose, asyncio.Lock()):
                link = await self._link(purpose, address, timeout_ms)
        except TimeoutError:
            name = f"{address.host}:{address.port}"
            raise ConnectFailed(name, f"{name} could not be connected to within {timeout_ms} ms") from None
        try:
            return await link.request(request, max(1, int((deadline_s - loop.time()) * 1000)))
        except asyncio.CancelledError:
            link.close()  # the next request would wait for this one's answer
            raise

    async def _link(self, purpose: str, address: Address, timeout_ms: int) -> Link:
        known = self._links.get(purpose)
        if known is not None:
            if known[0] == address and not known[1].is_over:
                return known[1]
            known[1].close()
        options = LinkOptions(
            client_id=f"broker-{self._node_id}-{purpose}",
            connect_timeout_ms=min(timeout_ms, LinkOptions().connect_timeout_ms),
            in_flight_max=1,
        )
        link = await self._to_controllers.connect(address.host, address.port, options)
        self._links[purpose] = (address, link)
        return link

    def close(self) -> None:
        """Close all connections; requests under way fail."""
        links, self._links = self._links, {}
        for _, link in links.values():
            link.close()
