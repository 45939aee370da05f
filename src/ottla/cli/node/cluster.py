"""Runs several nodes as one cluster, in child processes of this one, until a signal stops them all.

SIGINT, SIGTERM and SIGHUP stop every node cleanly. A node that ends by itself is reported, and the others go on; if one cannot
start, or the last one ends, the command ends with exit code 1. Nodes watch their stdin (`cluster_child.py`): none outlives
this process, even if it is killed. A guard process (`env/real/guard.py`) continues those that are paused then.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from ottla.broker.formatting import FormatOptions, FormatRefused, format_directories
from ottla.cli.common.output import warn
from ottla.cli.node.cluster_child import STOP_S_MAX
from ottla.config.broker import BrokerConfig
from ottla.env.real import guard
from ottla.env.real.world import real_world
from ottla.ids import uuid_text
from ottla.log.directories.meta_properties import read_meta_properties

LINE_BYTES_MAX = 1 << 20
CHILD = ("-m", "ottla.cli.node.cluster_child")

OnReady = Callable[[list["Child"]], None]


class Child:
    """One node in a process of its own."""

    def __init__(self, settings: Mapping[str, str], process: asyncio.subprocess.Process) -> None:
        self.settings = settings
        self.process = process
        self.node_id = int(settings["node.id"])
        self.bootstrap_servers = ""
        self.cluster_id = ""
        self.error: str | None = None
        """Why the node has failed, if it has said so."""
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Set when the node answers requests; fails when its process ends before."""
        self.left = asyncio.Event()
        """Set when its broker has left the cluster, or its process has ended."""

    def release(self) -> None:
        """Let a node that has left the cluster leave the quorum, too."""
        assert self.process.stdin is not None
        if self.process.returncode is None:
            self.process.stdin.write(b"\n")

    async def follow_output(self, stopping: asyncio.Event) -> None:
        """The lines that say it is ready, why it failed, or that it has left; then its end. A node that stops alone may go."""
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            facts = json.loads(line)
            if "error" in facts:
                self.error = facts["error"]
                continue
            if "left" in facts:
                self.left.set()
                if not stopping.is_set():
                    self.release()
                continue
            self.bootstrap_servers, self.cluster_id = facts["bootstrap_servers"], facts["cluster_id"]
            if not self.ready.done():
                self.ready.set_result(None)

    async def follow_log(self) -> None:
        """Print its log with the node's name before each line."""
        assert self.process.stderr is not None
        async for line in self.process.stderr:
            text = line.decode("utf-8", "replace").rstrip("\n")
            click.echo(f"node {self.node_id} | {text}", err=True)  # noqa: TID251  # the node has escaped it


async def format_nodes(nodes: Sequence[Mapping[str, str]], data: Path) -> None:
    """Format the nodes that are new, all for one cluster."""
    with real_world() as world:
        if read_meta_properties(world.disk, str(data)) is not None:
            raise FormatRefused(
                f"{data} is the log directory of one node: name another folder with --data for a cluster, or leave out --nodes"
            )
        metas = [read_meta_properties(world.disk, each["log.dirs"]) for each in nodes]
        known = next((meta.cluster_id for meta in metas if meta is not None), None)
        options = FormatOptions(known or uuid_text(world.randomness.new_uuid()), ignore_formatted=True)
        for settings in nodes:
            await format_directories(world, BrokerConfig.from_settings(settings), options)


async def run_cluster(
    nodes: Sequence[Mapping[str, str]], data: Path, level: str, log_dir: Path | None, on_ready: OnReady
) -> None:
    """Format and start the nodes, call `on_ready` when all answer, return when a signal has stopped them."""
    stopping = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    await format_nodes(nodes, data)
    children: list[Child] = []
    followers: list[asyncio.Task[Any]] = []
    loop = asyncio.get_running_loop()
    watching = await _start_guard()
    try:
        for settings in nodes:
            folder = None if log_dir is None else str(log_dir / f"node-{settings['node.id']}")
            child = await _start({"settings": dict(settings), "level": level, "log_dir": folder})
            children.append(child)
            _tell(watching, f"add {child.process.pid}")
            followers += [loop.create_task(child.follow_log()), loop.create_task(_watch(child, children, stopping, watching))]
        stopped = loop.create_task(stopping.wait())
        ready = loop.create_task(_all_ready(children))
        followers.append(ready)
        await asyncio.wait({stopped, ready}, return_when=asyncio.FIRST_COMPLETED)
        if ready.done():
            ready.result()  # raises if a node could not start
            on_ready(children)
            await stopped
        else:
            ready.cancel()
    finally:
        is_over = bool(children) and all(child.process.returncode is not None for child in children)
        stopping.set()
        await _stop(children)
        await asyncio.gather(*followers, return_exceptions=True)
        await _end_guard(watching)
    if is_over:
        raise click.ClickException("every node has ended: see the lines above")


async def _start_guard() -> asyncio.subprocess.Process:
    watching = await asyncio.create_subprocess_exec(
        sys.executable, "-I", "-S", guard.__file__, stdin=asyncio.subprocess.PIPE, start_new_session=True
    )
    _tell(watching, f"grace {STOP_S_MAX + 5}")
    return watching


def _tell(watching: asyncio.subprocess.Process, line: str) -> None:
    if watching.stdin is not None and watching.returncode is None:
        watching.stdin.write(f"{line}\n".encode())


async def _end_guard(watching: asyncio.subprocess.Process) -> None:
    """The nodes have ended."""
    assert watching.stdin is not None
    watching.stdin.close()
    await watching.wait()


async def _all_ready(children: Sequence[Child]) -> None:
    await asyncio.gather(*(child.ready for child in children))


async def _start(job: Mapping[str, Any]) -> Child:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *CHILD,
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        limit=LINE_BYTES_MAX,
        start_new_session=True,  # Ctrl-C goes to this process only
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps(job).encode() + b"\n")  # stays open: its end tells the child that we are gone
    return Child(job["settings"], process)


def ending(code: int) -> str:
    """How a process has ended, in words."""
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


async def _watch(
    child: Child, children: Sequence[Child], stopping: asyncio.Event, watching: asyncio.subprocess.Process
) -> None:
    """Report the end of a node; when the last one has ended, so does the command."""
    await child.follow_output(stopping)
    child.left.set()
    code = await child.process.wait()
    _tell(watching, f"drop {child.process.pid}")
    if stopping.is_set():
        return
    how = ending(code)
    if not child.ready.done():
        reason = child.error or f"it did not start ({how}): see the lines above"
        child.ready.set_exception(click.ClickException(f"node {child.node_id}: {reason}"))
        return
    warn(
        f"node {child.node_id} has ended ({child.error or how})."
        " Its partitions are led by their other replicas; to have it back, stop this command with Ctrl-C and start it again"
    )
    if all(each.process.returncode is not None for each in children):
        stopping.set()


async def _stop(children: Sequence[Child]) -> None:
    for child in children:
        if not child.ready.done():
            child.ready.cancel()
        if child.process.returncode is None:
            child.process.terminate()
            child.process.send_signal(signal.SIGCONT)  # a paused node would never hear it
    # Those that run stay in the quorum until all have left the cluster; each gives up by itself after a while.
    await asyncio.gather(*(child.left.wait() for child in children))
    for child in children:
        child.release()
    await asyncio.gather(*(child.process.wait() for child in children))
