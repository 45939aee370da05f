"""Runs a verb's asynchronous work on an event loop with a connected cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from ottla.cli.common.cluster import Cluster
from ottla.cli.common.settings import ClientSettings
from ottla.env.net import Network

T = TypeVar("T")


def make_network() -> Network:
    """The network that verbs connect over. Tests replace this function."""
    from ottla.env.real.net import RealNetwork

    return RealNetwork()


def with_cluster(settings: ClientSettings, work: Callable[[Cluster], Awaitable[T]]) -> T:
    """Run `work` with the cluster of `settings`, and always close its connections."""

    async def run() -> T:
        cluster = Cluster(settings, make_network())
        try:
            return await work(cluster)
        finally:
            cluster.close()

    return asyncio.run(run())
