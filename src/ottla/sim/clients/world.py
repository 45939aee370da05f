"""The world of a simulated client: virtual time, the simulated network, and randomness from the run's seed.

The client that users run (`ottla.client`) gets it as its `ClientWorld`. There are no threads: runs use the asyncio faces.
"""

from __future__ import annotations

import asyncio
import errno
from contextlib import AbstractContextManager
from random import Random
from typing import Any, NoReturn

from ottla.client.world import ClientWorld
from ottla.env.net import DEFAULT_OPTIONS, Accept, Listener, SocketOptions, StreamOwner
from ottla.env.threads import Lineage, LoopThread, Signal
from ottla.env.tls import TlsOptions
from ottla.sim.clock import LoopClock
from ottla.sim.net import SimHost
from ottla.sim.randomness import SeededRandomness
from ottla.sim.stream import SimStream


class GatedHost:
    """`Network` of one process on a client's host. It refuses connections while the gate is closed, and to a dead process."""

    def __init__(self, host: SimHost, gate: asyncio.Event) -> None:
        self._host = host
        self._gate = gate
        self._streams: list[SimStream] = []
        self._is_dead = False
        self.connections = 0
        """How many connections were made: their number names the newest."""
        self.generation = 0
        """As `Lineage`: changes when the process dies. Clients that were dropped then are not closed or warned of."""

    def _may_connect(self) -> bool:
        return self._gate.is_set() and not self._is_dead

    def check_tls(self, options: TlsOptions) -> None:
        self._host.check_tls(options)

    async def listen(
        self,
        host: str,
        port: int,
        accept: Accept,
        options: SocketOptions = DEFAULT_OPTIONS,
        tls: TlsOptions | None = None,
    ) -> Listener:
        return await self._host.listen(host, port, accept, options, tls)

    async def connect(
        self,
        host: str,
        port: int,
        owner: StreamOwner,
        options: SocketOptions = DEFAULT_OPTIONS,
        tls: TlsOptions | None = None,
    ) -> SimStream:
        if not self._may_connect():
            raise ConnectionRefusedError(errno.ECONNREFUSED, f"{host} cannot be reached now")
        stream = await self._host.connect(host, port, owner, options, tls)
        if not self._may_connect():
            stream.close()
        self._streams = [each for each in self._streams if not each.is_over]
        self._streams.append(stream)
        self.connections += 1
        return stream

    async def canonical_names(self, host: str) -> list[str]:
        return await self._host.canonical_names(host)

    def hang_up(self) -> None:
        """End all connections. Answers in transit are lost."""
        for stream in self._streams:
            stream.close()
        self._streams.clear()

    def die(self) -> None:
        """The process of this client is gone."""
        self._is_dead = True
        self.generation += 1
        self.hang_up()


class NoThreads:
    """`Threads` for a world without threads: the main thread of one process."""

    def __init__(self, process: GatedHost) -> None:
        self._process = process

    def start_loop(self, name: str) -> LoopThread:
        _refuse()

    def signal(self) -> Signal:
        _refuse()

    def lock(self) -> AbstractContextManager[Any]:
        _refuse()

    def lineage(self) -> Lineage:
        return self._process

    def thread_id(self) -> int:
        return 0

    def process_id(self) -> int:
        return 0


def _refuse() -> NoReturn:
    raise NotImplementedError("a simulated run has no threads: use the asyncio face of the client")


def client_world(seed: str, network: GatedHost) -> ClientWorld:
    """The world of one client process. `seed` decides its backoffs and its choices of partitions and nodes."""
    clock = LoopClock(asyncio.get_running_loop())
    return ClientWorld(clock, network, SeededRandomness(Random(seed)), NoThreads(network))
