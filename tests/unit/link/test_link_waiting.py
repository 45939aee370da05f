"""When a link holds requests back because the node throttles it, what it counts, and when it is idle; in virtual time."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.support.nodes.fake_node import FakeNetwork, FakeNode

from ottla.link import Link, LinkOptions, RequestTimedOut
from ottla.link.conversation import Answer
from ottla.sim.loop import VirtualLoop
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ottla.wire.messages.produce import ProduceRequest

WHERE = ("localhost", 9092)


def ask(name: str = "x") -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=name)])


def throttling(*throttle_ms: int) -> Callable[[Any, int], object]:
    """Answers with these throttle times, then without."""
    left = list(throttle_ms)
    return lambda request, version: MetadataResponse(throttle_time_ms=left.pop(0) if left else 0)


def talk(node: FakeNode, script: Callable[[Link], Awaitable[None]], **options: Any) -> None:
    async def run() -> None:
        link = await Link.connect(FakeNetwork({WHERE: node}), *WHERE, LinkOptions(**options))
        try:
            await script(link)
        finally:
            link.close()

    VirtualLoop(10_000).run(run())


def now_s() -> float:
    return asyncio.get_running_loop().time()


def test_requests_wait_while_the_node_throttles() -> None:
    node = FakeNode({MetadataRequest: throttling(2000), ProduceRequest: lambda request, version: None})

    async def script(link: Link) -> None:
        begun_s = now_s()
        await link.request(ask())
        assert link.throttled_until_s == pytest.approx(begun_s + 2, abs=0.1)
        later = link.send(ask())
        link.send_unanswered(ProduceRequest(acks=0))
        await asyncio.sleep(1.9)
        assert len(node.asked_for(MetadataRequest)) == 1
        assert node.asked_for(ProduceRequest) == []
        await later
        assert now_s() >= begun_s + 2
        assert len(node.asked_for(ProduceRequest)) == 1
        assert (link.counters.throttled_answers, link.counters.throttle_ms_sum) == (1, 2000)

    talk(node, script)


def test_the_longest_throttle_counts() -> None:
    async def script(link: Link) -> None:
        begun_s = now_s()
        await asyncio.gather(*(link.request(ask()) for _ in range(3)))
        assert link.throttled_until_s == pytest.approx(begun_s + 5, abs=0.1)
        await link.request(ask())
        assert now_s() >= begun_s + 5
        assert link.counters.throttle_ms_max == 5000

    talk(FakeNode({MetadataRequest: throttling(1000, 5000, 2000)}), script)


def test_timeouts_do_not_count_the_time_of_a_throttle() -> None:
    async def script(link: Link) -> None:
        await link.request(ask())
        await link.request(ask(), timeout_ms=1000)
        assert not link.is_over

    talk(FakeNode({MetadataRequest: throttling(60_000)}), script)


def test_timeouts_count_again_after_a_throttle() -> None:
    first = [MetadataResponse(throttle_time_ms=10_000)]
    node = FakeNode({MetadataRequest: lambda request, version: first.pop() if first else None})

    async def script(link: Link) -> None:
        begun_s = now_s()
        await link.request(ask())
        with pytest.raises(RequestTimedOut, match="within 1000 ms"):
            await link.request(ask(), timeout_ms=1000)
        assert now_s() == pytest.approx(begun_s + 11, abs=0.1)

    talk(node, script)


def test_closing_a_throttled_link_leaves_no_timer() -> None:
    async def script(link: Link) -> None:
        await link.request(ask())
        timer = link._throttle_timer
        assert timer is not None
        link.close()
        assert timer.cancelled()

    talk(FakeNode({MetadataRequest: throttling(1000)}), script)


def test_counters() -> None:
    node = FakeNode({MetadataRequest: throttling(), ProduceRequest: lambda request, version: None})

    async def script(link: Link) -> None:
        before = link.counters.sent_bytes, link.counters.received_bytes
        assert min(before) > 0, "the handshake counts as bytes"
        assert (link.counters.requests, link.counters.answers) == (0, 0), "but not as a request"
        await asyncio.gather(*(link.request(ask()) for _ in range(7)))
        link.send_unanswered(ProduceRequest(acks=0))
        assert (link.counters.requests, link.counters.answers) == (8, 7)
        assert link.counters.sent_bytes > before[0]
        assert link.counters.received_bytes > before[1]

    talk(node, script)


def test_latency_begins_with_sending() -> None:
    async def script(link: Link) -> None:
        stuck = link.send(ask())
        later = link.send(ask())  # waits in the queue: one in flight
        await asyncio.sleep(3)
        request = next(iter(link._waiting.values())).request
        link._conversation._expected.clear()
        link._active_s = now_s()
        node.handlers[MetadataRequest] = throttling()
        link._answered(Answer(request, MetadataResponse()))
        await stuck
        await later
        assert link.counters.latency_s_max == pytest.approx(3, abs=0.1)
        assert link.counters.latency_s_sum == pytest.approx(3, abs=0.2), "three seconds in the queue do not count"

    node = FakeNode({MetadataRequest: lambda request, version: None})
    talk(node, script, in_flight_max=1)


def test_idle_time() -> None:
    async def script(link: Link) -> None:
        begun_s = now_s()
        assert link.idle_since_s == pytest.approx(begun_s, abs=0.1)
        await asyncio.sleep(10)
        asked = link.send(ask())
        assert link.idle_since_s is None
        await asked
        assert link.idle_since_s == pytest.approx(begun_s + 10, abs=0.1)
        await asyncio.sleep(10)
        assert link.idle_since_s == pytest.approx(begun_s + 10, abs=0.1)

    talk(FakeNode({MetadataRequest: throttling()}), script)
