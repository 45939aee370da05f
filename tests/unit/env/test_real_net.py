"""What only the real network has: addresses of the machine, limits of the process, kernel behaviour."""

import asyncio
import errno
import logging
import os
import resource
import socket
import time

import pytest
from tests.support.nodes.streams import Acceptor, Recorder

from ottla.env import AddressRefused, SocketOptions, Stream
from ottla.env.real import RealNetwork, RealRandomness
from ottla.env.real import net as real_net
from ottla.env.real import stream as real_stream
from ottla.env.real.stream import RealStream
from ottla.ids import uuid_text

has_ipv6 = socket.has_dualstack_ipv6()


def test_a_privileged_port() -> None:
    # Whether a port is privileged depends on the machine and the user, so only the error's text is checked.
    error = OSError(errno.EACCES, "Permission denied")
    assert "port 80: this user may not use it" in str(real_net._refusal("127.0.0.1", 80, error))


@pytest.mark.parametrize(
    ("host", "port", "says"),
    [
        ("192.0.2.1", 0, "this machine has no such address"),
        ("no-such-host.invalid", 9092, "no-such-host.invalid is not known here"),
        ("127.0.0.1", 70_000, "70000 is no port"),
        ("127.0.0.1", -1, "-1 is no port"),
    ],
)
def test_addresses_that_cannot_be_listened_on(host: str, port: int, says: str) -> None:
    with pytest.raises(AddressRefused, match=says) as caught:
        asyncio.run(RealNetwork().listen(host, port, Acceptor()))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "client_host", ["127.0.0.1", pytest.param("::1", marks=pytest.mark.skipif(not has_ipv6, reason="no IPv6"))]
)
def test_no_host_means_all_addresses_of_both_kinds(client_host: str) -> None:
    async def check() -> None:
        acceptor = Acceptor()
        listener = await RealNetwork().listen("", 0, acceptor)
        client = await RealNetwork().connect(client_host, listener.address[1], Recorder())
        server, _ = await acceptor.next()
        assert server.peer == client.local, "an IPv4 peer looks like one"
        assert server.peer[0] == client_host
        client.close()
        listener.close()

    asyncio.run(check())


def test_names_are_resolved() -> None:
    async def check() -> None:
        acceptor = Acceptor()
        listener = await RealNetwork().listen("localhost", 0, acceptor)
        assert listener.address[0] in ("127.0.0.1", "::1")
        client = await RealNetwork().connect("localhost", listener.address[1], Recorder())
        await acceptor.next()
        client.close()
        listener.close()
        with pytest.raises(OSError, match=r".+"):
            await RealNetwork().connect("no-such-host.invalid", 1, Recorder())

    asyncio.run(check())


NAMES = {"cluster": ["127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5"], "one.example": ["127.0.0.2", "127.0.0.3"]}
REVERSED = {"127.0.0.2": "one.example", "127.0.0.3": "one.example", "127.0.0.4": "one.example"}


@pytest.fixture
def resolver(monkeypatch: pytest.MonkeyPatch) -> None:
    """A resolver that knows `NAMES` and `REVERSED` only."""

    def getaddrinfo(host: str, port: int, *_: object, **__: object) -> list[tuple[object, ...]]:
        if host not in NAMES:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in NAMES[host]]

    def getnameinfo(address: tuple[str, int], flags: int) -> tuple[str, str]:
        assert flags & socket.NI_NAMEREQD
        if address[0] not in REVERSED:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return REVERSED[address[0]], "0"

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    monkeypatch.setattr(socket, "getnameinfo", getnameinfo)


@pytest.mark.usefixtures("resolver")
@pytest.mark.parametrize(
    ("first", "reached"), [(0, "127.0.0.3"), (1, "127.0.0.3"), (2, "127.0.0.5"), (3, "127.0.0.5"), (4, "127.0.0.3")]
)
def test_every_address_of_a_name_is_tried_from_the_given_one_on(first: int, reached: str) -> None:
    async def check() -> None:
        acceptor, network = Acceptor(), RealNetwork()
        listener = await network.listen("127.0.0.3", 0, acceptor)
        port = listener.address[1]
        other = await network.listen("127.0.0.5", port, acceptor)
        client = await network.connect("cluster", port, Recorder(), SocketOptions(first_address=first))
        assert client.peer == (reached, port)
        for each in (client, listener, other):
            each.close()

    asyncio.run(check())


@pytest.mark.usefixtures("resolver")
def test_canonical_names_of_a_host() -> None:
    async def check() -> None:
        names = RealNetwork().canonical_names
        assert await names("cluster") == ["one.example", "127.0.0.4", "127.0.0.5"], (
            "an address has no name that leads elsewhere"
        )
        assert await names("127.0.0.2") == ["one.example"]
        with pytest.raises(OSError, match="not known"):
            await names("elsewhere")

    asyncio.run(check())


def test_socket_options_reach_the_sockets() -> None:
    async def check() -> None:
        acceptor = Acceptor()
        options = SocketOptions(send_buffer_bytes=40_000, receive_buffer_bytes=50_000, backlog=7)
        listener = await RealNetwork().listen("127.0.0.1", 0, acceptor, options)
        client = await RealNetwork().connect("127.0.0.1", listener.address[1], Recorder(), options)
        server, _ = await acceptor.next()
        for stream in (client, server):
            assert isinstance(stream, RealStream)
            raw = stream._socket
            # Linux doubles the requested size, for its own bookkeeping.
            assert raw.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) in (40_000, 80_000)
            assert raw.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) in (50_000, 100_000)
            assert raw.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        client.close()
        listener.close()

    asyncio.run(check())


def test_out_of_descriptors_the_listener_rests_and_comes_back(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(real_net, "ACCEPT_PAUSE_S", 0.1)

    async def check() -> None:
        acceptor = Acceptor()
        listener = await RealNetwork().listen("127.0.0.1", 0, acceptor)
        clients = [socket.socket() for _ in range(3)]
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        highest = os.dup(0)
        os.close(highest)
        try:
            for client in clients:
                client.setblocking(False)
                with pytest.raises(BlockingIOError):
                    client.connect(("127.0.0.1", listener.address[1]))
            resource.setrlimit(resource.RLIMIT_NOFILE, (highest, hard))
            begun_s, cpu_s = time.monotonic(), time.process_time()
            while time.monotonic() - begun_s < 0.35:
                await asyncio.sleep(0.01)
            assert acceptor.accepted == []
            assert time.process_time() - cpu_s < 0.2, "it must not spin"
            lines = [record for record in caplog.records if "no further connection can be accepted" in record.message]
            assert len(lines) == 1, "logged once, not at every attempt"
            assert lines[0].levelno == logging.ERROR
            listener.pause()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        await asyncio.sleep(0.2)
        assert acceptor.accepted == [], "accepts nothing while it is paused"
        listener.resume()
        await acceptor.next(3)
        for client in clients:
            client.close()
        listener.close()

    asyncio.run(check())


def test_a_lingering_stream_sends_no_reset_before_the_peer_has_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(real_stream, "LINGER_S", 600.0)  # the end below comes from the peer, not from the clock

    async def check() -> None:
        acceptor = Acceptor(resume=False)
        listener = await RealNetwork().listen("127.0.0.1", 0, acceptor)
        client = socket.create_connection(listener.address)
        server, owner = await acceptor.next()
        client.sendall(b"never read by the server" * 1000)
        server.send([b"the last words"])
        server.close_when_sent()
        await asyncio.sleep(0.05)
        assert owner.events == []
        assert client.recv(100) == b"the last words"
        assert client.recv(100) == b""
        client.close()
        await owner.until_ended()
        assert owner.data == b""
        listener.close()

    asyncio.run(check())


def test_lingering_ends_when_the_peer_never_closes() -> None:
    async def check() -> None:
        acceptor = Acceptor()
        listener = await RealNetwork().listen("127.0.0.1", 0, acceptor)
        client = socket.create_connection(listener.address)
        server, owner = await acceptor.next()
        server.close_when_sent()
        assert await owner.until_ended() is None
        client.close()
        listener.close()

    asyncio.run(check())


def test_one_stream_does_not_starve_another() -> None:
    """A peer that never stops sending gets only its share of turns."""

    async def check() -> None:
        order: list[str] = []
        acceptor = Acceptor(resume=False)
        listener = await RealNetwork().listen("127.0.0.1", 0, acceptor)
        greedy, modest = (socket.create_connection(listener.address) for _ in range(2))
        streams: list[Stream] = []
        for number, name in enumerate(["greedy", "modest"], start=1):
            stream, owner = await acceptor.next(number)
            owner._buffer = bytearray(1000)
            owner.on_received = lambda name=name: order.append(name)  # type: ignore[misc]
            streams.append(stream)
        greedy.setblocking(False)
        try:
            while True:
                greedy.send(bytes(1 << 20))
        except BlockingIOError:
            pass
        modest.sendall(b"x")
        for stream in streams:
            stream.resume()
        await acceptor.accepted[1][1].until_received(1)
        assert order.count("greedy") <= 1100
        for stream in streams:
            stream.close()
        listener.close()

    asyncio.run(check())


def test_random_ids() -> None:
    randomness = RealRandomness()
    ids = {randomness.new_uuid() for _ in range(3000)}
    assert len(ids) == 3000
    assert all(len(each) == 16 and each[6] >> 4 == 4 and each[8] >> 6 == 2 for each in ids)
    assert not any(uuid_text(each).startswith("-") for each in ids)


def test_random_numbers() -> None:
    randomness = RealRandomness()
    for limit in (1, 2, 3, 10, 256, 257, 1 << 40):
        drawn = [randomness.below(limit) for _ in range(500)]
        assert all(0 <= number < limit for number in drawn)
    assert {randomness.below(3) for _ in range(200)} == {0, 1, 2}
    with pytest.raises(ValueError, match="0"):
        randomness.below(0)
