"""`in_virtual_time`: a node and the asyncio clients that users run, in virtual time: minutes of waiting cost milliseconds.

async def scenario(broker: SimBroker) -> None:
    consumer = broker.consumer(group_id="g")
    ...
in_virtual_time(scenario)
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from itertools import count
from random import Random
from typing import Any, TypeVar

from ottla import aio
from ottla.sim.clients.client import GatedHost, client_world
from ottla.sim.loop import VirtualLoop
from ottla.sim.machine import NAME, PORT, Machine
from ottla.sim.net import SimNetwork
from ottla.sim.trace import Trace

T = TypeVar("T")
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1",
    "group.consumer.min.heartbeat.interval.ms": "1",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
}


class SimBroker:
    """One simulated node. Every client runs on a host of its own: `client-0`, `client-1` …"""

    def __init__(self, loop: VirtualLoop, settings: Mapping[str, str]) -> None:
        self.network = SimNetwork(Random(0))
        self.machine = Machine(loop, self.network, Random(1), Trace(loop), {**SETTINGS, **settings}, {})
        self._gate = asyncio.Event()
        self._gate.set()
        self._numbers = count()

    def _world(self) -> dict[str, Any]:
        name = f"client-{next(self._numbers)}"
        return {"world": client_world(name, GatedHost(self.network.host(name), self._gate)), "client_id": name}

    def consumer(self, **settings: Any) -> aio.Consumer[bytes, bytes]:
        """A consumer that begins at the first record."""
        return aio.Consumer(f"{NAME}:{PORT}", **{**self._world(), "auto_offset_reset": "earliest", **settings})

    def producer(self, **settings: Any) -> aio.Producer[bytes, bytes]:
        return aio.Producer(f"{NAME}:{PORT}", **{**self._world(), **settings})

    def admin(self, **settings: Any) -> aio.Admin:
        return aio.Admin(f"{NAME}:{PORT}", **{**self._world(), **settings})

    async def create_topic(self, name: str, partitions: int = 1) -> None:
        async with self.admin() as admin:
            (await admin.create_topics({name: partitions})).raise_first()

    async def produce(self, topic: str, *values: bytes, partition: int = 0) -> None:
        async with self.producer() as producer:
            for value in values:
                await (await producer.send(topic, value, partition=partition))


def in_virtual_time(scenario: Callable[[SimBroker], Coroutine[Any, Any, T]], settings: Mapping[str, str] | None = None) -> T:
    """Run `scenario` with a broker. What no code caught fails the test."""
    loop = VirtualLoop()

    async def run() -> T:
        broker = SimBroker(loop, settings or {})
        broker.machine.start()
        assert await broker.machine.wait_up()
        try:
            return await scenario(broker)
        finally:
            broker.machine.kill()

    found = loop.run(run(), close_dead=True)
    assert not loop.failures, loop.failures
    return found
