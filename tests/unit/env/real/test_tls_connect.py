"""Connecting with TLS over real sockets: whom we trust, who trusts us, and peers that do not play along."""

import asyncio
import gc
import ssl
import warnings

import pytest
from tests.support.nodes.streams import Recorder
from tests.support.servers.tls_server import Handler, TestCertificates, echo, refuse_in_a_thread, serve, server_context, silence

from ottla.env import Stream, TlsFailed, TlsOptions
from ottla.env.real import RealNetwork
from ottla.env.real.tls import TLS_1_3_SUITES

HOST = "127.0.0.1"


def connect(
    options: TlsOptions, context: ssl.SSLContext | None, handler: Handler = echo, host: str = HOST, limit_s: float = 60
) -> Recorder:
    """Connect, exchange a few bytes, and close."""

    async def run() -> Recorder:
        async with serve(handler, context) as port:
            owner = Recorder()
            async with asyncio.timeout(limit_s):
                stream: Stream = await RealNetwork().connect(host, port, owner, tls=options)
            assert stream.peer[1] == port
            stream.resume()
            stream.send([b"he", b"llo"])
            await owner.until(lambda: len(owner.data) == 5 or bool(owner.events), "an answer or the end")
            stream.close()
            await owner.until_ended()
            return owner

    return asyncio.run(run())


def trusting(certificates: TestCertificates, **changes: object) -> TlsOptions:
    return TlsOptions(ca=str(certificates.authority.certificate), **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_trusted_peer(certificates: TestCertificates, host: str, version: str) -> None:
    owner = connect(trusting(certificates, versions=(version,)), server_context(certificates.server), host=host)
    assert owner.data == b"hello"
    assert owner.error is None


def test_a_certificate_can_be_trusted_without_its_issuer(certificates: TestCertificates) -> None:
    options = TlsOptions(ca=str(certificates.server.certificate))
    assert connect(options, server_context(certificates.server)).data == b"hello"


def test_untrusted_peer(certificates: TestCertificates) -> None:
    options = TlsOptions(ca=str(certificates.stranger_authority.certificate))
    with pytest.raises(TlsFailed, match=r"certificate of 127.0.0.1:\d+ is not trusted.*ssl.truststore"):
        connect(options, server_context(certificates.server))


def test_expired_peer(certificates: TestCertificates) -> None:
    with pytest.raises(TlsFailed, match=r"certificate of 127.0.0.1:\d+, or one of its chain, has expired"):
        connect(trusting(certificates), server_context(certificates.expired))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_peer_with_another_name(certificates: TestCertificates, host: str) -> None:
    context = server_context(certificates.elsewhere)
    with pytest.raises(TlsFailed, match=rf"is not for {host}: it is for other.example, 192.0.2.7"):
        connect(trusting(certificates), context, host=host)
    assert connect(trusting(certificates, check_hostname=False), context, host=host).data == b"hello"
    assert connect(trusting(certificates, server_name="other.example"), context, host=host).data == b"hello"


def test_impossible_server_name(certificates: TestCertificates) -> None:
    with pytest.raises(TlsFailed, match=r"\.dot is no server name"):
        connect(trusting(certificates, server_name=".dot"), server_context(certificates.server))


def test_client_certificate(certificates: TestCertificates) -> None:
    client = certificates.client
    options = trusting(certificates, certificate=str(client.certificate), key=str(client.key))
    assert connect(options, server_context(certificates.server, certificates.authority)).data == b"hello"


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_refused_client_certificate(certificates: TestCertificates, version: str) -> None:
    """TLS 1.2 refuses it within the handshake, TLS 1.3 behind it."""

    async def failure(options: TlsOptions) -> OSError | None:
        owner = Recorder()
        try:
            stream = await RealNetwork().connect(HOST, port, owner, tls=options)
        except TlsFailed as error:
            assert version == "TLSv1.2"
            return error
        stream.resume()
        return await owner.until_ended()

    stranger, context = certificates.stranger, server_context(certificates.server, certificates.authority)
    with refuse_in_a_thread(context) as port:
        unknown = trusting(certificates, certificate=str(stranger.certificate), key=str(stranger.key), versions=(version,))
        refused = asyncio.run(failure(unknown))
        assert isinstance(refused, TlsFailed)
        assert f"{HOST}:{port} does not trust the issuer of our client certificate" in str(refused)
        missing = str(asyncio.run(failure(trusting(certificates, versions=(version,)))))
        assert "asks for a client certificate" in missing or "may need a client certificate" in missing


def test_peers_without_a_common_version(certificates: TestCertificates) -> None:
    async def run() -> None:
        with pytest.raises(TlsFailed, match=r"none of the allowed TLS versions"):
            await RealNetwork().connect(HOST, port, Recorder(), tls=trusting(certificates, versions=("TLSv1.3",)))

    context = server_context(certificates.server)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with refuse_in_a_thread(context) as port:
        asyncio.run(run())


def test_cipher_that_is_not_allowed(certificates: TestCertificates) -> None:
    context = server_context(certificates.server)
    chosen = TLS_1_3_SUITES[1]  # OpenSSL's first choice
    allowed = tuple(each for each in TLS_1_3_SUITES if each != chosen)
    with pytest.raises(TlsFailed, match=rf"chose the cipher suite {chosen}, and only"):
        connect(trusting(certificates, ciphers=allowed), context)


def test_plaintext_peers(certificates: TestCertificates) -> None:
    async def answer_at_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await reader.read()

    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1 << 16)

    with pytest.raises(TlsFailed, match=r"127.0.0.1:\d+ does not speak TLS: it may be a PLAINTEXT"):
        connect(trusting(certificates), None, answer_at_once)
    with pytest.raises(ConnectionResetError, match=r"closed the connection during the TLS handshake: check that the port"):
        connect(trusting(certificates), None, hang_up)


def test_silent_peer_is_left_by_the_callers_deadline(certificates: TestCertificates) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)  # a socket left open
        with pytest.raises(TimeoutError):
            connect(trusting(certificates), None, silence, limit_s=0.2)
        gc.collect()


def test_peer_that_stops_in_the_middle_of_the_handshake(certificates: TestCertificates) -> None:
    """A peer that sends the first byte of a record, then nothing."""

    async def half(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1 << 16)
        writer.write(b"\x16\x03\x03\x10")
        await silence(reader, writer)

    with pytest.raises(TimeoutError):
        connect(trusting(certificates), None, half, limit_s=0.2)


def test_wrong_options_fail_before_the_connection() -> None:
    async def run() -> None:
        with pytest.raises(TlsFailed, match="no such file"):
            await RealNetwork().connect(HOST, 1, Recorder(), tls=TlsOptions(ca="no-such-file.pem"))

    asyncio.run(run())


def test_nothing_listens(certificates: TestCertificates) -> None:
    async def run() -> None:
        async with serve(silence) as port:
            pass
        with pytest.raises(ConnectionRefusedError):
            await RealNetwork().connect(HOST, port, Recorder(), tls=trusting(certificates))

    asyncio.run(run())
