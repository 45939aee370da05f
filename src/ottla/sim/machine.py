"""A simulated machine with one Ottla node, which is started, killed, switched off and started again.

The node is `ottla.broker.node.Node`, unchanged, in a `Process` of the virtual loop. One run of the process is a *life*; every
life has the name, disk and clock of the one before. A life ends by:

- `kill`: the process ends in the middle of a step. Its peers' connections are reset; files stay as they are.
- `lose_power`: the process ends, peers get no reset, and chance decides what is left of unsynced writes.
- `stop`: a clean shutdown.
- `crash_in`: a kill or a power loss in the middle of a change to the disk, after a number of changes.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from ottla.broker.formatting import format_if_new
from ottla.broker.node import Node
from ottla.env import World
from ottla.errors import KafkaError, OttlaError
from ottla.sim.disk import MemoryDisk
from ottla.sim.loop import Process, VirtualLoop
from ottla.sim.net import SimNetwork
from ottla.sim.trace import Trace
from ottla.sim.world import InPlaceHelpers, LoopClock, SeededRandomness

NAME = "node"
SLOW_CALLS_MAX = 50
"""An upper bound of the disk calls in one round of flushes, with all partitions of a run."""
PORT = 9092
CONTROLLER_PORT = 9093
DIRECTORIES = ("/data/a", "/data/b")
"""The log directories. The first also holds the metadata log."""


class NodeFailed(AssertionError):
    """A node did not start, or stopped by itself, without an injected fault that explains it."""


def node_settings(name: str) -> dict[str, str]:
    """The `server.properties` of a single node on host `name`."""
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": f"PLAINTEXT://{name}:{PORT},CONTROLLER://{name}:{CONTROLLER_PORT}",
        "advertised.listeners": f"PLAINTEXT://{name}:{PORT},CONTROLLER://{name}:{CONTROLLER_PORT}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": f"{name}:{CONTROLLER_PORT}",
        "log.dirs": ",".join(DIRECTORIES),
        "auto.create.topics.enable": "false",
    }


@dataclass(frozen=True, slots=True)
class DiskFault:
    """A fault of one of the two log directories."""

    directory: str
    operation: str
    """As in `disk.py`; "*" is every call from then on."""
    error: int
    skip: int
    """How many of these calls succeed first."""
    keep_bytes: int
    cut_back_fails: bool


class Machine:
    """One machine. `levels` are the initial feature levels; `slowness_s` limits the time of one awaited call to its disk."""

    def __init__(
        self,
        loop: VirtualLoop,
        network: SimNetwork,
        random: Random,
        trace: Trace,
        settings: Mapping[str, str],
        levels: Mapping[str, int],
        name: str = NAME,
    ) -> None:
        self.name = name
        self.settings: Mapping[str, str] = {**node_settings(name), **settings}
        self.rate = 1.0
        """How fast the clocks of the next life run."""
        self._levels = levels
        self.clock = LoopClock(loop)
        self.slowness_s = 0.002
        self.disk = MemoryDisk(random, self.clock, self._wait_for_disk)
        self.node: Node | None = None
        self.lives = 0
        self.power_losses = 0
        self.fault_expected = False
        """Whether this life has an injected fault that may make the node stop by itself."""
        self.failures: list[BaseException] = []
        self._up_s = 0.0
        self._end_s = 0.0
        self._had_fault = False
        self._loop, self._network, self._random, self._trace = loop, network, random, trace
        self._randomness = SeededRandomness(random)
        self._process: Process | None = None
        self._ended: asyncio.Event = asyncio.Event()
        self._up: asyncio.Event = asyncio.Event()

    async def _wait_for_disk(self) -> None:
        # Mostly fast; every tenth call may take the full `slowness_s`.
        slow = self.slowness_s if self._random.random() < 0.1 else self.slowness_s / 10
        await asyncio.sleep(self._random.uniform(0.000_05, max(slow, 0.000_1)))

    # Starting

    @property
    def is_alive(self) -> bool:
        return self._process is not None and not self._process.is_dead

    def start(self) -> None:
        """Begin a life. `wait_up` waits until the node answers."""
        assert not self.is_alive, "a machine runs one node at a time"
        self.lives += 1
        self.fault_expected = False
        self._trace.note(self.name, "start", f"life {self.lives}")
        if self.disk.crashed:
            self.disk = self.disk.crash(power_loss=False)
        self.disk.on_crash = self._crashed
        self._process = Process(f"{self.name}-{self.lives}", self.rate)
        self._ended, self._up = asyncio.Event(), asyncio.Event()
        task = self._loop.spawn(self._process, self._live(self._ended, self._up))
        task.add_done_callback(lambda _: None)

    async def _live(self, ended: asyncio.Event, up: asyncio.Event) -> None:
        disk = self.disk
        world = World(disk, self.clock, self._network.host(self.name), self._randomness, InPlaceHelpers(disk, self.clock))
        try:
            await self.format(world)
            node = await self.start_node(world)
        except (OttlaError, OSError) as error:
            self._give_up(error)
            return
        self.node = node
        self._up_s = self._loop.time()
        self._trace.note(self.name, "up")
        up.set()
        reason = await node.broken
        self._give_up(reason)

    async def format(self, world: World) -> None:
        """Format the directories that are not formatted yet."""
        await format_if_new(world, self.settings, self._levels)

    async def start_node(self, world: World) -> Node:
        """Start the node of this life."""
        return await Node.start(world, self.settings, hostname=self.name)

    def _give_up(self, reason: BaseException) -> None:
        if not self.is_alive:
            return  # it was killed in the middle of this step
        self._trace.note(self.name, "gives up", f"{type(reason).__name__}: {reason}")
        if not self.fault_expected:
            self.failures.append(NodeFailed(f"{self.name} gave up in life {self.lives}: {type(reason).__name__}: {reason}"))
        self._end()

    def safe_before_s(self, wait_s: float) -> float | None:
        """Records written before this time were flushed before the last life ended, if a flush takes at most `wait_s`.

        None if the life was too short, or its disk had a fault.
        """
        before_s = self._end_s - wait_s - SLOW_CALLS_MAX * self.slowness_s
        return before_s if before_s > self._up_s and not self._had_fault else None

    async def wait_up(self) -> bool:
        """Wait until the node is up or its life is over. Returns whether it is up."""
        waits = [asyncio.ensure_future(event.wait()) for event in (self._up, self._ended)]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
        return self.is_alive and self._up.is_set()

    async def wait_ended(self) -> None:
        """Wait until this life is over."""
        await self._ended.wait()

    async def within(self, work: Callable[[Node], Coroutine[Any, Any, None]]) -> None:
        """Run `work` in the node's process, for what cannot be requested over the wire. The node must be up."""
        assert self._process is not None
        assert self.node is not None
        await self._loop.spawn(self._process, work(self.node))

    def serving_shard(self, group: str) -> object:
        """The shard with which the node serves a group as its coordinator; None if it does not, as while it loads the shard."""
        if self.node is None or not self._up.is_set():
            return None
        groups = self.node.services.coordinators._groups
        try:
            return None if groups is None else groups.shard_for(group)
        except KafkaError:
            return None

    # Pausing

    @property
    def is_paused(self) -> bool:
        return self._process is not None and self._process.is_paused

    def pause(self) -> None:
        """Stop the process until `resume`, as SIGSTOP does."""
        if self._process is not None and self.is_alive:
            self._trace.note(self.name, "pause")
            self._loop.pause(self._process)

    def resume(self) -> None:
        if self._process is not None and self.is_alive and self.is_paused:
            self._trace.note(self.name, "resume")
            self._loop.resume(self._process)

    # Ending

    def kill(self) -> None:
        """End the process."""
        if self.is_alive:
            self._trace.note(self.name, "kill")
            self._end()
        self.disk = self.disk.crash(power_loss=False)

    def lose_power(self) -> None:
        """End the process, and lose a random part of what was not synced."""
        self._trace.note(self.name, "power loss")
        self.power_losses += 1
        self._end(silently=True)
        self.disk = self.disk.crash(power_loss=True)

    async def stop(self) -> None:
        """Shut the node down cleanly if it is up, else kill it."""
        if not self.is_alive or not self._up.is_set():
            self.kill()
            return
        assert self._process is not None
        assert self.node is not None
        self._trace.note(self.name, "stop")
        stopping = self._loop.spawn(self._process, self.node.stop())
        ended = asyncio.ensure_future(self._ended.wait())
        await asyncio.wait([stopping, ended], return_when=asyncio.FIRST_COMPLETED)
        ended.cancel()
        if stopping.done() and stopping.exception() is not None and not self.fault_expected:
            self.failures.append(NodeFailed(f"{self.name} did not shut down cleanly: {stopping.exception()!r}"))
        self.kill()

    def break_disk(self, fault: DiskFault) -> None:
        """Inject a fault into the disk until the next life. The node may stop by itself because of it."""
        self._trace.note(self.name, "disk fault", f"{fault.directory} {fault.operation} {errno.errorcode[fault.error]}")
        self.fault_expected = True
        if fault.operation == "*":
            self.disk.fail_directory(fault.directory)
        else:
            self.disk.fail(
                fault.operation,
                f"{fault.directory}/*",
                fault.error,
                skip=fault.skip,
                keep_bytes=fault.keep_bytes,
                cut_back_fails=fault.cut_back_fails,
            )

    def crash_in(self, changes: int) -> None:
        """Let `changes` more changes to the disk succeed, and end the process in the middle of the next."""
        self._trace.note(self.name, "crash in", f"{changes} changes")
        self.disk.crash_before(changes)

    def _crashed(self) -> None:
        self._trace.note(self.name, "crash", "in the middle of a change to its disk")
        self._end()

    def _end(self, silently: bool = False) -> None:
        if self._process is not None and not self._process.is_dead:
            if self.node is None:
                self._up_s = self._loop.time()  # it never was up
            self.node, self._end_s, self._had_fault = None, self._loop.time(), self.fault_expected
            self._loop.kill(self._process)
            self._network.crash(self.name, silently)
        self._ended.set()
