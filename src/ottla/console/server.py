"""Runs the console: its clusters, its application, its server."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Mapping

from ottla.asgi import serve_app
from ottla.client.world import ClientWorld, real_client_world
from ottla.config.client.settings import AdminSettings
from ottla.console.app import Console, ConsoleSettings
from ottla.console.clusters import ClusterView


async def serve(
    clusters: Mapping[str, AdminSettings],
    settings: ConsoleSettings,
    listener: socket.socket,
    on_ready: Callable[[], None],
    *,
    world: ClientWorld | None = None,
    until: Awaitable[object] | None = None,
) -> None:
    """Serve until a signal comes, or until `until` is done."""
    world = world or real_client_world()
    views = {name: ClusterView(name, each, world) for name, each in clusters.items()}
    console = Console(views, settings)
    try:
        await serve_app(console, listener, on_ready, until)
    finally:
        await console.jobs.close()
        for view in views.values():
            view.close()
