"""Certificates of our own authority: what they are good for, and what is refused."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest

from ottla.env.real.certificates import Authority, CertificateError


async def handshake(server: ssl.SSLContext, client: ssl.SSLContext, name: str) -> object:
    """The subject of the certificate that the server sees; raises what the client sees."""
    seen: list[object] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        certificate = writer.get_extra_info("peercert")
        seen.append(certificate["subject"] if certificate else None)
        writer.write(b"x")
        writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=server)
    async with listening:
        port = listening.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client, server_hostname=name)
        assert await reader.read(1) == b"x"
        writer.close()
    return seen[0]


def contexts(authority: Authority, node: Path, own: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=authority.ca_file)
    server.load_cert_chain(node)
    server.verify_mode = ssl.CERT_REQUIRED
    client = ssl.create_default_context(cafile=authority.ca_file)
    client.verify_flags |= ssl.VERIFY_X509_STRICT  # the default since Python 3.13
    client.load_cert_chain(own)
    return server, client


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
@pytest.mark.asyncio
async def test_node_and_client_certificates_work_for_mutual_tls(tmp_path: Path, host: str) -> None:
    Authority.create(tmp_path)
    authority = Authority.load(tmp_path)
    node = authority.issue("kafka-1", ["localhost", "127.0.0.1"])
    server, client = contexts(authority, node, authority.issue("alice"))
    assert await handshake(server, client, host) == ((("commonName", "alice"),),)


@pytest.mark.asyncio
async def test_certificate_is_refused_for_another_host(tmp_path: Path) -> None:
    authority = Authority.create(tmp_path)
    server, client = contexts(authority, authority.issue("kafka-1", ["kafka-1.lan"]), authority.issue("alice"))
    with pytest.raises(ssl.SSLCertVerificationError, match="IP address mismatch"):
        await handshake(server, client, "127.0.0.1")


@pytest.mark.asyncio
async def test_client_certificate_is_no_server_certificate(tmp_path: Path) -> None:
    authority = Authority.create(tmp_path)
    server, client = contexts(authority, authority.issue("mallory"), authority.issue("alice"))
    client.check_hostname = False
    with pytest.raises(ssl.SSLCertVerificationError, match="purpose"):
        await handshake(server, client, "localhost")


def test_keys_are_for_their_owner_alone_and_never_replaced(tmp_path: Path) -> None:
    authority = Authority.create(tmp_path / "new")
    file = authority.issue("alice")
    for secret in (file, tmp_path / "new/ca-key.pem"):
        assert secret.stat().st_mode & 0o777 == 0o600
    before = file.read_bytes()
    with pytest.raises(CertificateError, match="exists already"):
        authority.issue("alice")
    with pytest.raises(CertificateError, match="exists already"):
        Authority.create(tmp_path / "new")
    assert file.read_bytes() == before


@pytest.mark.parametrize("name", ["../alice", "", "x" * 65, "."])
def test_impossible_names_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(CertificateError, match="name"):
        Authority.create(tmp_path).issue(name)


def test_missing_authority_is_named_with_the_command_that_makes_one(tmp_path: Path) -> None:
    with pytest.raises(CertificateError, match=r"ca\.pem is not there: `ottla certs ca"):
        Authority.load(tmp_path)
