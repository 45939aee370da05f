"""What Ottla's HTTP services share: routes on raw paths, and a server that runs until a signal or until its parent ends.

Routes match the raw path, because names of groups and subjects may hold a slash, which arrives percent-encoded.
"""

from __future__ import annotations

import asyncio
import re
import socket
import threading
from collections.abc import Awaitable, Callable
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import unquote

H = TypeVar("H")

CONNECTIONS_MAX = 1_000
KEEP_ALIVE_S = 30
GRACE_S = 5


class Match(NamedTuple, Generic[H]):
    """The handler of a path, and the path's named segments."""

    handler: H
    segments: dict[str, str]


class Routes(Generic[H]):
    """Handlers by method and path. `{name}` in a path is one segment."""

    def __init__(self) -> None:
        self._routes: list[tuple[str, re.Pattern[str], H]] = []

    def add(self, method: str, path: str, handler: H) -> None:
        pattern = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", path.rstrip("/"))
        self._routes.append((method, re.compile(pattern + "/?"), handler))

    def on(self, method: str, path: str) -> Callable[[H], H]:
        """A decorator that adds a handler."""

        def add(handler: H) -> H:
            self.add(method, path, handler)
            return handler

        return add

    def find(self, method: str, raw_path: str) -> tuple[Match[H] | None, list[str]]:
        """The handler for a path, or the methods that the path takes."""
        allowed = []
        for own, pattern, handler in self._routes:
            if match := pattern.fullmatch(raw_path):
                if own == method or (own == "GET" and method == "HEAD"):
                    return Match(handler, {name: unquote(each) for name, each in match.groupdict().items()}), []
                allowed.append(own)
        return None, sorted(set(allowed))


async def serve_app(
    app: Any, listener: socket.socket, on_ready: Callable[[], None], until: Awaitable[object] | None = None
) -> None:
    """Serve until a signal comes, or in a thread or a process that another one began: until `until` is done."""
    import uvicorn

    # Connections inherit it. asyncio sets it only where the socket names its protocol; without, head and body of an answer
    # leave 40 ms apart.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        proxy_headers=False,  # who asks is whose address the connection has, whatever its headers say
        limit_concurrency=CONNECTIONS_MAX,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=GRACE_S,
    )
    server = uvicorn.Server(config)
    is_main = threading.current_thread() is threading.main_thread()
    # `serve` takes signals, which only a main thread can.
    serving = asyncio.create_task(server.serve([listener]) if is_main else server._serve([listener]))
    while not server.started and not serving.done():
        await asyncio.sleep(0.005)  # uvicorn has no event for it
    if not serving.done():
        on_ready()
    if until is not None:
        ending = asyncio.ensure_future(until)
        await asyncio.wait([ending, serving], return_when=asyncio.FIRST_COMPLETED)
        ending.cancel()
        server.should_exit = True
    await serving
