"""A server and clients on a simulated network, in virtual time."""

from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

import pytest
from tests.support.nodes.net_server import EchoServer, FrameClient

from ottla.broker.net.settings import NetSettings
from ottla.sim.loop import VirtualLoop
from ottla.sim.net import SimNetwork, Weather


class Stage:
    """The server, and as many clients as a test wants, each on a host of its own if it asks for it."""

    def __init__(self, settings: NetSettings | None, weather: Weather) -> None:
        self.network = SimNetwork(Random(7), weather)
        self.server = EchoServer(self.network.host("server"), settings)

    async def client(self, host: str = "client", listener: str = "PLAINTEXT", is_reading: bool = True) -> FrameClient:
        return await FrameClient.connect(self.network.host(host), "server", self.server.ports[listener], is_reading)


Play = Callable[..., None]


@pytest.fixture
def play() -> Play:
    """Run a test's coroutine function with a stage whose server is up."""

    def run(
        act: Callable[[Stage], Coroutine[Any, Any, None]],
        settings: NetSettings | None = None,
        weather: Weather | None = None,
        listeners: tuple[str, ...] = ("PLAINTEXT", "CONTROLLER"),
    ) -> None:
        async def whole() -> None:
            stage = Stage(settings, weather if weather is not None else Weather())
            await stage.server.start("server", listeners)
            await act(stage)

        VirtualLoop(100_000).run(whole())

    return run
