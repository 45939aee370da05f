"""Runs one node for a test, on the event loop of the node: in a thread of the test's process or in a child process.

Formats and starts the node, runs a few commands, and stops or kills it. Commands are names with JSON values, so that they can
come through a pipe. A node that breaks is stopped, and `broken` has the reason.

Its world is real, but it can be killed within its process, and temporary data is not synced: a killed process loses nothing
that it has written, and temporary data need not survive a power loss. Waiting for syncs would take most of the time of a start.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Final

from ottla.broker.formatting import FormatOptions, format_directories, format_if_new
from ottla.broker.node import Node
from ottla.broker.requests import pipeline as requests_pipeline
from ottla.broker.requests.apis import ON_BROKER
from ottla.broker.requests.fault_log import FaultLog
from ottla.config.broker import BrokerConfig
from ottla.env import DirectoryLock, World
from ottla.env.disk import Buffer, File
from ottla.env.real.clock import RealClock
from ottla.env.real.disk import RealDisk
from ottla.env.real.file import RealFile
from ottla.env.real.helpers import ProcessHelpers
from ottla.env.real.loop_watch import RealLoopWatch
from ottla.env.real.net import RealNetwork
from ottla.env.real.randomness import RealRandomness
from ottla.env.real.workers import ThreadWorkers, compute_workers
from ottla.env.real.world import LazySchemaRegistries
from ottla.errors.codes import ErrorCode, error_name
from ottla.testing.cluster.network import CuttableNetwork
from ottla.testing.cluster.settings import NODE_LISTENER
from ottla.testing.fault_table import FaultTable
from ottla.testing.host import Facts, Launch
from ottla.testing.request_trace import RequestTrace
from ottla.wire.api_table import ApiKey

if TYPE_CHECKING:
    from ottla.env import Network, World
    from ottla.errors import OttlaError
    from ottla.testing.cluster.network import CuttableNetwork
    from ottla.testing.fault_table import FaultTable


CUT: Final = "cut"
"""The command that says which connections of the node are cut: {"blocked": …}."""

RELEASE: Final = "release"
"""The command that lets a stopping node leave the quorum: no other node needs it any more."""

REPORT: Final = "report"
"""The command that returns what a failed test shows: {"since": …} → faults and requests as lines."""
STAY_S_MAX: Final = 5.0


class NodeRunner:
    """Runs one node. Belongs to the loop that it was created on."""

    def __init__(self) -> None:
        self._holding = ExitStack()
        self._node: Node | None = None
        self._faults: FaultTable | None = None
        self._trace: RequestTrace | None = None
        self._network: CuttableNetwork | None = None
        self._tasks_before: set[asyncio.Task[Any]] = set()
        self._is_killed = False
        self.broken: OttlaError | None = None
        """Why the node stopped by itself; None while it runs."""
        self.on_broken: Callable[[str], None] | None = None
        self.on_left: Callable[[], None] = lambda: None
        """Called when a node of a cluster, which is being stopped, has left it but for its quorum."""
        self._is_released = asyncio.Event()

    @property
    def node(self) -> Node:
        assert self._node is not None, "started"
        return self._node

    async def start(self, launch: Launch, logger: logging.Logger = requests_pipeline.logger) -> Facts:
        """Format the data folder if it is new, and start the node. If that raises, all resources are released.

        Requests that are refused, wholly or in part, are logged to `logger`.
        """
        self._tasks_before = asyncio.all_tasks()
        world = self._holding.enter_context(killable_world(is_synced=launch.is_synced))
        try:
            if launch.node_ports is not None:
                world = world._replace(network=self._cuttable(world.network, launch))
            await _format(world, launch)
            node = await Node.start(world, launch.settings)
        except BaseException:
            self._holding.close()
            raise
        self._node = node
        if launch.node_ports is not None:
            node.stay_in_quorum = self._stay_in_quorum
        # This is before the node's first request: there was no await since it began to serve.
        node.pipeline.searched = ON_BROKER.keys() - {ApiKey.API_VERSIONS}
        node.pipeline.fault_log = RefusalLog(asyncio.get_running_loop().time, logger)
        self._trace = RequestTrace(node.pipeline, node.listeners, None if launch.node_ports is None else NODE_LISTENER)
        node.broken.add_done_callback(self._is_broken)
        return Facts(node.bootstrap_servers, node.cluster_id, node.node_id)

    def _cuttable(self, network: Network, launch: Launch) -> CuttableNetwork:
        ports = {int(port): node for port, node in (launch.node_ports or {}).items()}
        self._network = CuttableNetwork(network, ports, launch.client_port)
        self._network.block(launch.blocked or {})
        return self._network

    def _is_broken(self, reason: asyncio.Future[OttlaError]) -> None:
        if self._is_killed:
            return
        self.broken = reason.result()
        if self.on_broken is not None:
            self.on_broken(f"{type(self.broken).__name__}: {self.broken}")
        self.node.listeners.abort()

    async def _stay_in_quorum(self) -> None:
        self.on_left()
        try:
            async with asyncio.timeout(STAY_S_MAX):
                await self._is_released.wait()
        except TimeoutError:
            pass

    async def stop(self) -> None:
        """Shut down cleanly, as far as that is possible."""
        if self._faults is not None:
            self._faults.clear()
            self._faults.close_stuck()
        try:
            if self._node is not None:
                await self._node.stop()
        finally:
            self._holding.close()

    async def kill(self) -> None:
        """End as a killed process does: nothing more is written or answered, and there is no clean shutdown file."""
        self._is_killed = True
        if self._node is not None:
            self._node.listeners.abort()
        own = {task for task in asyncio.all_tasks() - self._tasks_before if task is not asyncio.current_task()}
        for task in own:
            task.cancel()
        await asyncio.gather(*own, return_exceptions=True)
        self._holding.close()

    async def command(self, name: str, values: dict[str, Any]) -> Any:
        """Run a command of `Faults`, cut connections, or let a stopping node leave the quorum."""
        if name == RELEASE:
            return self._is_released.set()
        if name == CUT:
            assert self._network is not None, "a node of a cluster"
            return self._network.block(values["blocked"])
        if name == REPORT:
            faults = [] if self._faults is None else self._faults.report()
            return [faults, [] if self._trace is None else self._trace.lines(values["since"])]
        if self._faults is None:
            self._faults = FaultTable(self.node.listeners)
            self.node.pipeline.intercept = self._faults.intercept
        return await self._faults.command(name, values)


async def _format(world: World, launch: Launch) -> None:
    """Format new directories, as a cluster of their own or for the cluster that `launch` names."""
    if launch.cluster_id is None:
        await format_if_new(world, launch.settings, scram=launch.scram)
        return

    options = FormatOptions(launch.cluster_id, ignore_formatted=True)
    await format_directories(world, BrokerConfig.from_settings(launch.settings), options)


LINES_PER_KIND: Final = 3
"""Lines per kind in a window of `FaultLog`. Lines of one kind differ only in numbers: correlation ids, ports."""
_MEMBER_ID_REQUIRED: Final = error_name(ErrorCode.MEMBER_ID_REQUIRED)


class RefusalLog(FaultLog):
    """The log of refused requests of one node."""

    __slots__ = ()

    def report(self, level: int, host: str, text: str, *arguments: object) -> None:
        words = [argument for argument in arguments if not isinstance(argument, int)]
        if words[-1:] == [_MEMBER_ID_REQUIRED]:
            return  # MEMBER_ID_REQUIRED, by which a group's new member gets its id: no failure
        if self._may_log(f"{text} {words}", LINES_PER_KIND):
            self._logger.log(level, text, *arguments)
        else:
            self._omitted += 1


class LockedDisk(RealDisk):
    """A disk that remembers its directory locks, so that they can be released when the node is killed."""

    def __init__(self, workers: ThreadWorkers) -> None:
        super().__init__(workers)
        self._locks: list[DirectoryLock] = []

    def lock_directory(self, path: str) -> DirectoryLock:
        lock = super().lock_directory(path)
        self._locks.append(lock)
        return lock

    def release(self) -> None:
        """Release every lock, as the end of a process would. Releasing twice is harmless."""
        for lock in self._locks:
            lock.release()


class UnsyncedFile(RealFile):
    __slots__ = ()

    async def sync(self) -> None:
        self._held()


class UnsyncedDisk(LockedDisk):
    """A disk that never syncs: its data may not survive a power loss."""

    file_class: ClassVar[type[RealFile]] = UnsyncedFile

    async def replace_files(self, files: Mapping[str, Buffer]) -> None:
        for path, data in files.items():
            draft = f"{path}.tmp"
            with open(draft, "wb", buffering=0) as file:
                file.write(data)
            os.replace(draft, path)

    async def rename(self, old: str, new: str) -> None:
        os.replace(old, new)

    async def sync_directory(self, path: str) -> None:
        os.stat(path)

    async def sync_all(self, files: Sequence[File], folders: Sequence[str]) -> None:
        for file in files:
            await file.sync()
        for folder in folders:
            await self.sync_directory(folder)


@contextmanager
def killable_world(*, is_synced: bool) -> Iterator[World]:
    """A world whose threads and locks end with the block, also after an exception."""
    workers, compute, watch = ThreadWorkers(), compute_workers(), RealLoopWatch()
    disk = LockedDisk(workers) if is_synced else UnsyncedDisk(workers)
    try:
        yield World(
            disk,
            RealClock(),
            RealNetwork(),
            RealRandomness(),
            ProcessHelpers(),
            None,
            watch,
            compute,
            schema_registries=LazySchemaRegistries(),
        )
    finally:
        watch.stop()
        compute.close()
        workers.close()
        disk.release()
