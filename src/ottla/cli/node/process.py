"""Runs one node in this process, in the foreground, until a signal stops it.

SIGINT, SIGTERM and SIGHUP (the terminal was closed) begin a clean shutdown. A second signal does not cut it short: the node is
still writing. A signal that the process inherited as ignored stays ignored: SIGHUP under nohup, SIGINT in a script's background
job. Without a terminal, SIGHUP makes a node with TLS listeners read its certificates again; under a service manager it never
stops a node. A start that waits for other nodes is given up; any other is finished first. A failed start, and a node that fails
while running, end in one sentence and exit code 1. A refused start leaves nothing behind (`start_check.py`).
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import logging
import os
import signal
import socket
from collections.abc import Callable, Mapping, Sequence

from ottla.broker.formatting import format_if_new
from ottla.broker.node import Node
from ottla.broker.runtime.start import StartGivenUp
from ottla.cli.logs import discard_empty_files
from ottla.cli.node.start_check import check_start
from ottla.env import World
from ottla.env.real.descriptors import raise_descriptor_limit
from ottla.env.real.own_process import name_process
from ottla.env.real.world import real_world
from ottla.env.world import Supervisor
from ottla.errors import OttlaError

logger = logging.getLogger("ottla.node")


def run_node(
    settings: Mapping[str, str], on_ready: Callable[[Node], None], *, format_new: bool = False, scram: Sequence[str] = ()
) -> None:
    """Start a node with `settings`, call `on_ready` when it answers requests, return when it has stopped.

    With `format_new`, new directories are formatted first; a new cluster begins with the users of `scram`.
    """
    name_process(f"ottla node {settings.get('node.id', '')}")
    _import_early(settings)
    _freeze_memory()
    raise_descriptor_limit()
    try:
        asyncio.run(_run(settings, on_ready, format_new, scram))
    finally:
        discard_empty_files()


async def _run(settings: Mapping[str, str], on_ready: Callable[[Node], None], format_new: bool, scram: Sequence[str]) -> None:
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()
    with real_world() as world:
        world = world._replace(supervisor=_supervisor())
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if number == signal.SIGHUP and world.supervisor is not None:
                loop.add_signal_handler(number, _nothing_to_reload)
            elif signal.getsignal(number) is not signal.SIG_IGN:
                loop.add_signal_handler(number, _on_signal, number.name, stopping)
        try:
            node = await _start(world, settings, format_new, scram, stopping)
        except StartGivenUp as given_up:
            logger.info("%s", given_up)
            return
        except OttlaError as refused:
            if world.supervisor is not None:  # it shows the reason beside the state of the service
                world.supervisor.tell("STATUS=" + str(refused).split("\n")[0])
            raise
        _freeze_memory()
        gc.enable()  # not earlier: a start makes many objects and little garbage
        try:
            _renew_on_hangup(loop, node, world.supervisor is not None)
            if not stopping.is_set():
                on_ready(node)
            await _until_over(node, stopping)
        finally:
            await node.stop()


def _supervisor() -> Supervisor | None:
    """The service manager that started this process, if there is one."""
    if "NOTIFY_SOCKET" not in os.environ:
        return None
    from ottla.env.real.supervisor import NotifySocket  # late: few nodes need it

    return NotifySocket.from_environment()


def _nothing_to_reload() -> None:
    logger.info("SIGHUP: the start is not over, and reads all settings")


def _renew_on_hangup(loop: asyncio.AbstractEventLoop, node: Node, is_service: bool) -> None:
    """SIGHUP reads the certificates of TLS listeners again, as for other services. At a terminal it means that it closed."""
    is_ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    is_at_terminal = any(os.isatty(descriptor) for descriptor in (0, 1, 2))
    if is_service or (node.has_stores and not is_ignored and not is_at_terminal):
        tasks: set[asyncio.Task[None]] = set()

        def reload() -> None:
            task = loop.create_task(node.reload())
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        loop.add_signal_handler(signal.SIGHUP, reload)


async def _start(
    world: World, settings: Mapping[str, str], format_new: bool, scram: Sequence[str], stopping: asyncio.Event
) -> Node:
    hostname = socket.gethostname()
    await check_start(world, settings, hostname, formats_new=format_new)
    if format_new:
        await format_if_new(world, settings, scram=scram)
    return await Node.start(world, settings, hostname=hostname, given_up=stopping)


async def _until_over(node: Node, stopping: asyncio.Event) -> None:
    """Wait for the signal to stop; raises if the node fails first."""
    node.broken.add_done_callback(lambda _: stopping.set())
    await stopping.wait()
    if node.broken.done():
        raise node.broken.result()


def _on_signal(signal_name: str, stopping: asyncio.Event) -> None:
    logger.info("%s: stopping", signal_name)
    stopping.set()


def _import_early(settings: Mapping[str, str]) -> None:
    """Import what the node needs before its loop runs: there it would hold the loop, and other voters would wait."""
    if "broker" in settings.get("process.roles", ""):
        importlib.import_module("ottla.broker.broker_role")
    if "," in settings.get("controller.quorum.voters", ""):
        for name in ("ottla.broker.runtime.quorum_links", "ottla.broker.channel.remote"):
            importlib.import_module(name)


def _freeze_memory() -> None:
    """Freeze the objects of the start, which live as long as the node: the garbage collector skips them from now on.

    No collection first: it would take as long as the rest of the start after the imports.
    """
    gc.freeze()
