"""The contract of env/net.py, checked on the real and on the simulated network."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.support.nodes.streams import Acceptor, Recorder

from ottla.env import AddressRefused, Disk, Network, OpenMode, SocketOptions, Stream
from ottla.env.real import RealDisk, RealNetwork
from ottla.sim.disk import MemoryDisk
from ottla.sim.loop import VirtualLoop
from ottla.sim.net import SimNetwork

LARGE = 5_000_000
"""More than the kernel's socket buffers of one connection hold."""

SMALL_BUFFERS = SocketOptions(102_400, 102_400)


@dataclass
class Place:
    """Two networks that reach each other, the host the server is on, and a disk whose ranges can be sent."""

    server: Network
    client: Network
    host: str
    disk: Disk
    folder: str
    run: Callable[[Coroutine[Any, Any, None]], None]


@pytest.fixture(params=["real", "sim-1", "sim-2"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "real":
        network = RealNetwork()
        return Place(network, network, "127.0.0.1", RealDisk(), str(tmp_path), asyncio.run)
    sim = SimNetwork(Random(request.param))
    disk = MemoryDisk()
    disk.make_directory("/data")
    return Place(sim.host("server"), sim.host("client"), "server", disk, "/data", VirtualLoop(600).run)


async def pair(place: Place, resume: bool = True) -> tuple[Stream, Recorder, Stream, Recorder]:
    """A connected pair: the server's stream and owner, the client's stream and owner, all receiving if `resume`."""
    acceptor = Acceptor(resume)
    listener = await place.server.listen(place.host, 0, acceptor, SMALL_BUFFERS)
    owner = Recorder()
    stream = await place.client.connect(place.host, listener.address[1], owner, SMALL_BUFFERS)
    if resume:
        stream.resume()
    server_stream, server_owner = await acceptor.next()
    listener.close()
    return server_stream, server_owner, stream, owner


def test_bytes_go_both_ways_and_addresses_agree(place: Place) -> None:
    async def check() -> None:
        server, server_owner, client, client_owner = await pair(place)
        client.send([b"one ", bytearray(b"two "), memoryview(b"three")])
        assert await server_owner.until_received(13) == b"one two three"
        server.send([b"four"])
        assert await client_owner.until_received(4) == b"four"
        assert server.local == client.peer
        assert server.peer == client.local
        assert (server.unsent_bytes, client.unsent_bytes) == (0, 0)
        client.close()
        assert await server_owner.until_ended() is None
        assert await client_owner.until_ended() is None

    place.run(check())


def test_a_stream_begins_paused_and_can_be_paused_again(place: Place) -> None:
    async def check() -> None:
        server, server_owner, client, _ = await pair(place, resume=False)
        client.send([b"early"])
        await asyncio.sleep(0.05)
        assert server_owner.data == b""
        server.resume()
        server.resume()
        await server_owner.until_received(5)
        server.pause()
        client.send([b"later"])
        await asyncio.sleep(0.05)
        assert server_owner.data == b"early"
        server.resume()
        assert await server_owner.until_received(10) == b"earlylater"
        server.close()
        client.close()

    place.run(check())


def test_pausing_while_receiving_stops_at_once(place: Place) -> None:
    async def check() -> None:
        server, server_owner, client, _ = await pair(place, resume=False)
        server_owner._buffer = bytearray(10)
        server_owner.on_received = server.pause
        client.send([bytes(1000)])
        server.resume()
        await server_owner.until_received(1)
        await asyncio.sleep(0.05)
        assert len(server_owner.counts) == 1
        server_owner.on_received = lambda: None
        server.resume()
        await server_owner.until_received(1000)
        server.close()

    place.run(check())


def test_a_reader_that_pauses_makes_the_sender_queue(place: Place) -> None:
    async def check() -> None:
        server, server_owner, client, client_owner = await pair(place, resume=False)
        data = Random(1).randbytes(LARGE)
        server_owner._buffer = bytearray(1 << 20)
        client.resume()
        client.send([data[:100], data[100:3_000_000]])
        assert client.unsent_bytes > 0
        before = client.unsent_bytes
        client.send([data[3_000_000:]])
        assert client.unsent_bytes == before + 2_000_000
        assert client_owner.events == []
        server.resume()
        assert await server_owner.until_received(LARGE) == data
        await client_owner.until(lambda: client_owner.events == ["drained"], "drained, once")
        assert client.unsent_bytes == 0
        client.send([b"more"])
        await server_owner.until_received(LARGE + 4)
        assert client_owner.events == ["drained"]
        server.close()

    place.run(check())


def test_ranges_of_files_between_bytes(place: Place) -> None:
    async def check() -> None:
        server, server_owner, client, _ = await pair(place)
        content = Random(2).randbytes(3_000_000)
        file = place.disk.open(f"{place.folder}/a", OpenMode.CREATE)
        file.append(content)
        parts = [
            b"head",
            file.range(10, 2_999_990),
            b"",
            b"middle",
            file.range(0, 0),
            file.range(0, 7),
            file.range(7, 1),
            b"tail",
        ]
        file.close()
        await place.disk.remove(f"{place.folder}/a")
        client.send(parts)
        wanted = b"head" + content[10:] + b"middle" + content[:8] + b"tail"
        assert await server_owner.until_received(len(wanted)) == wanted
        assert client.unsent_bytes == 0
        server.close()

    place.run(check())


def test_bytes_before_a_range_that_the_kernel_takes_in_pieces(place: Place) -> None:
    async def check() -> None:
        server, server_owner, client, _ = await pair(place, resume=False)
        content = Random(3).randbytes(2 * LARGE)
        file = place.disk.open(f"{place.folder}/a", OpenMode.CREATE)
        file.append(content)
        client.send([content[:LARGE], file.range(LARGE, LARGE), content[:10], file.range(0, 20_000), b"tail"])
        assert client.unsent_bytes > LARGE, "this test is about more bytes than the kernel takes at once"
        server.resume()
        wanted = content + content[:10] + content[:20_000] + b"tail"
        assert await server_owner.until_received(len(wanted)) == wanted
        assert client.unsent_bytes == 0
        server.close()

    place.run(check())


def test_more_parts_than_one_system_call_takes(place: Place) -> None:
    async def check() -> None:
        _, server_owner, client, _ = await pair(place)
        parts = [bytes([number % 251]) * (number % 2000) for number in range(3000)]
        client.send(parts)
        wanted = b"".join(parts)
        assert await server_owner.until_received(len(wanted)) == wanted
        client.close()

    place.run(check())


def test_a_range_that_has_become_shorter_ends_the_stream(place: Place) -> None:
    async def check() -> None:
        _, server_owner, client, client_owner = await pair(place)
        file = place.disk.open(f"{place.folder}/a", OpenMode.CREATE)
        file.append(bytes(1000))
        part = file.range(0, 1000)
        file.truncate(10)
        client.send([b"head", part, b"tail"])
        assert client_owner.events == [], "never from within a call"
        assert isinstance(await client_owner.until_ended(), OSError)
        await server_owner.until_ended()
        assert b"tail" not in server_owner.data

    place.run(check())


def test_close_when_sent_delivers_what_was_queued(place: Place) -> None:
    async def check() -> None:
        server, server_owner, client, client_owner = await pair(place, resume=False)
        data = Random(3).randbytes(LARGE)
        client.resume()
        client.send([data])
        assert client.unsent_bytes > 0
        client.close_when_sent()
        client.send([b"too late"])
        server.send([b"never read"])
        server.resume()
        assert await server_owner.until_received(LARGE) == data
        assert await server_owner.until_ended() is None
        assert len(server_owner.data) == LARGE
        server.close()
        assert await client_owner.until_ended() is None
        assert client_owner.data == b""

    place.run(check())


def test_closing_at_once_drops_the_queue(place: Place) -> None:
    async def check() -> None:
        server, server_owner, client, client_owner = await pair(place, resume=False)
        client.send([bytes(LARGE)])
        client.close()
        assert client_owner.events == [], "never from within a call"
        client.close()
        client.close_when_sent()
        client.send([b"x"])
        client.resume()
        client.pause()
        assert await client_owner.until_ended() is None
        assert client.unsent_bytes == 0
        server.resume()
        await server_owner.until_ended()
        assert 0 < len(server_owner.data) < LARGE

    place.run(check())


def test_closing_while_receiving_ends_the_stream_at_once(place: Place) -> None:
    async def check() -> None:
        server, server_owner, client, _ = await pair(place, resume=False)
        server_owner._buffer = bytearray(10)
        server_owner.on_received = server.close
        client.send([bytes(100)])
        server.resume()
        await server_owner.until_ended()
        assert len(server_owner.counts) == 1

    place.run(check())


def test_sending_to_a_closed_peer_ends_the_stream_later(place: Place) -> None:
    async def check() -> None:
        server, server_owner, client, client_owner = await pair(place, resume=False)
        client.send([b"unread"])
        await asyncio.sleep(0.05)
        server.close()  # with bytes unread: a reset
        await server_owner.until_ended()
        await asyncio.sleep(0.05)
        for _ in range(5):
            client.send([b"anybody?", bytes(10)])
            await asyncio.sleep(0.01)
        assert isinstance(await client_owner.until_ended(), OSError)

    place.run(check())


def test_an_owner_that_has_paused_can_ask_whether_its_peer_has_gone(place: Place) -> None:
    async def check() -> None:
        server, _, client, _ = await pair(place)
        server.pause()
        client.send([b"a request"])
        await asyncio.sleep(0.05)
        assert not server.has_lost_peer(or_half=True)
        client.close()
        for _ in range(100):
            if server.has_lost_peer(or_half=True):
                break
            await asyncio.sleep(0.01)
        assert server.has_lost_peer(or_half=True)
        server.close()
        assert server.has_lost_peer(or_half=False)

    place.run(check())


def test_connecting_to_a_closed_port_raises(place: Place) -> None:
    async def check() -> None:
        listener = await place.server.listen(place.host, 0, Acceptor())
        listener.close()
        listener.close()
        with pytest.raises(OSError, match=r".+"):
            await place.client.connect(place.host, listener.address[1], Recorder())

    place.run(check())


def test_a_taken_port_is_refused_in_one_sentence(place: Place) -> None:
    async def check() -> None:
        listener = await place.server.listen(place.host, 0, Acceptor())
        port = listener.address[1]
        with pytest.raises(AddressRefused, match=f"port {port}: the port is taken"):
            await place.server.listen(place.host, port, Acceptor())
        listener.close()
        (await place.server.listen(place.host, port, Acceptor())).close()

    place.run(check())


def test_a_refused_stream_is_closed(place: Place) -> None:
    async def check() -> None:
        listener = await place.server.listen(place.host, 0, lambda stream: None)
        owner = Recorder()
        (await place.client.connect(place.host, listener.address[1], owner)).resume()
        await owner.until_ended()
        listener.close()

    place.run(check())


def test_peers_wait_while_the_listener_is_paused(place: Place) -> None:
    async def check() -> None:
        acceptor = Acceptor()
        listener = await place.server.listen(place.host, 0, acceptor)
        listener.pause()
        owner = Recorder()
        client = await place.client.connect(place.host, listener.address[1], owner)
        client.send([b"hello"])
        await asyncio.sleep(0.05)
        assert acceptor.accepted == []
        listener.resume()
        _, server_owner = await acceptor.next()
        await server_owner.until_received(5)
        listener.close()
        client.close()

    place.run(check())


def test_a_listener_can_be_paused_from_within_accept(place: Place) -> None:
    async def check() -> None:
        accepted: list[Stream] = []

        def accept(stream: Stream) -> Recorder:
            accepted.append(stream)
            listener.pause()
            return Recorder()

        listener = await place.server.listen(place.host, 0, accept)
        for _ in range(3):
            await place.client.connect(place.host, listener.address[1], Recorder())
        await asyncio.sleep(0.05)
        assert len(accepted) == 1
        listener.resume()
        await asyncio.sleep(0.05)
        assert len(accepted) == 2
        listener.close()

    place.run(check())
