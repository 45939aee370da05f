"""Listeners: limits on connections, idle connections, clean shutdown."""

import asyncio
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from tests.support.nodes.net_server import FrameClient, produce, shake

from ottla.broker.net.listeners import socket_options
from ottla.broker.net.settings import ListenerLimits, NetSettings
from ottla.broker.requests.memory import GRACE_S
from ottla.broker.requests.quotas import Windows
from ottla.config.listeners import Listener
from ottla.env import AddressRefused
from ottla.wire.messages.produce import ProduceResponse
from ottla.wire.messages.sasl_handshake import SaslHandshakeResponse

Play = Callable[..., None]


async def is_served(client: FrameClient) -> bool:
    client.send(shake("ping", 1))
    await asyncio.sleep(0.1)
    return client._has_frame()


def test_connections_wait_until_the_node_serves(play: Play) -> None:
    async def act(stage: Any) -> None:
        listeners = stage.server.listeners
        bound = await listeners.open([Listener("LATE", "server", 9092, "PLAINTEXT")])
        assert bound["LATE"] == ("server", 9092)
        client = await FrameClient.connect(stage.network.host("client"), "server", 9092)
        assert not await is_served(client)
        listeners.serve()
        assert (await client.answers(1)) == [(1, ["ping"])]

    play(act)


def test_if_one_port_cannot_be_bound_none_is(play: Play) -> None:
    async def act(stage: Any) -> None:
        taken = stage.server.ports["PLAINTEXT"]
        other = type(stage.server)(stage.network.host("server"))
        wanted = [Listener("A", "server", 9092, "PLAINTEXT"), Listener("B", "server", taken, "PLAINTEXT")]
        with pytest.raises(AddressRefused, match="taken"):
            await other.listeners.open(wanted)
        assert await other.listeners.open(wanted[:1]) == {"A": ("server", 9092)}

    play(act)


def test_connections_above_max_per_ip_are_refused(play: Play, caplog: pytest.LogCaptureFixture) -> None:
    async def act(stage: Any) -> None:
        first = [await stage.client("a") for _ in range(2)]
        assert [await is_served(each) for each in first] == [True, True]
        third = await stage.client("a")
        await third.owner.until_ended()
        assert "max.connections.per.ip" in caplog.text
        assert stage.server.pipeline.counters.connections.refused == 1
        assert await is_served(await stage.client("b"))
        privileged = [await stage.client("vip") for _ in range(3)]
        assert [await is_served(each) for each in privileged] == [True] * 3
        first[0].stream.close()
        await asyncio.sleep(0.1)
        assert await is_served(await stage.client("a"))

    play(act, NetSettings(max_connections_per_ip=2, max_connections_per_ip_overrides={"vip": 3}))


def test_beyond_max_connections_new_ones_wait(play: Play) -> None:
    async def act(stage: Any) -> None:
        first = [await stage.client() for _ in range(3)]
        assert [await is_served(each) for each in first] == [True] * 3
        waiting = await stage.client()
        assert not await is_served(waiting)
        assert await is_served(await stage.client(listener="CONTROLLER"))
        first[0].stream.close()
        await waiting.frame()
        stage.server.listeners.apply(NetSettings(max_connections=4))
        assert await is_served(await stage.client())

    play(act, NetSettings(max_connections=3))


def test_broker_above_max_connections_replaces_the_idlest_client(play: Play) -> None:
    async def act(stage: Any) -> None:
        clients = [await stage.client() for _ in range(3)]
        for _ in range(10):
            await asyncio.sleep(100)
            assert await is_served(clients[0])
            assert await is_served(clients[2])
            for each in (clients[0], clients[2]):
                await each.frame()
        brokers = [await stage.client(listener="BROKERS")]
        assert await is_served(brokers[0])
        await asyncio.sleep(1)
        assert [client.is_over for client in clients] == [False, True, False]
        brokers += [await stage.client(listener="BROKERS") for _ in range(5)]
        assert [await is_served(broker) for broker in brokers[1:]] == [True] * 5
        assert all(client.is_over for client in clients)
        assert not await is_served(await stage.client()), "clients wait"

    play(act, NetSettings(max_connections=3, connections_max_idle_ms=10_000_000), listeners=("PLAINTEXT", "BROKERS"))


def test_the_only_listener_is_not_protected(play: Play) -> None:
    async def act(stage: Any) -> None:
        first, second = await stage.client(listener="BROKERS"), await stage.client(listener="BROKERS")
        assert await is_served(first)
        assert not await is_served(second)

    play(act, NetSettings(max_connections=1), listeners=("BROKERS", "CONTROLLER"))


def test_lowered_limit_closes_the_excess_connections(play: Play) -> None:
    async def act(stage: Any) -> None:
        clients = [await stage.client() for _ in range(5)]
        stage.server.listeners.apply(NetSettings(max_connections=2))
        await asyncio.sleep(1)
        assert sum(client.is_over for client in clients) == 3

    play(act)


def test_node_without_connections_runs_no_scan(play: Play) -> None:
    async def act(stage: Any) -> None:
        scans = 0
        listeners, scan = stage.server.listeners, stage.server.listeners._scan

        def counted() -> None:
            nonlocal scans
            scans += 1
            scan()

        listeners._scan = counted
        await asyncio.sleep(10_000)
        assert scans == 0
        client = await stage.client()
        await asyncio.sleep(100)
        assert scans == 2, "each time a sixteenth of connections.max.idle.ms has gone by"
        await asyncio.sleep(600)
        assert client.is_over
        so_far = scans
        await asyncio.sleep(10_000)
        assert scans <= so_far + 1

    play(act)


def test_a_listener_has_its_own_limit(play: Play) -> None:
    async def act(stage: Any) -> None:
        assert await is_served(await stage.client())
        assert not await is_served(await stage.client())

    play(act, NetSettings(listener_limits={"PLAINTEXT": ListenerLimits(max_connections=1)}))


@pytest.mark.parametrize("of_listener", [False, True], ids=["of the node", "of a listener"])
def test_new_connections_above_the_creation_rate_wait(play: Play, of_listener: bool) -> None:
    """With two windows of a second, those of one second come at once."""

    async def act(stage: Any) -> None:
        loop = asyncio.get_running_loop()
        begun_s = loop.time()
        served_s = []
        for number in range(40):
            client = await stage.client(f"host-{number}")
            client.send(shake("ping", 1))
            await client.frame()
            served_s.append(loop.time() - begun_s)
        assert served_s[9] < 0.1 <= served_s[11]
        assert 2.0 <= served_s[-1] < 4.0
        assert max(late - early for early, late in pairwise(served_s)) <= 1.1

    windows = Windows(2, 1.0)
    limits = {"PLAINTEXT": ListenerLimits(max_connection_creation_rate=10)}
    settings = NetSettings(listener_limits=limits) if of_listener else NetSettings(max_connection_creation_rate=10)
    play(act, settings._replace(quota_windows=windows))


def test_idle_connections_are_closed_and_busy_ones_are_not(play: Play, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")

    async def act(stage: Any) -> None:
        idle, busy = await stage.client(), await stage.client()
        for _ in range(30):
            busy.send(shake("ping", 1))
            await busy.frame()
            await asyncio.sleep(30)
        assert idle.is_over
        assert not busy.is_over
        assert stage.server.pipeline.counters.connections.idle_closed == 1
        assert "connections.max.idle.ms" in caplog.text

    play(act)


def test_a_reader_that_is_stuck_is_closed_too(play: Play) -> None:
    async def act(stage: Any) -> None:
        client = await stage.client(is_reading=False)
        client.send(*[shake("x" * 20_000, number) for number in range(100)])
        await asyncio.sleep(5)
        (connection,) = stage.server.listeners.connections
        assert connection.stream.unsent_bytes > 0
        await asyncio.sleep(20)
        assert stage.server.listeners.connections == []

    play(act, NetSettings(connections_max_idle_ms=10_000))


def test_close_answers_the_requests_received_before(play: Play) -> None:
    async def act(stage: Any) -> None:
        server, client, idle = stage.server, await stage.client(), await stage.client()
        client.send(produce("park a", 1), produce("b", 2), shake("c", 3))
        await client.silence()
        closing = asyncio.ensure_future(server.listeners.close(grace_s=120))
        await asyncio.sleep(0.1)
        assert idle.is_over
        assert not client.is_over
        with pytest.raises(ConnectionRefusedError):
            await stage.client()
        client.send(shake("too late", 4))
        server.parked["a"].complete(ProduceResponse())
        frames = [await client.frame() for _ in range(3)]
        assert [int.from_bytes(frame[:4], "big") for frame in frames] == [1, 2, 3]
        await client.owner.until_ended()
        await asyncio.wait_for(closing, 60)
        assert "too late" not in server.asked
        assert server.pipeline.counters.connections.open == 0

    play(act)


def test_close_aborts_connections_after_the_grace(play: Play) -> None:
    async def act(stage: Any) -> None:
        server, client = stage.server, await stage.client()
        client.send(shake("park a", 1))
        await client.silence()
        loop = asyncio.get_running_loop()
        begun_s = loop.time()
        await server.listeners.close(grace_s=3)
        assert 3 <= loop.time() - begun_s < 3.5
        assert server.parked["a"].is_abandoned
        server.parked["a"].complete(SaslHandshakeResponse())
        await server.listeners.close()
        server.listeners.abort()

    play(act)


def test_slow_senders_do_not_hold_the_memory_that_others_need(play: Play, caplog: pytest.LogCaptureFixture) -> None:
    limit = 8_000_000

    async def act(stage: Any) -> None:
        memory = stage.server.listeners.memory
        hostile = [await stage.client("hostile") for _ in range(40)]
        huge = produce("huge", 1, padding_bytes=3_000_000)
        for number, client in enumerate(hostile):
            client.send(huge[: 400_000 + number])
        await asyncio.sleep(1)
        assert limit <= memory.used_bytes < limit + 300_000
        assert memory.is_short
        honest = await stage.client("honest")
        honest.send(shake("small", 1))
        assert await honest.answers(1) == [(1, ["small"])], "small requests never wait for memory"
        loop = asyncio.get_running_loop()
        begun_s = loop.time()
        honest.send(produce("large", 2, padding_bytes=2_000_000))
        await honest.frame()
        assert loop.time() - begun_s < 2 * GRACE_S
        assert memory.used_bytes <= limit + 300_000
        evicted = stage.server.pipeline.counters.connections.evicted
        assert 0 < evicted == sum(client.is_over for client in hostile)
        assert "comes in too slowly" in caplog.text

    play(act, NetSettings(queued_max_request_bytes=limit))


def test_slow_senders_are_closed_also_if_memory_comes_back_all_the_time(play: Play) -> None:
    async def act(stage: Any) -> None:
        server, counters = stage.server, stage.server.pipeline.counters.connections
        for number in range(2):
            busy = await stage.client(f"busy{number}")
            busy.send(*(produce(f"park {number}-{each}", each, padding_bytes=140_000) for each in range(15)))
        await asyncio.sleep(1)
        assert len(server.parked) == 30
        hostile = [await stage.client("hostile") for _ in range(40)]
        for client in hostile:
            client.send(produce("huge", 1, padding_bytes=3_000_000)[:400_000])
        await asyncio.sleep(1)
        assert server.listeners.memory.is_short
        loop = asyncio.get_running_loop()
        begun_s = loop.time()
        for waiting in list(server.parked.values()):  # each gives memory back, but less than is waited for
            waiting.complete(ProduceResponse())
            await asyncio.sleep(0.5)
            if counters.evicted:
                break
        assert counters.evicted
        assert loop.time() - begun_s < 2 * GRACE_S

    play(act, NetSettings(queued_max_request_bytes=8_000_000))


def test_followers_do_not_wait_for_the_memory_that_clients_hold(play: Play) -> None:
    """What holds it may be produce requests, which wait for the followers."""

    async def act(stage: Any) -> None:
        server = stage.server
        clients = [await stage.client("client") for _ in range(40)]
        for number, client in enumerate(clients):
            client.send(produce("huge", 1, padding_bytes=3_000_000)[: 400_000 + number])
        await asyncio.sleep(1)
        assert server.listeners.memory.is_short
        follower = await stage.client("follower")
        follower.send(shake("first", 1))
        assert await follower.answers(1) == [(1, ["first"])]
        server.listeners.connections[-1].info.is_follower = True
        begun_s = asyncio.get_running_loop().time()
        follower.send(produce("large", 2, padding_bytes=2_000_000))
        await follower.frame()
        assert asyncio.get_running_loop().time() - begun_s < GRACE_S / 2
        assert server.pipeline.counters.connections.evicted == 0
        assert server.listeners.memory.for_followers.used_bytes == 0

    play(act, NetSettings(queued_max_request_bytes=8_000_000))


def test_announced_length_alone_takes_little_memory(play: Play) -> None:
    async def act(stage: Any) -> None:
        hostile = [await stage.client("hostile") for _ in range(50)]
        for client in hostile:
            client.send((100_000_000).to_bytes(4, "big") + b"\0\0\0\3")
        await asyncio.sleep(1)
        memory = stage.server.listeners.memory
        assert memory.used_bytes < 60_000_000
        assert not memory.is_short
        for client in hostile:
            client.stream.close()
        await asyncio.sleep(1)
        assert memory.used_bytes == 0

    play(act)


def test_kafkas_defaults_leave_the_sockets_to_the_kernel() -> None:
    default = socket_options(NetSettings())
    assert (default.send_buffer_bytes, default.receive_buffer_bytes, default.backlog) == (-1, -1, 4096)
    chosen = socket_options(
        NetSettings(socket_send_buffer_bytes=50_000, socket_receive_buffer_bytes=60_000, socket_listen_backlog_size=7)
    )
    assert (chosen.send_buffer_bytes, chosen.receive_buffer_bytes, chosen.backlog) == (50_000, 60_000, 7)
