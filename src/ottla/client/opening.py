"""`open_cluster`: the cluster of a client's settings, for single requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.client.cluster import Cluster
from ottla.client.connections import ConnectionPool
from ottla.client.link_options import link_options
from ottla.client.world import ClientWorld
from ottla.client_core.metadata import Metadata
from ottla.config.client.settings import AdminSettings

if TYPE_CHECKING:
    from ottla.client.metrics import ClientMetrics


def open_cluster(
    world: ClientWorld,
    settings: AdminSettings,
    client_id: str = "ottla",
    metrics: ClientMetrics | None = None,
    *,
    waits_for_brokers: bool = True,
) -> Cluster:
    """The cluster by its brokers, or by its controllers (KIP-919). Connects with the first request.

    `client_id` is for settings without one. Without `waits_for_brokers`, brokers that cannot be reached are an error at once.
    """
    known = Metadata(settings, world.randomness.below)
    bootstrap = settings.bootstrap_servers or settings.bootstrap_controllers
    pool = ConnectionPool(world, settings, bootstrap, link_options(settings, world, client_id), known, metrics)
    of_controllers = bool(settings.bootstrap_controllers)
    return Cluster(world, settings, pool, known, controllers=of_controllers, waits_for_brokers=waits_for_brokers)
