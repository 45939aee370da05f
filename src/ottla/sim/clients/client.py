"""What all simulated clients share: a connection that is made again when it breaks, and a place in the run.

A client runs as one task of the harness. Whatever it does is decided by its own chance, made from the run's seed and its name.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Any

from ottla.link import Link, LinkEnded, LinkError, LinkOptions
from ottla.sim.checkers.checker import Checkers
from ottla.sim.clock import START_MS
from ottla.sim.machine import PORT
from ottla.sim.net import SimNetwork
from ottla.sim.trace import Trace
from ottla.wire.base import Message

REQUEST_TIMEOUT_MS = 3_000
BACKOFF_S_MAX = 0.25


@dataclass(eq=False)
class Stage:
    """What the clients of a run have in common."""

    seed: int
    network: SimNetwork
    trace: Trace
    checkers: Checkers
    host: str
    """Of the node."""
    transaction_version: int = 2
    """The cluster's, as clients know it."""
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    """Closed while nobody may speak to the node."""
    is_disk_broken: bool = False
    """Whether the node's disk has a fault in this life, so that it may answer what it else would not."""
    is_ending: bool = False
    """Nothing new is begun: what is under way is brought to its end."""

    resting: dict[str, None] = field(default_factory=dict)
    """Groups whose members do nothing for a while."""
    numbers: Iterator[int] = field(default_factory=count)
    """Whatever must be told from everything else in the run takes the next of these."""

    def now_s(self) -> float:
        return asyncio.get_running_loop().time()

    def now_ms(self) -> int:
        """The true time, whatever the node's clock says."""
        return START_MS + int(asyncio.get_running_loop().time() * 1000)


class Client:
    """One client on a host of its own."""

    passes_gate = False
    """Whether it may speak to the node while others may not."""

    def __init__(self, stage: Stage, name: str) -> None:
        self.stage = stage
        self.name = name
        self.random = Random(f"{stage.seed}/{name}")
        self.connections = 0
        self._link: Link | None = None
        self._options = LinkOptions(
            client_id=name, connect_timeout_ms=2_000, request_timeout_ms=REQUEST_TIMEOUT_MS, in_flight_max=8
        )

    @property
    def connection(self) -> str:
        """The name of the present connection."""
        return f"{self.name}#{self.connections}"

    async def link(self) -> Link:
        """The connection; a new one, as soon as it can be had, where there is none."""
        while self._link is None or self._link.is_over:
            if not self.passes_gate:
                await self.stage.gate.wait()
            try:
                self._link = await Link.connect(self.stage.network.host(self.name), self.stage.host, PORT, self._options)
            except LinkError:
                await self.pause(BACKOFF_S_MAX)
            else:
                self.connections += 1
                if not self.passes_gate and not self.stage.gate.is_set():
                    self.hang_up()
        return self._link

    async def ask(self, message: Message, version: int | None = None) -> Any:
        """The answer to one request; `LinkError` if none came."""
        return await (await self.link()).request(message, version=version)

    async def ask_until_answered(self, message: Message, version: int | None = None) -> Any:
        """The same, asked again until an answer comes: the request may then have been done several times."""
        while True:
            try:
                return await self.ask(message, version)
            except LinkError:
                await self.pause(BACKOFF_S_MAX)

    def hang_up(self) -> None:
        """End the connection: answers that are on their way are never heard."""
        if self._link is not None:
            self._link.close()

    async def pause(self, seconds_max: float) -> None:
        await asyncio.sleep(self.random.uniform(0, seconds_max))

    def note(self, what: str, detail: str = "") -> None:
        self.stage.trace.note(self.name, what, detail)

    async def run(self) -> None:
        """Live until the run is ending and nothing is under way."""
        raise NotImplementedError


__all__ = ["BACKOFF_S_MAX", "Client", "LinkEnded", "LinkError", "Stage"]
