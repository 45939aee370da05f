"""The world of simulated clients: a gate that keeps them out, processes that end, no threads."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from ottla.env.net import Stream, StreamOwner
from ottla.sim.clients.client import GatedHost, NoThreads, client_world
from ottla.sim.loop import VirtualLoop
from ottla.sim.net import SimNetwork


class Owner:
    """Notes the end of its stream."""

    def __init__(self) -> None:
        self.is_ended = False

    def buffer(self) -> memoryview:
        return memoryview(bytearray(10))

    def received(self, count: int) -> None: ...

    def drained(self) -> None: ...

    def ended(self, error: OSError | None) -> None:
        self.is_ended = True


def run(body: Callable[[GatedHost, asyncio.Event], Coroutine[Any, Any, None]]) -> None:
    async def with_node() -> None:
        network, gate = SimNetwork(), asyncio.Event()

        def accept(stream: Stream) -> StreamOwner:
            return Owner()

        await network.host("node").listen("node", 9092, accept)
        gate.set()
        await body(GatedHost(network.host("client"), gate), gate)

    VirtualLoop().run(with_node())


def test_no_connection_is_made_while_the_gate_is_closed() -> None:
    async def body(host: GatedHost, gate: asyncio.Event) -> None:
        gate.clear()
        with pytest.raises(ConnectionRefusedError):
            await host.connect("node", 9092, Owner())
        gate.set()
        owner = Owner()
        connecting = asyncio.ensure_future(host.connect("node", 9092, owner))
        await asyncio.sleep(0)
        gate.clear()
        await connecting
        await asyncio.sleep(1)
        assert owner.is_ended, "the gate was closed while it was connecting"

    run(body)


def test_a_dead_process_has_no_connections() -> None:
    async def body(host: GatedHost, gate: asyncio.Event) -> None:
        owner = Owner()
        await host.connect("node", 9092, owner)
        assert host.connections == 1
        host.die()
        await asyncio.sleep(1)
        assert owner.is_ended
        with pytest.raises(ConnectionRefusedError):
            await host.connect("node", 9092, Owner())

    run(body)


def test_the_seed_of_a_world_decides_its_randomness() -> None:
    async def body(host: GatedHost, gate: asyncio.Event) -> None:
        drawn = [[client_world(seed, host).randomness.below(1 << 30) for _ in range(2)] for seed in ("a", "a", "b")]
        assert drawn[0] == drawn[1] != drawn[2]
        assert client_world("a", host).clock.monotonic_s() == asyncio.get_running_loop().time()

    run(body)


def test_what_a_dead_process_has_dropped_belongs_to_an_earlier_generation() -> None:
    async def body(host: GatedHost, gate: asyncio.Event) -> None:
        lineage = NoThreads(host).lineage()
        before = lineage.generation
        host.die()
        assert lineage.generation != before

    run(body)
