"""Runs several nodes as one cluster, in child processes of this one, until a signal stops them all.

SIGINT, SIGTERM and SIGHUP stop every node cleanly. A node that ends by itself is reported, and the others go on; if one cannot
start, or the last one ends, the command ends with exit code 1. Other terminals stop, start and add single nodes (`control.py`).
Nodes watch their stdin (`cluster_child.py`): none outlives this process, even if it is killed. A guard process
(`env/real/guard.py`) continues those that are paused then.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import click

from ottla.broker.cluster_settings import REPLICAS_MAX, cluster_settings
from ottla.broker.formatting import FormatOptions, FormatRefused, format_directories
from ottla.broker.secure_settings import secured
from ottla.cli.common.output import escape, print_json, warn
from ottla.cli.common.settings import CONFIG_VARIABLE, ENVIRONMENT_VARIABLE
from ottla.cli.node.cluster_child import STOP_S_MAX
from ottla.cli.node.companions import Companions, add_console, add_registry, registry_settings
from ottla.cli.node.control import ControlServer
from ottla.cli.node.secure import client_file, first_user, node_security
from ottla.cli.node.start_check import addresses, check_ports
from ottla.cli.node.up import SECURITY_FOLDER
from ottla.config.broker import BrokerConfig
from ottla.env.net import AddressRefused
from ottla.env.real import guard
from ottla.env.real.ports import ReservedPorts
from ottla.env.real.world import real_world
from ottla.errors import OttlaError
from ottla.ids import uuid_text
from ottla.log.directories.meta_properties import read_meta_properties

LINE_BYTES_MAX = 1 << 20
CHILD = ("-m", "ottla.cli.node.cluster_child")

ADDED = "added-nodes"
"""A file in the data folder: the ids of nodes that `ottla up add` has added, one per line."""

OnReady = Callable[[list["Child"]], None]
NewNode = Callable[[int], dict[str, str]]
"""The settings of a further node, by its id."""


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
        self.is_told_to_stop = False
        """The user has stopped this node alone."""

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


async def format_nodes(nodes: Sequence[Mapping[str, str]], data: Path, scram: Sequence[str] = ()) -> None:
    """Format the nodes that are new, all for one cluster; a new one begins with the users of `scram`."""
    with real_world() as world:
        if read_meta_properties(world.disk, str(data)) is not None:
            raise FormatRefused(
                f"{data} is the log directory of one node: name another folder with --data for a cluster, or leave out --nodes"
            )
        metas = [read_meta_properties(world.disk, each["log.dirs"]) for each in nodes]
        known = next((meta.cluster_id for meta in metas if meta is not None), None)
        options = FormatOptions(known or uuid_text(world.randomness.new_uuid()), ignore_formatted=True, scram=scram)
        for settings in nodes:
            await format_directories(world, BrokerConfig.from_settings(settings), options)


class ClusterRun:
    """The nodes of one `ottla up --nodes`: starts, watches and stops them, and answers its control socket."""

    def __init__(
        self,
        nodes: Sequence[Mapping[str, str]],
        job: Mapping[str, Any],
        log_dir: Path | None,
        watching: asyncio.subprocess.Process,
        new_node: NewNode | None = None,
    ) -> None:
        self.settings = {int(each["node.id"]): each for each in nodes}
        self.children: dict[int, Child] = {}
        self.stopping = asyncio.Event()
        self.is_over = False
        """Every node has ended, and the last one by itself."""
        self._job = job
        self._log_dir = log_dir
        self._watching = watching
        self._new_node = new_node
        self._followers: set[asyncio.Task[Any]] = set()

    async def start(self, node_id: int) -> Child:
        """Start the process of a node; its `ready` says when it answers."""
        folder = None if self._log_dir is None else str(self._log_dir / f"node-{node_id}")
        child = await _start({**self._job, "settings": dict(self.settings[node_id]), "log_dir": folder})
        self.children[node_id] = child
        _tell(self._watching, f"add {child.process.pid}")
        self.follow(child.follow_log())
        self.follow(self._watch(child))
        return child

    def follow(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work)
        self._followers.add(task)
        task.add_done_callback(self._followers.discard)
        return task

    async def all_ready(self) -> None:
        await asyncio.gather(*(child.ready for child in self.children.values()))

    async def _watch(self, child: Child) -> None:
        """Report the end of a node; when the last one has ended by itself, so does the command."""
        await child.follow_output(self.stopping)
        child.left.set()
        code = await child.process.wait()
        _tell(self._watching, f"drop {child.process.pid}")
        if self.stopping.is_set():
            return
        how = ending(code)
        if not child.ready.done():
            reason = child.error or f"it did not start ({how}): see the lines above"
            child.ready.set_exception(click.ClickException(f"node {child.node_id}: {reason}"))
            return
        if child.is_told_to_stop:
            return
        warn(
            f"node {child.node_id} has ended ({child.error or how}). Its partitions are led by their other replicas; to have "
            f"it back: ottla up start {child.node_id}"
        )
        if all(each.process.returncode is not None for each in self.children.values()):
            self.is_over = True
            self.stopping.set()

    async def end(self) -> None:
        """Stop every node, and wait until all have ended."""
        self.stopping.set()
        await _stop(list(self.children.values()))
        await asyncio.gather(*self._followers, return_exceptions=True)

    # -- the control socket

    async def answer(self, request: Mapping[str, Any]) -> AsyncIterator[dict[str, Any]]:
        action, node_id = request.get("do"), request.get("node")
        if action == "status":
            yield {"done": [self._state_of(each) for each in sorted(self.settings)]}
        elif action == "add":
            async for line in self._add():
                yield line
        elif action == "stop" and node_id is None:
            yield {"say": f"Stopping all {len(self.settings)} nodes."}
            yield {"stopping": True}
            self.stopping.set()
            await asyncio.Event().wait()  # until the command ends: then the other side knows
        elif action in ("stop", "start", "restart") and node_id in self.settings:
            if action != "start":
                async for line in self._stop_one(node_id):
                    yield line
            if action != "stop":
                yield await self._start_one(node_id)
            yield {"done": True}
        else:
            known = ", ".join(map(str, sorted(self.settings)))
            raise click.ClickException(f"there is no node {node_id}: the nodes are {known}")

    async def _stop_one(self, node_id: int) -> AsyncIterator[dict[str, Any]]:
        child = self.children[node_id]
        if child.process.returncode is not None:
            yield {"say": f"Node {node_id} was not running."}
            return
        voters = [each for each, settings in self.settings.items() if "controller" in settings["process.roles"]]
        left = [each for each in voters if each != node_id and self.children[each].process.returncode is None]
        if node_id in voters and 2 * len(left) <= len(voters):
            yield {
                "say": f"With node {node_id} stopped, {len(left)} of {len(voters)} controllers are left and no majority: "
                "nothing can be changed, and no leader elected, until one is started."
            }
        child.is_told_to_stop = True
        child.process.terminate()
        child.process.send_signal(signal.SIGCONT)  # a paused node would never hear it
        await child.process.wait()
        yield {"say": f"Node {node_id} has stopped ({ending(child.process.returncode or 0)})."}

    async def _start_one(self, node_id: int) -> dict[str, Any]:
        before = self.children.get(node_id)
        if before is not None and before.process.returncode is None:
            raise click.ClickException(f"node {node_id} is running, as process {before.process.pid}")
        child = await self.start(node_id)
        await child.ready
        return {"say": f"Node {node_id} is up at {child.bootstrap_servers} (process {child.process.pid})."}

    async def _add(self) -> AsyncIterator[dict[str, Any]]:
        if self._new_node is None:
            raise click.ClickException("no node can be added here")
        node_id = max(self.settings) + 1
        settings = self._new_node(node_id)
        with real_world() as world:
            config = BrokerConfig.from_settings(settings)
            await check_ports(world, addresses(config))
            cluster_id = next(child.cluster_id for child in self.children.values() if child.cluster_id)
            await format_directories(world, config, FormatOptions(cluster_id, ignore_formatted=True))
        self.settings[node_id] = settings
        keep_added(Path(settings["log.dirs"]).parent, node_id)
        yield await self._start_one(node_id)
        brokers = ",".join(map(str, sorted(self.settings)))
        yield {"say": f"New topics use it; existing partitions move with: ottla reassign generate --brokers {brokers}"}
        yield {"done": True}

    def _state_of(self, node_id: int) -> dict[str, Any]:
        child = self.children[node_id]
        code = child.process.returncode
        if code is not None:
            state = "stopped" if child.is_told_to_stop and code == 0 else f"ended ({ending(code)})"
        else:
            state = "up" if child.ready.done() else "starting"
        return {
            "node_id": node_id,
            "state": state,
            "bootstrap_servers": child.bootstrap_servers,
            "roles": self.settings[node_id]["process.roles"],
            "pid": child.process.pid if code is None else None,
        }


def keep_added(data: Path, node_id: int) -> None:
    """Remember a node that was added, for the next `ottla up` on this folder."""
    with open(data / ADDED, "a", encoding="ascii") as file:
        file.write(f"{node_id}\n")


def added_nodes(data: Path) -> list[int]:
    """The nodes that `ottla up add` has added to a cluster."""
    try:
        return sorted({int(line) for line in (data / ADDED).read_text(encoding="ascii").split()})
    except FileNotFoundError:
        return []


async def run_cluster(
    nodes: Sequence[Mapping[str, str]],
    data: Path,
    level: str,
    log_dir: Path | None,
    on_ready: OnReady,
    new_node: NewNode | None = None,
    scram: Sequence[str] = (),
) -> None:
    """Format and start the nodes, call `on_ready` when all answer, return when a signal has stopped them."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            loop.add_signal_handler(number, stopping.set)
    await _check_ports(nodes)
    await format_nodes(nodes, data, scram)
    watching = await _start_guard()
    run = ClusterRun(nodes, {"level": level}, log_dir, watching, new_node)
    run.stopping = stopping
    control = ControlServer(data, run.answer)
    try:
        for settings in nodes:
            await run.start(int(settings["node.id"]))
        stopped = loop.create_task(stopping.wait())
        ready = run.follow(run.all_ready())
        await asyncio.wait({stopped, ready}, return_when=asyncio.FIRST_COMPLETED)
        if ready.done():
            ready.result()  # raises if a node could not start
            try:
                await control.open()
            except OttlaError as refused:
                warn(f"`ottla up status` and its other actions do not work: {refused}")
            on_ready(list(run.children.values()))
            await stopped
        else:
            ready.cancel()
    finally:
        stopping.set()
        await control.close()
        await run.end()
        await _end_guard(watching)
    if run.is_over:
        raise click.ClickException("every node has ended: see the lines above")


async def _check_ports(nodes: Sequence[Mapping[str, str]]) -> None:
    """Refuse a taken port before anything is formatted."""
    with real_world() as world:
        for settings in nodes:
            try:
                await check_ports(world, addresses(BrokerConfig.from_settings(settings)))
            except AddressRefused as refused:
                raise AddressRefused(f"node {settings['node.id']}: {refused}") from None


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


async def _start(job: Mapping[str, Any]) -> Child:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *CHILD,
        f"ottla node {job['settings']['node.id']}",  # for `ps`
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


OWN_SETTINGS = frozenset({"node.id", "listeners", "advertised.listeners", "log.dirs", "log.dir", "controller.quorum.voters"})
"""Settings that differ from node to node, so that `--set` cannot give one value to all."""


def up_cluster(
    host: str,
    port: int,
    count: int,
    data: Path,
    secure: bool,
    overrides: Mapping[str, str],
    metrics_port: int | None,
    log_dir: Path | None,
    level: str,
    as_json: bool,
    quiet: bool,
    has_console: bool,
    has_registry: bool,
) -> None:
    """Run `count` nodes until a signal stops them."""
    security = node_security(data, host) if secure or (data / SECURITY_FOLDER).is_dir() else None
    for name in sorted(OWN_SETTINGS & overrides.keys()):
        raise click.UsageError(f"--set {name}: with --nodes each node has its own; use --host, --port and --data instead")
    try:
        ports = default_ports(port, count) if port else []
    except ValueError as no_room:
        raise click.UsageError(str(no_room)) from None
    if count % 2 == 0:
        warn(f"--nodes {count}: a quorum of {count} survives no more failures than one of {count - 1}; prefer an odd number")

    def metrics(node_id: int) -> dict[str, str]:
        """The port of a node's metrics, if they are wanted: one after the other, or any that are free."""
        if metrics_port is None:
            return {}
        return {"ottla.metrics.port": str(metrics_port + node_id - 1 if metrics_port else 0)}

    def tell(children: list[Child]) -> None:
        servers = ",".join(child.bootstrap_servers for child in children)
        login = None if security is None else client_file(data)
        if has_registry:
            add_registry(companions, host, servers, login)
        if has_console:
            add_console(companions, host, servers, login)
        if as_json or not quiet:
            _print_ready(children, data, security is not None, as_json, companions)

    with closing(ReservedPorts(host, 0 if ports else 2 * count)) as free, Companions() as companions:
        ports = ports or list(zip(free.ports[:count], free.ports[count:], strict=True))
        plain = cluster_settings(host, ports, str(data))
        voters = [{**(settings if security is None else secured(settings, security)), **overrides} for settings in plain]

        registry = registry_settings(companions, host, overrides) if has_registry else {}
        for settings in voters:
            settings |= metrics(int(settings["node.id"])) | registry

        def new_node(node_id: int) -> dict[str, str]:
            return further_node(voters[0], host, port and port + node_id - 1, node_id, data) | metrics(node_id)

        nodes = [*voters, *(new_node(each) for each in added_nodes(data) if each > count)]
        users = () if security is None else (first_user(security),)
        asyncio.run(run_cluster(nodes, data, level, log_dir, tell, new_node, users))


def further_node(voter: Mapping[str, str], host: str, port: int, node_id: int, data: Path) -> dict[str, str]:
    """The settings of a broker that is added to the voters. `port` 0: any that is free."""
    host = f"[{host}]" if ":" in host and not host.startswith("[") else host
    return {
        **voter,
        "process.roles": "broker",
        "node.id": str(node_id),
        "listeners": f"{voter['listeners'].partition('://')[0]}://{host}:{port}",
        "log.dirs": f"{data}/node-{node_id}",
    }


def _data_flag(data: Path) -> str:
    return "" if data == Path("ottla-data").resolve() else f" --data {escape(str(data))}"


def _replication(count: int) -> str:
    return f"New topics have {min(count, REPLICAS_MAX)} replicas, spread over the nodes: one node may be down."


def _print_ready(children: list[Child], data: Path, is_secure: bool, as_json: bool, companions: Companions) -> None:
    servers = ",".join(child.bootstrap_servers for child in children)
    cluster_id = children[0].cluster_id
    if as_json:
        nodes = [
            {"node_id": child.node_id, "bootstrap_servers": child.bootstrap_servers, "pid": child.process.pid}
            for child in children
        ]
        facts = {"bootstrap_servers": servers, "cluster_id": cluster_id, "data": str(data), "nodes": nodes}
        print_json(facts | companions.facts() | ({"client_properties": str(client_file(data))} if is_secure else {}))
        return
    config = who = ""
    if is_secure:
        file = escape(str(client_file(data)))
        config = f"\n  export {CONFIG_VARIABLE}={file}"
        who = f"\nTLS, users and access control are on. Clients need the settings in {file}: user admin."
    up_at = f"{click.style(servers, bold=True)} (cluster {cluster_id}; data in {escape(str(data))})"
    click.echo(  # noqa: TID251  # several lines, and the names in them are escaped
        f"""
A cluster of {len(children)} Ottla nodes is up at {up_at}
{_replication(len(children))}{who}{"".join(f"{chr(10)}{line}" for line in companions.lines())}

Try next, in another terminal:
  export {ENVIRONMENT_VARIABLE}={servers}{config}
  ottla topics create greetings --partitions 6
  ottla topics describe greetings
  echo hello | ottla produce greetings
  ottla up restart 2{_data_flag(data)}
or point any Kafka client at {servers}. Ctrl-C stops all nodes.
"""
    )


CONTROLLER_PORTS_FROM = 10_000
"""The controller of a node listens this many ports above its broker: 19092 for 9092."""


def default_ports(port: int, count: int) -> list[tuple[int, int]]:
    """(broker port, controller port) of `count` nodes. `ValueError`, with advice, if there is no room for them."""
    last = port + count - 1 + CONTROLLER_PORTS_FROM
    if last > 65535:
        raise ValueError(
            f"--port {port} leaves no room: the controllers of {count} nodes listen on ports up to {last}, and 65535 is the "
            f"highest. Choose a port up to {65535 - CONTROLLER_PORTS_FROM - count + 1}, or 0 for free ones"
        )
    return [(each, each + CONTROLLER_PORTS_FROM) for each in range(port, port + count)]
