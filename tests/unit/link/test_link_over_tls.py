"""Links over TLS on real sockets: a scripted node behind a TLS server, and peers that are silent, slow or strangers."""

import asyncio
import gc
import ssl
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from tests.support.nodes.fake_node import FakeNode
from tests.support.nodes.sasl_server import SaslServer
from tests.support.servers.tls_server import Handler, TestCertificates, refuse_in_a_thread, serve, server_context, silence

from ottla.env import TlsOptions
from ottla.env.real import RealNetwork, RealRandomness
from ottla.link import ConnectFailed, EncryptionFailed, Link, LinkEnded, LinkOptions, LinkSecurity, PeerFault, SaslOptions
from ottla.wire.framing import FrameSplitter
from ottla.wire.messages.metadata import MetadataRequest, MetadataResponse

LARGE_TEXT = "x" * 30_000


def behind(node: FakeNode) -> Handler:
    """A handler that answers as `node` does."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        splitter = FrameSplitter(1 << 30)
        while data := await reader.read(1 << 16):
            for frame in splitter.feed(data):
                reply = node.answer(frame)
                if isinstance(reply, bytes):
                    writer.write(reply)
            await writer.drain()

    return handle


def trusting(certificates: TestCertificates, **changes: Any) -> TlsOptions:
    return TlsOptions(ca=str(certificates.authority.certificate), **changes)


async def ask(port: int, security: LinkSecurity, connect_timeout_ms: int = 60_000) -> Any:
    options = LinkOptions(security=security, connect_timeout_ms=connect_timeout_ms)
    link = await Link.connect(RealNetwork(), "localhost", port, options, RealRandomness())
    try:
        return await asyncio.gather(*(link.request(MetadataRequest(topics=[])) for _ in range(10)))
    finally:
        link.close()


def run(handler: Handler, context: ssl.SSLContext | None, security: LinkSecurity, connect_timeout_ms: int = 60_000) -> Any:
    async def work() -> Any:
        async with serve(handler, context) as port:
            return await ask(port, security, connect_timeout_ms)

    return asyncio.run(work())


def test_requests_and_login_over_tls(certificates: TestCertificates) -> None:
    server = SaslServer("SCRAM-SHA-512", {"alice": "secret"})
    node = FakeNode({MetadataRequest: lambda request, version: MetadataResponse(cluster_id=LARGE_TEXT), **server.handlers()})
    security = LinkSecurity(trusting(certificates), SaslOptions("SCRAM-SHA-512", "alice", "secret"))
    answers = run(behind(node), server_context(certificates.server), security)
    assert [each.cluster_id for each in answers] == [LARGE_TEXT] * 10


def test_stranger_is_refused_before_anything_is_said(certificates: TestCertificates) -> None:
    node = FakeNode({})
    security = LinkSecurity(TlsOptions(ca=str(certificates.stranger_authority.certificate)))
    with pytest.raises(EncryptionFailed, match=r"certificate of localhost:\d+ is not trusted") as failed:
        run(behind(node), server_context(certificates.server), security)
    assert not failed.value.is_retriable
    assert node.asked == []


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_refused_client_certificate(certificates: TestCertificates, version: str) -> None:
    context = server_context(certificates.server, certificates.authority)
    with (
        refuse_in_a_thread(context) as port,
        pytest.raises(EncryptionFailed, match=r"localhost:\d+ .*client certificate"),
    ):
        asyncio.run(ask(port, LinkSecurity(trusting(certificates, versions=(version,)))))


def test_wrong_option() -> None:
    with pytest.raises(EncryptionFailed, match=r"no-such.pem: there is no such file"):
        run(silence, None, LinkSecurity(TlsOptions(ca="no-such.pem")))


def test_plaintext_node(certificates: TestCertificates) -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1 << 16)

    with pytest.raises(ConnectFailed, match=r"^localhost:\d+ closed the connection during the TLS handshake") as failed:
        run(hang_up, None, LinkSecurity(trusting(certificates)))
    assert failed.value.is_retriable, "the node may just be stopping"


def test_tls_node_without_tls(certificates: TestCertificates) -> None:
    with (
        refuse_in_a_thread(server_context(certificates.server)) as port,
        pytest.raises((PeerFault, ConnectFailed), match=r"security.protocol"),
    ):
        asyncio.run(ask(port, LinkSecurity()))


def slowly(piece: bytes) -> Handler:
    """Sends `piece` again and again, a byte at a time, and never gets anywhere."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1 << 16)
        while True:
            for byte in piece:
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(0.01)

    return handle


@pytest.mark.parametrize("handler", [silence, slowly(b"\x16\x03\x03\x40\x00" + bytes(1000))], ids=["silent", "slow"])
def test_no_hang_past_the_connect_timeout(certificates: TestCertificates, handler: Handler) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)  # a socket left open
        with pytest.raises(ConnectFailed, match=r"did not accept a connection and finish the TLS handshake within 200 ms"):
            run(handler, None, LinkSecurity(trusting(certificates)), connect_timeout_ms=200)
        gc.collect()


def test_silence_after_the_tls_handshake(certificates: TestCertificates) -> None:
    with pytest.raises(ConnectFailed, match=r"did not send its versions within 300 ms"):
        run(silence, server_context(certificates.server), LinkSecurity(trusting(certificates)), connect_timeout_ms=300)


def test_node_that_vanishes_in_the_middle(certificates: TestCertificates) -> None:
    """The connection is cut inside an answer: without a close_notify, in the middle of a frame."""
    node = FakeNode({MetadataRequest: lambda request, version: MetadataResponse(cluster_id=LARGE_TEXT)})
    whole = behind(node)

    async def cut(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        real_write: Callable[[bytes], None] = writer.write

        def write(data: bytes) -> None:
            real_write(data[: len(data) // 2] if len(data) > 10_000 else data)
            if len(data) > 10_000:
                writer.transport.abort()

        writer.write = write  # type: ignore[method-assign, assignment]
        await whole(reader, writer)

    with pytest.raises(LinkEnded, match=r"closed the connection in the middle of an answer|failed"):
        run(cut, server_context(certificates.server), LinkSecurity(trusting(certificates)))
