"""Starts the metadata of a node: loads the log, joins the quorum, and waits until the metadata is published."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ottla.broker.hosts.quorum_listener import Listeners
from ottla.errors import KafkaError

if TYPE_CHECKING:
    from ottla.broker.hosts.controller import ControllerHost
    from ottla.broker.hosts.metadata_loader import MetadataLoader
    from ottla.broker.hosts.quorum import QuorumHost
    from ottla.metadata.image.cluster import Endpoint


async def start_metadata(
    quorum: QuorumHost, loader: MetadataLoader, controller: ControllerHost, endpoints: Sequence[Endpoint]
) -> None:
    """Returns when this controller is active and its first records are published; raises the reason if that fails.

    `endpoints` are this controller's listeners.
    """
    loader.load(quorum.load())
    await quorum.elect({endpoint.name: (endpoint.host, endpoint.port) for endpoint in endpoints} or None)
    loader.start()
    quorum.start(Listeners(loader, controller))
    await controller.wait_active()
    published = loader.published_up_to(quorum.end_offset)
    waited: list[asyncio.Future[Any]] = [published, quorum.failure]
    await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
    if quorum.failure.done():
        published.cancel()
        raise quorum.failure.result()
    try:
        published.result()
    except KafkaError:
        raise loader.failure.result() from None
