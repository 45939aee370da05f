"""A TLS listener: handshakes, certificates of clients, large replies in pieces, renewed certificates, peers without TLS."""

import asyncio
import contextlib
import os
import socket
import ssl
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.servers.certificates import Issued
from tests.support.servers.tls_server import TestCertificates

from ottla.env.disk import OpenMode
from ottla.env.net import Sendable, Stream
from ottla.env.real import tls_stream
from ottla.env.real.disk import RealDisk
from ottla.env.real.net import RealListener, RealNetwork
from ottla.env.tls import TlsFailed, TlsOptions

pytestmark = pytest.mark.asyncio


class Peer:
    """An accepted stream: what it received, and how it ended."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.bytes_received = bytearray()
        self.end: asyncio.Future[OSError | None] = asyncio.get_running_loop().create_future()
        self.drains = asyncio.Queue[int]()
        self.arrived = asyncio.Event()
        self._buffer = bytearray(65_536)
        stream.resume()

    def buffer(self) -> memoryview:
        return memoryview(self._buffer)

    def received(self, count: int) -> None:
        self.bytes_received += self._buffer[:count]
        self.arrived.set()

    def drained(self) -> None:
        self.drains.put_nowait(self.stream.unsent_bytes)

    def ended(self, error: OSError | None) -> None:
        self.end.set_result(error)


class Door:
    """A listener with the peers that it accepted."""

    def __init__(self) -> None:
        self.peers = asyncio.Queue[Peer]()
        self.listener: RealListener

    def accept(self, stream: Stream) -> Peer:
        peer = Peer(stream)
        self.peers.put_nowait(peer)
        return peer

    async def open(self, options: TlsOptions) -> int:
        self.listener = await RealNetwork().listen("127.0.0.1", 0, self.accept, tls=options)
        return self.listener.address[1]


def options_for(certificates: TestCertificates, issued: Issued | None = None, client_auth: str = "none") -> TlsOptions:
    issued = issued or certificates.server
    return TlsOptions(
        client_auth=client_auth,
        certificate=str(issued.certificate),
        key=str(issued.key),
        ca=str(certificates.authority.certificate),
    )


def client_context(certificates: TestCertificates, shows: Issued | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(certificates.authority.certificate))
    if shows is not None:
        context.load_cert_chain(shows.certificate, shows.key)
    return context


async def test_both_sides_talk_and_close(certificates: TestCertificates) -> None:
    door = Door()
    port = await door.open(options_for(certificates))
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", port, ssl=client_context(certificates), server_hostname="localhost"
    )
    writer.write(b"question")
    peer = await door.peers.get()
    await peer.arrived.wait()
    assert peer.bytes_received == b"question"
    assert peer.stream.peer_certificate() is None
    peer.stream.send([b"answer"])
    assert await reader.readexactly(6) == b"answer"
    peer.stream.send([b"and more"])
    peer.stream.close_when_sent()
    assert await reader.read() == b"and more"
    writer.close()
    assert await peer.end is None
    door.listener.close()


async def test_a_large_reply_goes_out_in_pieces_and_is_whole(certificates: TestCertificates, tmp_path: Path) -> None:
    data = os.urandom(6_000_007)
    file = _file(tmp_path / "log", data)
    door = Door()
    port = await door.open(options_for(certificates))
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", port, ssl=client_context(certificates), server_hostname="localhost"
    )
    writer.write(b"?")
    peer = await door.peers.get()
    await peer.arrived.wait()
    peer.stream.send([b"head", file, memoryview(data)[:1_000_000], b"tail"])
    assert peer.stream.unsent_bytes > len(data) / 2, "it encrypts no more than the peer takes"
    peer.stream.close_when_sent()
    received = await reader.read(-1)
    assert received == b"head" + data + data[:1_000_000] + b"tail"
    writer.close()
    await peer.end
    door.listener.close()


async def test_the_owner_hears_when_all_is_sent(certificates: TestCertificates, tmp_path: Path) -> None:
    data = os.urandom(3_000_000)
    file = _file(tmp_path / "log", data)
    door = Door()
    port = await door.open(options_for(certificates))
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", port, ssl=client_context(certificates), server_hostname="localhost"
    )
    writer.write(b"?")
    peer = await door.peers.get()
    await peer.arrived.wait()
    for _ in range(3):
        peer.stream.send([file])
        assert await reader.readexactly(len(data)) == data
        assert await peer.drains.get() == 0
    writer.close()
    await peer.end
    door.listener.close()


async def test_certificates_of_clients(certificates: TestCertificates) -> None:
    door = Door()
    port = await door.open(options_for(certificates, client_auth="required"))

    async def end_of(context: ssl.SSLContext) -> OSError | None:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname="localhost")
            writer.write(b"x")
        except OSError:
            writer = None
        peer = await door.peers.get()
        error = await peer.end
        if writer is not None:
            writer.close()
        return error

    assert "shows no certificate" in str(await end_of(client_context(certificates)))
    assert "its certificate is refused" in str(await end_of(client_context(certificates, certificates.stranger)))
    distrusting = ssl.create_default_context(cafile=str(certificates.stranger_authority.certificate))
    await asyncio.to_thread(_fail_to_connect, distrusting, port)
    assert "does not trust the issuer of our certificate" in str(await (await door.peers.get()).end)
    _, writer = await asyncio.open_connection(
        "127.0.0.1", port, ssl=client_context(certificates, certificates.client), server_hostname="localhost"
    )
    writer.write(b"x")
    peer = await door.peers.get()
    await peer.arrived.wait()
    shown = peer.stream.peer_certificate()
    assert shown == ssl.PEM_cert_to_DER_cert(certificates.client.certificate.read_text())
    writer.close()
    await peer.end
    door.listener.close()


async def test_a_client_without_tls_gets_an_alert(certificates: TestCertificates) -> None:
    door = Door()
    port = await door.open(options_for(certificates))
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(bytes.fromhex("0000000a 0012 0000 00000001 ffff"))
    answer = await reader.read()
    assert answer == bytes.fromhex("15 0303 0002 0250"), "Kafka's alert"
    writer.close()
    peer = await door.peers.get()
    assert "does not speak TLS" in str(await peer.end)
    door.listener.close()


async def test_a_client_that_says_nothing_costs_no_tls_state(certificates: TestCertificates) -> None:
    door = Door()
    port = await door.open(options_for(certificates))
    client = socket.create_connection(("127.0.0.1", port))
    peer = await door.peers.get()
    assert getattr(peer.stream, "_tls") is None  # noqa: B009  # what this test is about
    peer.stream.close()
    assert await peer.end is None
    client.close()
    door.listener.close()


def first_message(certificates: TestCertificates) -> bytes:
    """How a client begins a handshake."""
    received, sent = ssl.MemoryBIO(), ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        client_context(certificates).wrap_bio(received, sent, server_hostname="localhost").do_handshake()
    return sent.read()


async def test_the_oldest_of_many_unfinished_handshakes_ends(
    certificates: TestCertificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls_stream, "HANDSHAKES_MAX", 3)
    door = Door()
    port = await door.open(options_for(certificates))
    hello = first_message(certificates)
    clients, peers = [], []
    for _ in range(5):
        client = socket.create_connection(("127.0.0.1", port))
        clients.append(client)
        client.sendall(hello)
        peers.append(await door.peers.get())
        await asyncio.to_thread(client.recv, 1)  # the node has answered: its handshake is under way
    for peer, client in zip(peers[:2], clients[:2], strict=True):
        client.close()
        assert "oldest of 3 that had not ended" in str(await peer.end)
    assert not any(peer.end.done() for peer in peers[2:])
    # Those who end theirs are not counted, and are served all the while.
    for _ in range(5):
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=client_context(certificates), server_hostname="localhost"
        )
        peer = await door.peers.get()
        writer.write(b"hello")
        await peer.arrived.wait()
        writer.close()
        assert await peer.end is None
        del reader
    for client in clients:
        client.close()
    door.listener.close()


async def test_a_handshake_that_has_begun_has_to_end(certificates: TestCertificates, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls_stream, "HANDSHAKE_S_MAX", 0.2)
    door = Door()
    port = await door.open(options_for(certificates))
    silent, begun = (socket.create_connection(("127.0.0.1", port)) for _ in range(2))
    silent_peer, begun_peer = [await door.peers.get() for _ in range(2)]
    begun.sendall(first_message(certificates)[:20])
    peers = [silent_peer, begun_peer]
    peers.sort(key=lambda peer: peer.stream.peer != silent.getsockname())
    text = "had not ended after 0 s"
    await asyncio.sleep(0.3)
    begun.close()
    assert text in str(await peers[1].end)
    assert not peers[0].end.done(), "who says nothing is idle"
    silent.close()
    door.listener.close()


async def test_handshakes_take_turns_with_the_rest_of_the_loop(
    certificates: TestCertificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls_stream, "HANDSHAKES_TURN_S", 1e-9)  # the first of a turn uses it up
    door = Door()
    port = await door.open(options_for(certificates))
    pairs = await asyncio.gather(
        *(
            asyncio.open_connection("127.0.0.1", port, ssl=client_context(certificates), server_hostname="localhost")
            for _ in range(20)
        )
    )
    for number, (_, writer) in enumerate(pairs):
        writer.write(b"%d" % number)
    peers = [await door.peers.get() for _ in pairs]
    for peer in peers:
        await peer.arrived.wait()
    assert {bytes(peer.bytes_received) for peer in peers} == {b"%d" % number for number in range(20)}
    for _, writer in pairs:
        writer.close()
    for peer in peers:
        assert await peer.end is None
    door.listener.close()


async def test_a_renewed_certificate_is_for_new_connections(certificates: TestCertificates) -> None:
    door = Door()
    port = await door.open(options_for(certificates))
    _, first = await asyncio.open_connection("127.0.0.1", port, ssl=client_context(certificates), server_hostname="localhost")
    await door.listener.renew_tls(options_for(certificates, certificates.elsewhere))
    with pytest.raises(ssl.SSLCertVerificationError):
        await asyncio.open_connection("127.0.0.1", port, ssl=client_context(certificates), server_hostname="localhost")
    with pytest.raises(TlsFailed, match="no such file"):
        await door.listener.renew_tls(replace(options_for(certificates), certificate="/nowhere.pem"))
    _, third = await asyncio.open_connection(
        "127.0.0.1", port, ssl=client_context(certificates), server_hostname="other.example"
    )
    for writer in (first, third):
        writer.close()
    door.listener.close()


async def test_a_listener_needs_a_certificate() -> None:
    with pytest.raises(TlsFailed, match=r"needs a certificate with its private key: set ssl\.keystore\.location"):
        await Door().open(TlsOptions(client_auth="none"))


def _fail_to_connect(context: ssl.SSLContext, port: int) -> None:
    with socket.create_connection(("127.0.0.1", port)) as connection, pytest.raises(ssl.SSLCertVerificationError):
        context.wrap_socket(connection, server_hostname="localhost")


def _file(path: Path, data: bytes) -> Sendable:
    file = RealDisk().open(str(path), OpenMode.CREATE)
    file.append(data)
    return file.range(0, len(data))
