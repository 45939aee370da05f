"""Runs a verb's asynchronous work on an event loop with a connected cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from ottla.cli.common.output import warn
from ottla.cli.common.settings import ClientSettings
from ottla.client import opening
from ottla.client.cluster import Cluster
from ottla.client.real_world import real_client_world
from ottla.client.waits import Wait
from ottla.client.world import ClientWorld
from ottla.env.net import Network

T = TypeVar("T")

SILENT_S = 3.0
"""How long a request may go without an answer before a line says so."""
_LOOK_S = 0.25


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
    """Run `work` with the cluster of `settings`, and always close its connections.

    If a request goes unanswered for `SILENT_S`, one line on standard error says what is waited for.
    """

    async def run() -> T:
        cluster = open_cluster(settings)
        telling = asyncio.create_task(_tell(cluster))
        try:
            return await work(cluster)
        finally:
            telling.cancel()
            cluster.close()

    return asyncio.run(run())


async def _tell(cluster: Cluster) -> None:
    """Say what is waited for, once."""
    loop = asyncio.get_running_loop()
    while True:
        await asyncio.sleep(min(_LOOK_S, SILENT_S))
        wait = cluster.waits.oldest(loop.time())
        if wait is not None and loop.time() - wait.since_s >= SILENT_S:
            warn(waiting_text(cluster, wait))
            return


def waiting_text(cluster: Cluster, wait: Wait) -> str:
    """`waiting for broker 2 at host:9092: it has not answered ListGroups yet`."""
    if not wait.api:
        return f"trying again: {wait.reason}"
    if wait.is_for_controller:
        who, silent = "a controller", f"none has answered {wait.api} yet; see that a majority of the controllers is up"
    else:
        node = cluster.brokers.get(wait.node_id)
        kind = "controller" if cluster.is_of_controllers else "broker"
        who = f"a {kind}" if node is None else f"{kind} {node.id} at {node.host}:{node.port}"
        silent = f"it has not answered {wait.api} yet"
    return f"waiting for {who}: {silent if wait.reason is None else wait.reason}"
