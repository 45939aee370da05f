"""Shared code of benchmarks with a node in this process: a fake connection, a node, a command line."""

import argparse
import asyncio
import json
import os
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from ottla.broker.formatting import format_if_new
from ottla.broker.node import Node
from ottla.broker.solo_settings import solo_settings
from ottla.env.real.world import real_world

REQUEST_BYTES_MAX = 100 << 20


class FakeStream:
    """A `Stream` without a peer, which counts the replies."""

    def __init__(self) -> None:
        self.unsent_bytes = 0
        self.sent_bytes = 0
        self.last: bytes = b""
        self.owner: Any = None
        self.peer = self.local = ("127.0.0.1", 0)

    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def close(self) -> None: ...
    def close_when_sent(self) -> None: ...

    def send(self, parts: Sequence[Any]) -> None:
        self.last = parts[0]
        self.sent_bytes += sum(map(len, parts))


def main(description: str, rounds: int, run: Callable[[Node, int], Awaitable[dict[str, float]]], what: str = "request") -> None:
    """Print the CPU seconds that `run(node, rounds)` returns by name; they are per request, or per `what`."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--folder", default="/dev/shm" if os.path.isdir("/dev/shm") else None)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="ottla-bench-", dir=arguments.folder)
    try:
        rows = asyncio.run(_on_a_node(folder, arguments.rounds, run))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if arguments.json:
        print(json.dumps(rows))
    else:
        for name, seconds in rows.items():
            print(f"{name:26} {seconds * 1e6:8.1f} µs of CPU per {what}")


async def _on_a_node(folder: str, rounds: int, run: Callable[[Node, int], Awaitable[dict[str, float]]]) -> dict[str, float]:
    settings = solo_settings("127.0.0.1", 0, folder)
    with real_world() as world:
        await format_if_new(world, settings)
        node = await Node.start(world, settings)
        try:
            return await run(node, rounds)
        finally:
            await node.stop()
