"""What only the simulated network has: seeded delays, partitions, cuts and crashes."""

import asyncio
from collections.abc import Coroutine
from random import Random
from typing import Any

import pytest
from tests.support.nodes.streams import Acceptor, Recorder

from ottla.env import AddressRefused, Stream, TlsFailed, TlsOptions
from ottla.sim.loop import Process, VirtualLoop
from ottla.sim.net import SimNetwork, Weather


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return VirtualLoop(10_000).run(work)


async def pair(network: SimNetwork) -> tuple[Stream, Recorder, Stream, Recorder]:
    acceptor = Acceptor()
    listener = await network.host("server").listen("", 9092, acceptor)
    owner = Recorder()
    stream = await network.host("client").connect("server", 9092, owner)
    stream.resume()
    server_stream, server_owner = await acceptor.next()
    listener.close()
    return server_stream, server_owner, stream, owner


def history(seed: int) -> list[tuple[float, int]]:
    """The arrival times and sizes of received bytes."""

    async def work() -> list[tuple[float, int]]:
        network = SimNetwork(Random(seed), Weather(pieces_chance=0.5))
        _, server_owner, client, _ = await pair(network)
        seen: list[tuple[float, int]] = []
        server_owner.on_received = lambda: seen.append((asyncio.get_running_loop().time(), server_owner.counts[-1]))
        for number in range(20):
            client.send([bytes(100 * number), b"x"])
            await asyncio.sleep(0.001)
        await server_owner.until_received(19_020)
        return seen

    result: list[tuple[float, int]] = run(work())
    return result


def test_one_seed_gives_one_sequence_of_arrivals() -> None:
    assert history(1) == history(1)
    assert history(1) != history(2)
    assert len(history(1)) > 30, "parts arrive in pieces"


def test_a_partition_holds_everything_until_it_heals() -> None:
    async def work() -> None:
        network = SimNetwork()
        server, server_owner, client, client_owner = await pair(network)
        client.send([b"before "])
        await server_owner.until_received(7)
        client.send([b"on its way "])
        network.part("client", "server")
        client.send([b"after"])
        server.send([b"back"])
        await asyncio.sleep(5)
        assert server_owner.data == b"before "
        assert client_owner.data == b""
        with pytest.raises(TimeoutError):
            await network.host("client").connect("server", 9092, Recorder())
        network.heal("server", "client")
        assert await server_owner.until_received(23) == b"before on its way after"
        assert await client_owner.until_received(4) == b"back"

    run(work())


def test_an_end_does_not_pass_a_partition_either() -> None:
    async def work() -> None:
        network = SimNetwork()
        _, server_owner, client, _ = await pair(network)
        network.part("client", "server")
        client.send([b"last"])
        client.close()
        await asyncio.sleep(5)
        assert server_owner.events == []
        network.heal()
        await server_owner.until_ended()
        assert server_owner.data == b"last"

    run(work())


def test_connections_are_cut_by_hand() -> None:
    async def work() -> None:
        network = SimNetwork()
        _, server_owner, _, client_owner = await pair(network)
        network.cut("server", "client")
        assert isinstance(await server_owner.until_ended(), ConnectionResetError)
        assert isinstance(await client_owner.until_ended(), ConnectionResetError)
        assert network.counts["cuts"] == 1

    run(work())


def test_connections_are_cut_by_chance_in_the_middle_of_what_is_sent() -> None:
    received: list[int] = []

    async def work(seed: int) -> None:
        network = SimNetwork(Random(seed), Weather(pieces_chance=1, cut_chance=0.02))
        _, server_owner, client, client_owner = await pair(network)
        for _ in range(200):
            client.send([bytes(1000)])
            await asyncio.sleep(0.001)
            if client_owner.events:
                break
        assert isinstance(await server_owner.until_ended(), ConnectionResetError)
        await client_owner.until_ended()
        received.append(len(server_owner.data))
        assert network.counts["cuts"] >= 1

    for seed in range(10):
        run(work(seed))
    assert any(count % 1000 for count in received), "frames are cut, not only streams of them"


@pytest.mark.parametrize("silently", [False, True])
def test_a_host_crashes(silently: bool) -> None:
    async def work() -> None:
        network = SimNetwork()
        server, server_owner, client, client_owner = await pair(network)
        acceptor = Acceptor()
        await network.host("server").listen("", 1234, acceptor)
        network.crash("server", silently)
        await asyncio.sleep(1)
        assert server_owner.events == [], "a crashed host gets no events"
        assert client_owner.events == ([] if silently else ["ended"])
        server.send([b"from beyond"])
        client.send([b"to a dead host"])
        with pytest.raises(ConnectionRefusedError):
            await network.host("client").connect("server", 1234, Recorder())
        await network.host("server").listen("", 1234, acceptor)
        again = Recorder()
        stream = await network.host("client").connect("server", 1234, again)
        stream.send([b"welcome back"])
        assert await (await acceptor.next())[1].until_received(12) == b"welcome back"
        assert client_owner.data == b""
        assert server_owner.data == b""

    run(work())


def test_a_connection_to_a_host_that_is_gone_times_out() -> None:
    async def work() -> None:
        network = SimNetwork()
        await network.host("server").listen("server", 9092, lambda _: None)
        network.crash("server", silently=True)
        with pytest.raises(ConnectionRefusedError):
            await network.host("client").connect("server", 9092, Recorder())
        network.remove("server")
        with pytest.raises(TimeoutError):
            await network.host("client").connect("server", 9092, Recorder())

    run(work())


def test_a_host_listens_on_itself_only() -> None:
    async def work() -> None:
        network = SimNetwork()
        with pytest.raises(AddressRefused, match="this is the host a"):
            await network.host("a").listen("b", 0, Acceptor())

    run(work())


def test_waiting_connections_end_when_the_listener_closes() -> None:
    async def work() -> None:
        network = SimNetwork()
        listener = await network.host("server").listen("", 9092, Acceptor())
        listener.pause()
        owner = Recorder()
        (await network.host("client").connect("server", 9092, owner)).resume()
        listener.close()
        assert isinstance(await owner.until_ended(), ConnectionResetError)

    run(work())


def test_a_connection_cut_while_it_waits_is_not_accepted() -> None:
    async def work() -> None:
        network = SimNetwork()
        acceptor = Acceptor()
        listener = await network.host("server").listen("", 9092, acceptor)
        listener.pause()
        first = await network.host("client").connect("server", 9092, Recorder())
        network.cut("server", "client")
        await asyncio.sleep(1)
        second = await network.host("client").connect("server", 9092, Recorder())
        listener.resume()
        accepted, _ = await acceptor.next()
        assert accepted.peer == second.local != first.local, "the first one ended while it waited"

    run(work())


def test_tls_is_refused() -> None:
    async def check() -> None:
        with pytest.raises(TlsFailed, match="the simulated network has no TLS"):
            await SimNetwork().host("client").connect("server", 9092, Recorder(), tls=TlsOptions())

    VirtualLoop(60).run(check())


def test_a_one_way_partition_lets_the_other_direction_pass() -> None:
    async def work() -> None:
        network = SimNetwork()
        server, server_owner, client, client_owner = await pair(network)
        network.part_one_way("client", "server")
        client.send([b"held back"])
        server.send([b"passes"])
        await asyncio.sleep(5)
        assert server_owner.data == b""
        assert client_owner.data == b"passes"
        for here, there in (("client", "server"), ("server", "client")):
            with pytest.raises(TimeoutError):
                await network.host(here).connect(there, 9092, Recorder())
        network.heal("server", "client")
        assert await server_owner.until_received(9) == b"held back"

    run(work())


def test_a_lost_packet_arrives_late_and_in_order() -> None:
    async def work() -> None:
        network = SimNetwork(Random(3), Weather(loss_chance=0.2, resend_s_max=1.0))
        _, server_owner, client, _ = await pair(network)
        for number in range(50):
            client.send([b"%02d" % number])
        begun_s = asyncio.get_running_loop().time()
        assert await server_owner.until_received(100) == b"".join(b"%02d" % number for number in range(50))
        assert network.counts["losses"] > 3
        assert 0.1 < asyncio.get_running_loop().time() - begun_s < 2

    run(work())


async def pair_of_processes(network: SimNetwork) -> tuple[Process, Stream, Recorder]:
    """A connection from the client to a host whose process can be killed."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    process, owner, acceptor = Process("server"), Recorder(), Acceptor()
    await loop.spawn(process, network.host("server").listen("", 9092, acceptor))
    stream = await network.host("client").connect("server", 9092, owner)
    stream.resume()
    await acceptor.next()
    return process, stream, owner


def lose_power(network: SimNetwork, process: Process) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    loop.kill(process)
    network.crash("server", silently=True)


@pytest.mark.parametrize("sent", ["on the way", "before boot", "after boot"])
def test_a_host_that_lost_its_power_resets_connections_once_it_has_power(sent: str) -> None:
    async def work() -> None:
        network = SimNetwork()
        process, client, client_owner = await pair_of_processes(network)
        if sent == "on the way":
            client.send([b"to a host that is about to lose its power"])
        lose_power(network, process)
        if sent == "before boot":
            client.send([b"to nobody"])
        await asyncio.sleep(5)
        assert client_owner.events == []
        network.boot("server")
        await asyncio.sleep(5)
        assert bool(client_owner.events) is (sent != "after boot"), "a peer that sends nothing learns nothing"
        client.send([b"to a host that knows nothing of it"])
        assert isinstance(await client_owner.until_ended(), ConnectionResetError)

    run(work())


def test_a_host_that_lost_its_power_behind_a_partition_resets_after_it() -> None:
    async def work() -> None:
        network = SimNetwork()
        process, client, client_owner = await pair_of_processes(network)
        network.part("server", "client")
        lose_power(network, process)
        client.send([b"held back"])
        network.boot("server")
        await asyncio.sleep(5)
        assert client_owner.events == []
        network.heal("server", "client")
        assert isinstance(await client_owner.until_ended(), ConnectionResetError)

    run(work())
