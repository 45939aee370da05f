"""Serves a registry over HTTP: in this process until a signal, or in a thread for tests and for `ottla up`."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from collections.abc import Awaitable, Callable

from ottla.asgi import serve_app
from ottla.client.cluster import open_cluster
from ottla.client.world import ClientWorld, real_client_world
from ottla.config.client.settings import AdminSettings
from ottla.registry.group import Address, RegistryGroup
from ottla.registry.http import RegistryApp
from ottla.registry.service import Registry

logger = logging.getLogger("ottla.registry")


async def serve(
    settings: AdminSettings,
    listener: socket.socket,
    on_ready: Callable[[], None],
    *,
    world: ClientWorld | None = None,
    until: Awaitable[object] | None = None,
    group: tuple[str, Address] | None = None,
) -> None:
    """Serve until a signal comes, or in a thread or a process that another one began: until `until` is done. With `group`, as a
    member of that group, at this address.
    """
    world = world or real_client_world()
    reading = open_cluster(world, settings, "ottla-registry-reader")
    writing = open_cluster(world, settings, "ottla-registry")
    registry = Registry(reading, writing)
    voting = None if group is None else open_cluster(world, settings, "ottla-registry-group")
    member = None if group is None or voting is None else RegistryGroup(voting, *group)
    membership: asyncio.Task[None] | None = None
    if member is not None:
        registry.may_write = lambda: member is not None and member.is_leader
    try:
        await registry.start()
        if member is not None:
            membership = asyncio.create_task(member.run())
            elected = asyncio.create_task(member.changed.wait())
            await asyncio.wait([elected, membership], return_when=asyncio.FIRST_COMPLETED)
            if membership.done():
                elected.cancel()
                await membership  # raises why
        await serve_app(RegistryApp(registry, member), listener, on_ready, until)
    finally:
        if membership is not None and voting is not None:
            membership.cancel()
            await asyncio.wait([membership])
            voting.close()
        await registry.close()
        reading.close()
        writing.close()


class RegistryThread:
    """A registry in a thread of this process. `start` returns when it serves."""

    def __init__(self, settings: AdminSettings, group_id: str | None = None) -> None:
        self._settings = settings
        self._group_id = group_id
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._until: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._run, name="ottla-registry", daemon=True)

    def start(self) -> None:
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            self._listener.close()
            raise self._failure

    def close(self) -> None:
        """Stop serving, and wait until everything is closed."""
        if self._loop is not None and self._until is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._until.set)
        self._thread.join()
        self._listener.close()

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as failure:
            self._failure = failure
            if self._ready.is_set():
                logger.exception("the registry ended")
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        self._loop, self._until = asyncio.get_running_loop(), asyncio.Event()
        until = asyncio.create_task(self._until.wait())
        group = None
        if self._group_id is not None:
            group = (self._group_id, Address("http", *self._listener.getsockname()[:2]))
        await serve(self._settings, self._listener, self._ready.set, until=until, group=group)
