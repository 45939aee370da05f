"""Starts, stops, kills, pauses and cuts off the nodes of a test's cluster: coroutines on an event loop in their own thread.

Every node is a child process (`child.py`) with its own folder and ports. The ports are reserved for as long as the cluster
lasts, so that a node that was stopped gets its own again. A guard process (`env/real/guard.py`) ends the nodes if this process
cannot.
"""

from __future__ import annotations

import asyncio
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ottla.env.real import guard
from ottla.env.real.disk import RealDisk
from ottla.env.real.ports import ReservedPorts
from ottla.env.real.randomness import RealRandomness
from ottla.env.real.workers import ThreadWorkers
from ottla.errors import OttlaError
from ottla.ids import uuid_text
from ottla.log.directories.meta_properties import read_meta_properties
from ottla.testing.client import Client
from ottla.testing.cluster.cuts import CLIENTS, CutRule, blocked_at
from ottla.testing.cluster.settings import PORTS_PER_NODE, NodePorts, all_settings, check_config, node_ports
from ottla.testing.engine import REPORT, Helpers
from ottla.testing.errors import BrokerFailed, NotRunning, TimedOut
from ottla.testing.host import Launch
from ottla.testing.logs import STAMP_LENGTH, lines_since, stamp, stamped
from ottla.testing.process_host import ProcessHost
from ottla.testing.settings import HOST

if TYPE_CHECKING:
    from ottla.testing.client import Client

T = TypeVar("T")
__tracebackhide__ = True  # for pytest: a test that fails shows the line that called us

START_S: Final = 60.0
STARTED_LATE_S: Final = 1.0
"""How much later than it answers a node may log that it is up, on a busy machine."""
REQUEST_TIMEOUT_MS: Final = 5_000
"""How long a helper waits for one node before it asks another: a node that is paused or cut off does not answer."""
SEEN_S_MAX: Final = 5.0
LOOK_AGAIN_S: Final = 0.01
CUT, RELEASE = "cut", "release"
"""Commands of `runner.py`, which is not imported here: it loads the broker."""


class NodeState:
    """One node, whether it runs or not."""

    def __init__(self, node_id: int, ports: NodePorts, settings: dict[str, str]) -> None:
        self.node_id = node_id
        self.ports = ports
        self.settings = settings
        self.host: ProcessHost | None = None
        self.is_paused = False
        self.ended = "it was not started"
        self.last_lines: list[str] = []

    @property
    def is_running(self) -> bool:
        return self.host is not None and self.host.failure is None

    @property
    def log_lines(self) -> list[str]:
        return self.last_lines if self.host is None else self.last_lines + self.host.log_lines

    @property
    def condition(self) -> str:
        """In words, for errors."""
        if self.host is None:
            return self.ended
        return "it has failed" if self.host.failure is not None else "it is paused" if self.is_paused else "it runs"


class ClusterEngine(Helpers):
    """The state of one cluster. Its coroutines run on its own loop, through `run` and `wait`."""

    def __init__(self, config: Mapping[str, object], nodes: int, data: str | None) -> None:
        super().__init__()
        check_config(config, nodes)
        self._config = dict(config)
        self._count = nodes
        self._given_data = None if data is None else Path(data).resolve()
        self._reserved: ReservedPorts | None = None
        self._guard: asyncio.subprocess.Process | None = None
        self._client: Client | None = None
        self._old_clients: list[Client] = []
        self._rules: dict[int, CutRule] = {}
        self._next_rule = 1
        self._untold: set[asyncio.Future[Any]] = set()
        self.data: Path | None = self._given_data
        self.cluster_id = ""
        self.nodes: dict[int, NodeState] = {}

    # Start and stop

    async def start(self) -> None:
        """Start every node that does not run."""
        async with self._changing:
            is_first = self._reserved is None
            try:
                if is_first:
                    await self._prepare()
                await self._start_nodes([each for each in self.nodes.values() if each.host is None], START_S)
                if self.started is None:
                    self.started = time.time()
            except BaseException:
                if is_first:
                    await self._end()
                raise

    async def _prepare(self) -> None:
        """Choose folder, ports and cluster id, and start the guard."""
        if self.data is None:
            self.data = Path(tempfile.mkdtemp(prefix="ottla-testing-"))
        self._reserved = ReservedPorts(HOST, PORTS_PER_NODE * self._count)
        self.cluster_id = self._known_cluster_id() or uuid_text(RealRandomness().new_uuid())
        ports = node_ports(self._reserved.ports)
        for node_id, (each, settings) in enumerate(
            zip(ports, all_settings(self._config, ports, str(self.data)), strict=True), start=1
        ):
            self.nodes[node_id] = NodeState(node_id, each, settings)
        self._guard = await asyncio.create_subprocess_exec(
            sys.executable, "-I", "-S", guard.__file__, stdin=asyncio.subprocess.PIPE, start_new_session=True
        )
        if self._given_data is None:
            self._tell_guard(f"folder {self.data}")

    def _known_cluster_id(self) -> str | None:
        """The cluster that a given folder belongs to."""
        if self._given_data is None:
            return None

        disk = RealDisk(ThreadWorkers())
        metas = (read_meta_properties(disk, f"{self.data}/node-{node}") for node in range(1, self._count + 1))
        return next((meta.cluster_id for meta in metas if meta is not None), None)

    async def stop(self) -> None:
        """End all nodes, cleanly if their data is kept; `BrokerFailed` if one had stopped by itself."""
        async with self._changing:
            running = [each for each in self.nodes.values() if each.host is not None]
            failures = [each.host.failure for each in running if each.host is not None and each.host.failure is not None]
            try:
                if self._given_data is not None:
                    await self._stop_nodes(running)
            finally:
                await self._end()
            if failures:
                raise failures[0]

    async def _end(self) -> None:
        """Kill what runs, and leave nothing behind."""
        for client in (*self._old_clients, *([] if self._client is None else [self._client])):
            client.close()
        self._old_clients, self._client = [], None
        await asyncio.gather(*(self._kill(each, "it was stopped") for each in self.nodes.values() if each.host is not None))
        for task in self._untold:
            task.cancel()
        self._rules.clear()
        if self._given_data is None and self.data is not None:
            shutil.rmtree(self.data, ignore_errors=True)
            self.data = None
        if self._reserved is not None:
            self._reserved.close()
            self._reserved = None
        if self._guard is not None:
            assert self._guard.stdin is not None
            self._guard.stdin.close()
            await self._guard.wait()
            self._guard = None

    async def _abandon(self) -> None:
        await self._end()

    def _tell_guard(self, line: str) -> None:
        if self._guard is not None and self._guard.stdin is not None and self._guard.returncode is None:
            self._guard.stdin.write(f"{line}\n".encode())

    # Nodes

    def node(self, node_id: int) -> NodeState:
        if node_id not in self.nodes:
            there = ", ".join(map(str, self.nodes)) or "none, because it was not started"
            raise NotRunning(f"the cluster has no node {node_id}; it has {there}")
        return self.nodes[node_id]

    def _running(self, node_id: int) -> tuple[NodeState, ProcessHost]:
        state = self.node(node_id)
        if state.host is None:
            raise NotRunning(f"node {node_id} is not running: {state.ended}. start() it")
        if state.host.failure is not None:
            raise state.host.failure
        return state, state.host

    async def _start_nodes(self, states: Iterable[NodeState], timeout_s: float) -> None:
        """Start them all at once: one alone is no quorum. If one fails, the others are not waited for."""
        tasks = [asyncio.ensure_future(self._start_node(each, timeout_s)) for each in states]
        if not tasks:
            return
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            for task in tasks:
                task.cancel()
            outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, Exception):
                raise outcome

    async def _start_node(self, state: NodeState, timeout_s: float) -> None:
        if state.host is not None:
            raise NotRunning(f"node {state.node_id} is running already: stop() or kill() it first, or restart() it")
        others = {
            str(port): str(each.node_id)
            for each in self.nodes.values()
            if each is not state
            for port in (each.ports.controller, each.ports.nodes)
        }
        launch = Launch(
            state.settings,
            is_synced=self._given_data is not None,
            cluster_id=self.cluster_id,
            node_ports=others,
            client_port=state.ports.clients,
            blocked=self._blocked(state),
        )
        pids: list[int] = []

        def spawned(pid: int) -> None:
            pids.append(pid)
            self._tell_guard(f"add {pid}")

        host = ProcessHost(spawned)
        try:
            async with asyncio.timeout(timeout_s):
                await host.start(launch)
        except BaseException as failure:
            state.last_lines += host.log_lines
            for pid in pids:
                self._tell_guard(f"drop {pid}")
            if isinstance(failure, TimeoutError):
                raise TimedOut(self._why_late(state, timeout_s)) from None
            if isinstance(failure, BrokerFailed):
                raise BrokerFailed(f"node {state.node_id}: {failure}") from failure
            raise
        state.host = host
        self._changed()

    def _why_late(self, state: NodeState, timeout_s: float) -> str:
        others = [each for each in self.nodes.values() if each is not state]
        there = "; ".join(f"node {each.node_id}: {each.condition}" for each in others)
        return (
            f"node {state.node_id} did not start within {timeout_s:g} s. It needs a controller that a majority of the "
            f"{len(self.nodes)} voters has elected ({there or 'there are no others'})"
        )

    async def start_node(self, node_id: int, timeout_s: float) -> None:
        async with self._changing:
            await self._start_node(self.node(node_id), timeout_s)

    async def stop_node(self, node_id: int) -> None:
        async with self._changing:
            await self._stop_nodes([self._running(node_id)[0]])

    async def restart_node(self, node_id: int, timeout_s: float) -> None:
        async with self._changing:
            state, _ = self._running(node_id)
            await self._stop_nodes([state])
            await self._start_node(state, timeout_s)

    async def kill_node(self, node_id: int) -> None:
        async with self._changing:
            await self._kill(self._running(node_id)[0], "it was killed")

    async def pause_node(self, node_id: int) -> None:
        async with self._changing:
            state, host = self._running(node_id)
            state.is_paused = True
            host.send_signal(signal.SIGSTOP)
            self._changed()

    async def resume_node(self, node_id: int) -> None:
        """Let a paused node go on; nothing if it is not paused, or has ended since."""
        async with self._changing:
            self._resume(self.node(node_id))

    def _resume(self, state: NodeState) -> None:
        if state.is_paused and state.host is not None:
            state.host.send_signal(signal.SIGCONT)
        state.is_paused = False
        self._changed()

    async def _stop_nodes(self, states: Iterable[NodeState]) -> None:
        """Stop them cleanly, all at once. All stay in the quorum until each has left the cluster, which takes a controller."""
        stopping = [(each, each.host) for each in states if each.host is not None]

        async def stop(state: NodeState, host: ProcessHost) -> None:
            self._resume(state)
            try:
                await host.stop()
            except OttlaError as error:
                raise host.failure or BrokerFailed(f"node {state.node_id} did not shut down cleanly: {error}") from error
            finally:
                self._forget(state, host, "it was stopped")

        async def release() -> None:
            await asyncio.gather(*(host.left.wait() for _, host in stopping))
            telling = (host.command(RELEASE, {}) for _, host in stopping)
            await asyncio.gather(*telling, return_exceptions=True)  # one that has ended needs none

        await asyncio.gather(*(stop(*each) for each in stopping), release())

    async def _kill(self, state: NodeState, ended: str) -> None:
        host = state.host
        assert host is not None
        self._forget(state, host, ended)
        await host.kill()

    def _forget(self, state: NodeState, host: ProcessHost, ended: str) -> None:
        self._tell_guard(f"drop {host.pid}")
        state.last_lines += host.log_lines
        state.host, state.is_paused, state.ended = None, False, ended
        self._changed()

    def _changed(self) -> None:
        """Nodes have come or gone: the next helper gets a client that begins with those that answer."""
        if self._client is not None:
            self._old_clients.append(self._client)  # it may still be in use
            self._client = None

    # Cuts

    async def cut(self, rule: CutRule) -> int:
        """Cut connections; returns the number to heal it by."""
        async with self._changing:
            number, self._next_rule = self._next_rule, self._next_rule + 1
            self._rules[number] = rule
            await self._apply_cuts()
            return number

    async def heal(self, number: int | None) -> None:
        """End one cut (None: all). Healing twice is harmless."""
        async with self._changing:
            for each in list(self._rules) if number is None else [number]:
                self._rules.pop(each, None)
            await self._apply_cuts()

    async def _apply_cuts(self) -> None:
        self._changed()
        telling = []
        for state in self.nodes.values():
            if state.host is None or state.host.failure is not None:
                continue
            task = asyncio.ensure_future(state.host.command(CUT, {"blocked": self._blocked(state)}))
            if state.is_paused:  # it gets to know when it goes on
                self._untold.add(task)
                task.add_done_callback(self._told_late)
            else:
                telling.append(task)
        await asyncio.gather(*telling)

    def _told_late(self, task: asyncio.Future[Any]) -> None:
        self._untold.discard(task)
        if not task.cancelled():
            task.exception()  # the node has ended meanwhile: its next caller finds out

    def _blocked(self, state: NodeState) -> dict[str, list[bool]]:
        return {peer: list(both) for peer, both in blocked_at(state.node_id, self._rules.values()).items()}

    # Helpers

    def answering(self) -> list[NodeState]:
        """The nodes that can answer clients."""
        return [
            each
            for each in self.nodes.values()
            if each.is_running and not each.is_paused and CLIENTS not in self._blocked(each)
        ]

    async def _help(self, work: Callable[[Client], Awaitable[T]]) -> T:
        states = self.answering()
        if not states:
            conditions = "; ".join(f"node {each.node_id}: {each.condition}" for each in self.nodes.values())
            raise NotRunning(f"no node of the cluster can answer: {conditions or 'it was not started'}")
        if self._client is None:
            addresses = ",".join(f"{HOST}:{each.ports.clients}" for each in states)
            self._client = Client(addresses, REQUEST_TIMEOUT_MS, waits_for_brokers=True)
        try:
            return await work(self._client)
        except OttlaError as error:
            self.raise_failure(error)
            raise

    def raise_failure(self, cause: BaseException | None = None) -> None:
        """Raise why a node has stopped by itself, if one has."""
        for state in self.nodes.values():
            if state.host is not None and state.host.failure is not None:
                raise state.host.failure from cause

    def create_topic(
        self, name: str, partitions: int, config: Mapping[str, object], replication_factor: int | None = None
    ) -> Coroutine[Any, Any, None]:
        creating = super().create_topic(name, partitions, config, replication_factor)
        return self._everywhere(creating, lambda topics: topics.get(name) == partitions)

    def delete_topic(self, name: str) -> Coroutine[Any, Any, None]:
        return self._everywhere(super().delete_topic(name), lambda topics: name not in topics)

    async def _everywhere(self, change: Coroutine[Any, Any, None], is_seen: Callable[[dict[str, int]], bool]) -> None:
        """Make a change, and wait until every node shows it: nodes learn of it after it is acknowledged."""
        await change
        deadline_s = asyncio.get_running_loop().time() + SEEN_S_MAX
        for state in self.answering():
            while asyncio.get_running_loop().time() < deadline_s:
                # A new client each time: its first request goes to the only address that it knows.
                client = Client(f"{HOST}:{state.ports.clients}", REQUEST_TIMEOUT_MS)
                try:
                    if is_seen(await client.topics()):
                        break
                except OttlaError:
                    pass  # it has ended, or its broker is not up yet
                finally:
                    client.close()
                await asyncio.sleep(LOOK_AGAIN_S)

    async def _told(self, since: float) -> tuple[list[str], list[str]]:
        """Faults and requests of all nodes that run; which nodes are paused, ended or cut off."""
        faults = [
            f"node {each.node_id}: {each.condition}" for each in self.nodes.values() if each.is_paused or not each.is_running
        ]
        faults += [
            f"node {each.node} is cut off from {', '.join(each.peers)}: {each.direction}" for each in self._rules.values()
        ]
        requests: list[tuple[str, str]] = []
        for state in self.nodes.values():
            if state.host is not None and state.is_running and not state.is_paused:
                its_faults, its_requests = await state.host.command(REPORT, {"since": since})
                faults += [f"node {state.node_id} | {line}" for line in its_faults]
                requests += [(line[:STAMP_LENGTH], f"node {state.node_id} | {line}") for line in its_requests]
        return faults, [line for _, line in sorted(requests, key=lambda each: each[0])]

    def lines_since(self, since: float) -> list[str]:
        # A node answers, and so counts as started, a moment before it has logged that it is up.
        settled = stamp((self.started or since) + STARTED_LATE_S)
        return self._merged(
            {node: _after_start(lines_since(state.log_lines, since), settled) for node, state in self.nodes.items()}
        )

    @property
    def log_lines(self) -> list[str]:
        """The last lines of all nodes, in the order of their times."""
        return self._merged({node: state.log_lines for node, state in self.nodes.items()})

    def _merged(self, lines: Mapping[int, list[str]]) -> list[str]:
        found = [(at, f"node {node} | {line}") for node, its_lines in lines.items() for at, line in stamped(its_lines)]
        return [line for _, line in sorted(found, key=lambda each: each[0])]

    async def tell(self, node_id: int, name: str, values: dict[str, Any]) -> Any:
        """Send a command to a node; returns its result."""
        return await self._running(node_id)[1].command(name, values)

    async def help(self, work: Callable[[Client], Awaitable[T]]) -> T:
        """Run `work` with a client of the cluster."""
        return await self._help(work)


def _after_start(lines: list[str], settled: str) -> list[str]:
    """Lines without those of a node's start, up to the time `settled`."""
    last = [number for number, (at, line) in enumerate(stamped(lines)) if " is up at " in line and at <= settled]
    return lines[last[0] + 1 :] if last else lines
