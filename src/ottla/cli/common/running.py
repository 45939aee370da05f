"""Runs a verb's asynchronous work on an event loop with a connected cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from ottla.cli.common.settings import ClientSettings
from ottla.client import opening
from ottla.client.cluster import Cluster
from ottla.client.real_world import real_client_world
from ottla.client.world import ClientWorld
from ottla.env.net import Network

T = TypeVar("T")


def make_network() -> Network:
    """The network that verbs connect over. Tests replace this function."""
    from ottla.env.real.net import RealNetwork

    return RealNetwork()


def client_world() -> ClientWorld:
    """The world of clients that verbs make."""
    return real_client_world()._replace(network=make_network())


def open_cluster(settings: ClientSettings) -> Cluster:
    """The cluster of `settings`. A person waits for the answer, so it is not waited for brokers that are not there."""
    return opening.open_cluster(client_world(), settings.client, waits_for_brokers=False)


def with_cluster(settings: ClientSettings, work: Callable[[Cluster], Awaitable[T]]) -> T:
    """Run `work` with the cluster of `settings`, and always close its connections."""

    async def run() -> T:
        cluster = open_cluster(settings)
        try:
            return await work(cluster)
        finally:
            cluster.close()

    return asyncio.run(run())
