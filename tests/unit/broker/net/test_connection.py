"""One connection: frames in, replies out in order, and bounds on what it may keep."""

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from tests.support.nodes.net_server import hello, produce, shake

from ottla.broker.net.connection import PARKED_MAX, TURN_S
from ottla.broker.net.settings import NetSettings
from ottla.broker.requests.scheduler import SLICE_S
from ottla.sim.net import Weather
from ottla.wire.headers import encode_request
from ottla.wire.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseTopic
from ottla.wire.messages.produce import ProduceResponse, TopicProduceResponse
from ottla.wire.messages.sasl_handshake import SaslHandshakeResponse

Play = Callable[..., None]


def handshake(name: str) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(mechanisms=[name])


def produced(name: str) -> ProduceResponse:
    return ProduceResponse(responses=[TopicProduceResponse(name=name)])


def test_requests_are_answered_in_order(play: Play) -> None:
    async def act(stage: Any) -> None:
        client = await stage.client()
        client.send(hello(1))
        assert (await client.frame())[:4] == b"\0\0\0\1"
        client.send(b"".join(shake(f"m{number}", number) for number in range(200)))
        assert await client.answers(200) == [(number, [f"m{number}"]) for number in range(200)]

    play(act)


@pytest.mark.parametrize("seed", range(5))
def test_requests_that_come_in_pieces(play: Play, seed: int) -> None:
    async def act(stage: Any) -> None:
        client = await stage.client()
        random = Random(seed)
        stream = b"".join(shake("x" * random.choice([1, 100, 30_000]), number) for number in range(50))
        position = 0
        while position < len(stream):
            size = random.choice([1, 3, 5, 1000, 70_000])
            client.send(stream[position : position + size])
            position += size
            if random.random() < 0.2:
                await asyncio.sleep(0.001)
        assert [number for number, _ in await client.answers(50)] == list(range(50))

    play(act, weather=Weather(pieces_chance=0.9))


def test_a_request_waits_until_the_one_before_it_is_answered(play: Play) -> None:
    async def act(stage: Any) -> None:
        server, client = stage.server, await stage.client()
        client.send(shake("park a", 1), shake("second", 2), shake("third", 3))
        await client.silence()
        assert server.asked == ["park a"]
        other = await stage.client()
        other.send(shake("other", 9))
        assert await other.answers(1) == [(9, ["other"])]
        server.parked["a"].complete(handshake("first"))
        assert await client.answers(3) == [(1, ["first"]), (2, ["second"]), (3, ["third"])]

    play(act)


def test_produce_requests_are_handled_while_others_before_them_wait(play: Play) -> None:
    async def act(stage: Any) -> None:
        server, client = stage.server, await stage.client()
        client.send(produce("park a", 1), produce("b", 2), produce("park c", 3), produce("d", 4, acks=0), produce("e", 5))
        client.send(shake("last", 6))
        await client.silence()
        assert server.asked == ["park a", "b", "park c", "d", "e"]
        server.parked["c"].complete(produced("c"))
        await client.silence()
        server.parked["a"].complete(produced("a"))
        frames = [await client.frame() for _ in range(5)]
        assert [int.from_bytes(frame[:4], "big") for frame in frames] == [1, 2, 3, 5, 6]
        assert [name in frame for name, frame in zip([b"a", b"b", b"c", b"e", b"last"], frames, strict=True)] == [True] * 5

    play(act)


def test_only_so_many_produce_requests_wait_at_a_time(play: Play) -> None:
    async def act(stage: Any) -> None:
        server, client = stage.server, await stage.client()
        client.send(*(produce(f"park {number}", number) for number in range(PARKED_MAX + 5)))
        await client.silence()
        assert len(server.asked) == PARKED_MAX
        for number in range(PARKED_MAX + 5):
            server.parked[str(number)].complete(produced(str(number)))
            await client.frame()
        assert len(server.asked) == PARKED_MAX + 5

    play(act)


def test_parked_request_may_end_without_a_reply(play: Play) -> None:
    async def act(stage: Any) -> None:
        server, client = stage.server, await stage.client()
        client.send(shake("park a", 1))
        await client.silence()
        server.parked["a"].complete(None)
        client.send(shake("next", 2))
        assert await client.answers(1) == [(2, ["next"])]

    play(act)


def test_parked_requests_are_abandoned_with_the_connection(play: Play) -> None:
    async def act(stage: Any) -> None:
        server, client = stage.server, await stage.client()
        client.send(produce("park a", 1), produce("park b", 2, padding_bytes=100_000))
        await client.silence()
        assert server.listeners.memory.used_bytes > 100_000
        client.stream.close()
        await asyncio.sleep(0.1)
        assert server.parked["a"].is_abandoned
        assert server.parked["b"].is_abandoned
        server.parked["a"].complete(produced("too late"))
        assert server.asked == ["park a", "park b"]
        assert server.listeners.connections == []
        assert server.listeners.memory.used_bytes == 0

    play(act)


@pytest.mark.parametrize("acks", [0, 1])
def test_client_that_goes_while_its_request_is_at_work_is_noticed(play: Play, acks: int) -> None:
    """A connection with a request behind the one at work is not read, so its end is not seen by itself."""

    async def act(stage: Any) -> None:
        server, client = stage.server, await stage.client()
        client.send(produce("park a", 1, acks=acks), shake("next", 2))
        await client.silence()
        (connection,) = server.listeners.connections
        connection.info.end_if_gone()
        assert server.listeners.connections == [connection], "it is there"
        client.stream.close()
        await asyncio.sleep(0.1)
        assert server.listeners.connections == [connection], "it is not read, so it is not known yet"
        connection.info.end_if_gone()
        await asyncio.sleep(0.1)
        assert server.parked["a"].is_abandoned == (acks != 0), "records that nobody wants acknowledged are stored"

    play(act)


def test_large_reply_is_sent_once_if_the_next_request_closes_the_connection(play: Play) -> None:
    async def act(stage: Any) -> None:
        server, client = stage.server, await stage.client()
        server.metadata = MetadataResponse(topics=[MetadataResponseTopic(name="t" * 200) for _ in range(100)])
        ask = b"".join(encode_request(MetadataRequest(), 1, 1, None))
        client.send(b"".join([shake("first", 7), ask, shake("behind it", 8), shake("close", 9)]))
        frames = [await client.frame() for _ in range(3)]
        assert [int.from_bytes(frame[:4], "big") for frame in frames] == [7, 1, 8]
        await client.silence()
        assert client.is_over

    play(act, weather=Weather(pieces_chance=0))


def test_no_request_is_handled_while_replies_are_unsent(play: Play) -> None:
    async def act(stage: Any) -> None:
        server, client = stage.server, await stage.client(is_reading=False)
        topics = [MetadataResponseTopic(name="t" * 200) for _ in range(100)]
        server.metadata = MetadataResponse(topics=topics)
        ask = b"".join(encode_request(MetadataRequest(), 1, 1, None))
        client.send(*([ask] * 3000))
        await asyncio.sleep(5)
        answered = server.pipeline.counters.of(3).requests
        assert 0 < answered < 100
        (connection,) = server.listeners.connections
        assert connection.stream.unsent_bytes < 1_000_000
        assert len(connection._frames) * len(ask) < 70_000
        other = await stage.client()
        other.send(shake("other", 9))
        assert await other.answers(1) == [(9, ["other"])]
        client.stream.resume()
        for _ in range(3000):
            await client.frame()

    play(act)


def index_of_modest(play: Play, seconds_per_request: float, greedy_count: int = 1) -> int:
    """How many requests of `greedy_count` pipelining connections are handled before the one of a modest connection."""
    found = []

    async def act(stage: Any) -> None:
        server = stage.server
        modest = await stage.client("modest")
        greedy = [await stage.client(f"greedy{number}") for number in range(greedy_count)]
        server.seconds_per_request = seconds_per_request
        for client in greedy:
            client.send(b"".join(shake(f"g{number}", number) for number in range(300)))
        modest.send(shake("modest", 1))
        await modest.answers(1)
        for client in greedy:
            assert [number for number, _ in await client.answers(300)] == list(range(300))
        found.append(server.asked.index("modest"))

    play(act, weather=Weather(pieces_chance=0, delay_s_min=0.001, delay_s_max=0.001))
    return found[0]


def test_connection_yields_to_others_when_its_time_is_over(play: Play) -> None:
    assert index_of_modest(play, TURN_S / 10) <= 12
    assert index_of_modest(play, TURN_S * 2) <= 1


def test_many_greedy_connections_get_one_slice_in_a_turn_of_the_loop(play: Play) -> None:
    async def act(stage: Any) -> None:
        server = stage.server
        greedy = [await stage.client(f"greedy{number}") for number in range(20)]
        modest = await stage.client("modest")
        server.seconds_per_request = TURN_S
        for client in greedy:
            client.send(b"".join(shake("g", number) for number in range(300)))
        await greedy[0].answers(10)  # all of them wait in the lane by now
        handled, begun_s = len(server.asked), asyncio.get_running_loop().time()
        modest.send(shake("modest", 1))
        await modest.answers(1)
        assert server.asked.index("modest") - handled <= 4 * SLICE_S / TURN_S
        assert asyncio.get_running_loop().time() - begun_s <= 8 * SLICE_S
        for client in greedy[1:]:
            await client.answers(300)

    play(act, weather=Weather(pieces_chance=0, delay_s_min=0.001, delay_s_max=0.001))


def test_connection_in_the_lane_can_end(play: Play) -> None:
    async def act(stage: Any) -> None:
        server, client = stage.server, await stage.client()
        server.seconds_per_request = TURN_S * 2
        client.send(b"".join(shake("g", number) for number in range(100)))
        await client.answers(2)
        (connection,) = server.listeners.connections
        connection.end()
        await asyncio.sleep(1)
        assert len(server.asked) < 100
        assert server.listeners.connections == []

    play(act)


@pytest.mark.parametrize(
    "garbage",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\xff\xff\xff\xff",
        b"\x7f\xff\xff\xff",
        b"\0\0\0\0",
        b"\0\0\0\3abc",
        bytes(100),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100),
    ],
)
def test_garbage_closes_that_connection_and_no_other(play: Play, garbage: bytes, caplog: pytest.LogCaptureFixture) -> None:
    async def act(stage: Any) -> None:
        other, client = await stage.client("other"), await stage.client()
        client.send(shake("before", 1))
        assert await client.answers(1) == [(1, ["before"])]
        client.send(garbage)
        await client.owner.until_ended()
        assert "closing the connection of client:" in caplog.text
        other.send(shake("still here", 2))
        assert await other.answers(1) == [(2, ["still here"])]
        assert stage.server.pipeline.counters.connections.faults == 1
        assert stage.server.pipeline.counters.connections.open == 1

    play(act)


def test_replies_before_the_fault_still_arrive(play: Play) -> None:
    async def act(stage: Any) -> None:
        client = await stage.client()
        client.send(shake("good", 1) + b"\0\0\0\3abc")
        await client.owner.until_ended()
        assert await client.answers(1) == [(1, ["good"])]

    play(act)


def test_frames_beyond_the_limit_are_refused(play: Play) -> None:
    async def act(stage: Any) -> None:
        client = await stage.client()
        client.send(produce("fits", 1, padding_bytes=900))
        await client.frame()
        client.send(produce("too large", 2, padding_bytes=1000))
        await client.owner.until_ended()
        assert stage.server.asked == ["fits"]

    play(act, NetSettings(socket_request_max_bytes=1000))


def test_request_memory_is_released_however_a_large_request_ends(play: Play) -> None:
    async def act(stage: Any) -> None:
        server, memory = stage.server, stage.server.listeners.memory
        client = await stage.client()
        client.send(produce("plain", 1, padding_bytes=3_000_000))
        await client.frame()
        client.send(produce("park a", 2, padding_bytes=3_000_000))
        await client.silence()
        assert memory.used_bytes > 3_000_000
        server.parked["a"].complete(produced("a"))
        await client.frame()
        assert memory.used_bytes == 0
        client.stream.close()
        for last in (produce("close", 3, padding_bytes=70_000), produce("cut", 4, padding_bytes=3_000_000)[:-1]):
            client = await stage.client()
            client.send(last)
            await asyncio.sleep(0.5)
            client.stream.close()
            await asyncio.sleep(0.5)
            assert memory.used_bytes == 0
        assert server.listeners.connections == []

    play(act)


@pytest.mark.parametrize("seed", range(30))
def test_replies_come_in_order_however_requests_park(play: Play, seed: int) -> None:
    """Requests that park or do not, answered in any order, large and small: the replies are those of the requests in order."""

    async def act(stage: Any) -> None:
        random = Random(seed)
        server, client = stage.server, await stage.client()
        wanted: list[int] = []
        for number in range(60):
            name = f"park {number}" if random.random() < 0.4 else f"plain {number}"
            if random.random() < 0.6:
                acks = random.choice([-1, -1, 0]) if name.startswith("plain") else -1
                client.send(produce(name, number, acks, random.choice([0, 0, 200_000])))
                if acks == 0:
                    continue
            else:
                client.send(shake(name, number))
            wanted.append(number)
        got: list[int] = []
        while len(got) < len(wanted):
            waiting = [each for each in server.parked.values() if not each.is_done]
            if waiting and random.random() < 0.7:
                pending = random.choice(waiting)
                pending.complete(pending.answer)
            await asyncio.sleep(0.01)
            while client._has_frame():
                got.append(int.from_bytes((await client.frame())[:4], "big"))
        assert got == wanted
        assert server.listeners.memory.used_bytes == 0

    play(act)
