"""Links over a network that delays, tears and cuts, in virtual time: every request gets its own answer or an error."""

import asyncio
from collections import Counter
from random import Random

import pytest
from tests.support.nodes.fake_node import FakeNode

from ottla.env.net import Stream
from ottla.link import Link, LinkError, LinkOptions
from ottla.sim.loop import VirtualLoop
from ottla.sim.net import SimNetwork, Weather
from ottla.wire.framing import FrameSplitter
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

OPTIONS = LinkOptions(connect_timeout_ms=5_000, request_timeout_ms=2_000, in_flight_max=3)
REQUESTS = 60


class Server:
    """One accepted stream: answers each frame, sometimes late, sometimes never."""

    def __init__(self, node: FakeNode, stream: Stream, random: Random) -> None:
        self._node = node
        self._stream = stream
        self._random = random
        self._splitter = FrameSplitter(1 << 20)
        self._ready_s = 0.0
        stream.resume()

    def buffer(self) -> memoryview:
        return self._splitter.writable()

    def received(self, count: int) -> None:
        loop = asyncio.get_running_loop()
        for frame in self._splitter.received(count):
            reply = self._node.answer(frame)
            assert isinstance(reply, bytes)
            if self._random.random() < 0.02:
                self._ready_s = float("inf")  # it hangs and answers nothing from now on
            self._ready_s = max(self._ready_s + 1e-6, loop.time() + self._random.random() * 0.5)  # one after the other
            if self._ready_s < float("inf"):
                loop.call_at(self._ready_s, self._stream.send, [reply])

    def drained(self) -> None: ...

    def ended(self, error: OSError | None) -> None: ...


async def talk(network: SimNetwork, random: Random) -> Counter[str]:
    """Several clients send requests at once over one link, which is reopened whenever it has ended."""
    node = FakeNode({MetadataRequest: lambda request, version: MetadataResponse(cluster_id=request.topics[0].name)})
    listener = await network.host("server").listen("server", 9092, lambda stream: Server(node, stream, random))
    answered: list[str] = []
    errors: list[LinkError] = []
    link: Link | None = None

    async def ask(name: str) -> None:
        nonlocal link
        await asyncio.sleep(random.random() * 20)
        try:
            if link is None or link.is_over:
                link = await Link.connect(network.host("client"), "server", 9092, OPTIONS)
            response = await link.request(MetadataRequest(topics=[MetadataRequestTopic(name=name)]))
        except LinkError as error:
            errors.append(error)
        else:
            assert response.cluster_id == name, "the answer to another request"
            answered.append(name)

    await asyncio.gather(*(ask(f"request-{number}") for number in range(REQUESTS)))
    if link is not None:
        link.close()
    listener.close()
    assert len(answered) + len(errors) == REQUESTS
    assert all("server:9092" in str(error) and error.is_retriable for error in errors), errors
    return Counter(["answered"] * len(answered) + [type(error).__name__ for error in errors])


@pytest.mark.parametrize("seeds", [range(start, start + 20) for start in (0, 20, 40)])
def test_every_request_gets_its_answer_or_an_error(seeds: range) -> None:
    total: Counter[str] = Counter()
    for seed in seeds:
        random = Random(seed)
        weather = Weather(delay_s_max=0.05, pieces_chance=0.5, cut_chance=0.01)
        total += VirtualLoop(time_limit_s=600).run(talk(SimNetwork(random, weather), random))
    assert total["answered"] > REQUESTS * len(seeds) / 3
    assert total["LinkEnded"] > 0
    assert total["RequestTimedOut"] > 0
