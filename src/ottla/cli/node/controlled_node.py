"""The control socket of `ottla up` with one node: `status` and `stop`."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import click

from ottla.cli.common.output import warn
from ottla.cli.node.control import NAME, ControlServer
from ottla.errors import OttlaError

if TYPE_CHECKING:
    from ottla.broker.node import Node


class ControlledNode:
    """Opens the socket when the node is ready, and removes it at the end of the `with` block."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._is_open = False
        self._task: asyncio.Task[None] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_open:
            with suppress(OSError):
                (self._data / NAME).unlink()

    def open(self, node: Node, then: Callable[[], None]) -> None:
        """Open it, and call `then`: it says that the node is ready, so the socket must be there."""
        self._task = asyncio.get_running_loop().create_task(self._open(node, then))

    async def _open(self, node: Node, then: Callable[[], None]) -> None:
        async def answer(request: Mapping[str, Any]) -> AsyncIterator[dict[str, Any]]:
            action = request.get("do")
            if action == "status":
                yield {"done": [_state_of(node)]}
            elif action == "stop" and request.get("node") in (None, node.node_id):
                yield {"say": f"Stopping node {node.node_id}."}
                yield {"stopping": True}
                os.kill(os.getpid(), signal.SIGTERM)
                await asyncio.Event().wait()  # until the process ends: then the other side knows
            else:
                raise click.ClickException(
                    f"this `ottla up` runs one node, {node.node_id}, in its own process: it can be shown and stopped. With "
                    "--nodes 3, single nodes can be restarted, and some added"
                )

        try:
            await ControlServer(self._data, answer).open()
            self._is_open = True
        except OttlaError as refused:
            warn(f"`ottla up status` and `ottla up stop` do not work: {refused}")
        then()


def _state_of(node: Node) -> dict[str, Any]:
    return {
        "node_id": node.node_id,
        "state": "up",
        "bootstrap_servers": node.bootstrap_servers,
        "roles": "broker,controller",
        "pid": os.getpid(),
    }
