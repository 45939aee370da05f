"""One node in this process, in the foreground, until it is told to stop.

SIGINT, SIGTERM and SIGHUP (its terminal is closed) stop it cleanly. A second signal does not hurry it: it is writing what must
not be lost. A signal that the process was started to ignore stays ignored: SIGHUP under nohup, SIGINT in a script's background
job. A failed start, and a node that stops by itself, end in one sentence and exit code 1.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import socket
from collections.abc import Callable, Mapping

from ottla.broker.formatting import format_if_new
from ottla.broker.node import Node
from ottla.env import World
from ottla.env.real.descriptors import raise_descriptor_limit
from ottla.env.real.world import real_world

logger = logging.getLogger("ottla.node")


def run_node(settings: Mapping[str, str], on_ready: Callable[[Node], None], *, format_new: bool = False) -> None:
    """Start a node with `settings`, call `on_ready` when it answers requests, return when it has stopped.

    With `format_new` directories that are new are formatted first.
    """
    _settle_memory()
    gc.enable()
    raise_descriptor_limit()
    asyncio.run(_run(settings, on_ready, format_new))


async def _run(settings: Mapping[str, str], on_ready: Callable[[Node], None], format_new: bool) -> None:
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()
    with real_world() as world:
        starting = asyncio.ensure_future(_start(world, settings, format_new))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:
                loop.add_signal_handler(number, _told_to_stop, number.name, stopping)
        told = asyncio.ensure_future(stopping.wait())
        await asyncio.wait({starting, told}, return_when=asyncio.FIRST_COMPLETED)
        node = await starting  # told to stop while starting: it is started first, and then stopped in good order
        told.cancel()
        _settle_memory()
        try:
            if not stopping.is_set():
                on_ready(node)
            await _until_over(node, stopping)
        finally:
            await node.stop()


async def _start(world: World, settings: Mapping[str, str], format_new: bool) -> Node:
    hostname = socket.gethostname()
    if format_new:
        await format_if_new(world, settings)
    return await Node.start(world, settings, hostname=hostname)


async def _until_over(node: Node, stopping: asyncio.Event) -> None:
    """Wait until the node is told to stop; raises if it can no longer go on by itself."""
    node.broken.add_done_callback(lambda _: stopping.set())
    await stopping.wait()
    if node.broken.done():
        raise node.broken.result()


def _told_to_stop(signal_name: str, stopping: asyncio.Event) -> None:
    logger.info("%s: stopping", signal_name)
    stopping.set()


def _settle_memory() -> None:
    """What there is stays for good: keep the garbage collector from going over it again and again.

    It is not collected first, which would take as long as everything else between the imports and the first answer.
    """
    gc.freeze()
