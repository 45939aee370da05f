"""A bare protocol connection to a test broker."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ottla.env.real.net import RealNetwork
from ottla.link import Link, LinkOptions
from ottla.testing import Broker


@asynccontextmanager
async def connected(broker: Broker, client_id: str = "a-client", timeout_ms: int = 10_000) -> AsyncIterator[Link]:
    options = LinkOptions(client_id=client_id, request_timeout_ms=timeout_ms)
    link = await Link.connect(RealNetwork(), broker.host, broker.port, options)
    try:
        yield link
    finally:
        link.close()
