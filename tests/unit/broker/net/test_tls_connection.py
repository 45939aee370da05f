"""TLS connections on real sockets: who the client is by its certificate, and what the log says of TLS that fails."""

import asyncio
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.support.nodes.net_server import EchoServer, FrameClient, shake
from tests.support.servers.certificates import Authority, Issued

from ottla.broker.net.settings import NetSettings
from ottla.config.broker_security import ListenerSecurity, TlsSettings
from ottla.config.principal_rules import PrincipalRules
from ottla.env import TlsFailed, TlsOptions
from ottla.env.real import RealNetwork
from ottla.ids import ANONYMOUS, Principal

SUBJECT = "CN=client,OU=Ops,O=Acme\\, Inc,C=DE"


class Certificates(NamedTuple):
    authority: Authority
    server: Issued
    client: Issued


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    authority = Authority(tmp_path_factory.mktemp("certificates"))
    return Certificates(
        authority,
        authority.issue("localhost", ["IP:127.0.0.1"]),
        authority.issue("client", subject="/C=DE/O=Acme, Inc/OU=Ops/CN=client"),
    )


class Served:
    """A server with a TLS listener."""

    def __init__(self, certificates: Certificates, client_auth: str = "none", rules: str = "DEFAULT") -> None:
        self.certificates = certificates
        self.tls = TlsSettings(
            certificate=str(certificates.server.single_file()),
            key=None,
            key_password=None,
            certificate_password=None,
            ca=str(certificates.authority.certificate),
            ca_password=None,
            client_auth=client_auth,
            check_hostname=True,
            ciphers=(),
            versions=("TLSv1.2", "TLSv1.3"),
        )
        security = ListenerSecurity("TLS", "SSL", self.tls, PrincipalRules.parse(rules))
        self.server = EchoServer(RealNetwork(), NetSettings(listener_security={"TLS": security}))

    async def client(self, shows: Issued | None = None) -> FrameClient:
        if not self.server.listeners.connections and not hasattr(self.server, "ports"):
            await self.server.start(names=("TLS", "PLAINTEXT"))
        tls = TlsOptions(ca=str(self.certificates.authority.certificate))
        if shows is not None:
            tls = TlsOptions(ca=tls.ca, certificate=str(shows.single_file()))
        return await FrameClient.connect(RealNetwork(), "127.0.0.1", self.server.ports["TLS"], tls=tls)


def principal(certificates: Certificates, client_auth: str, shows: Issued | None = None, rules: str = "DEFAULT") -> Principal:
    """Who a client is after its first request."""

    async def act() -> Principal:
        served = Served(certificates, client_auth, rules)
        client = await served.client(shows)
        client.send(shake("ping", 1))
        assert await client.answers(1) == [(1, ["ping"])]
        (connection,) = served.server.listeners.connections
        client.stream.close()
        return connection.info.principal

    return asyncio.run(act())


def test_the_subject_is_the_principal(certificates: Certificates) -> None:
    assert principal(certificates, "required", certificates.client) == Principal("User", SUBJECT)


def test_a_client_without_certificate_is_anonymous(certificates: Certificates) -> None:
    assert principal(certificates, "requested") == ANONYMOUS
    assert principal(certificates, "none", certificates.client) == ANONYMOUS


def test_rules_make_the_name(certificates: Certificates) -> None:
    rules = "RULE:^CN=(.*?),.*$/$1/U,DEFAULT"
    assert principal(certificates, "required", certificates.client, rules) == Principal("User", "CLIENT")


def test_a_client_that_no_rule_names_is_closed_at_its_first_request(
    certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    async def act() -> None:
        served = Served(certificates, "required", "RULE:^CN=somebody$/x/")
        client = await served.client(certificates.client)
        await client.silence()
        assert not client.is_over
        client.send(shake("ping", 1))
        await client.owner.until_ended()
        assert served.server.asked == []
        assert f"no rule of ssl.principal.mapping.rules matches {SUBJECT}" in caplog.text

    asyncio.run(act())


def test_a_client_without_tls_gets_an_alert_and_a_line(certificates: Certificates, caplog: pytest.LogCaptureFixture) -> None:
    async def act() -> None:
        served = Served(certificates)
        await served.server.start(names=("TLS", "PLAINTEXT"))
        reader, writer = await asyncio.open_connection("127.0.0.1", served.server.ports["TLS"])
        writer.write(shake("ping", 1))
        assert await reader.read() == bytes.fromhex("15030300020250")
        writer.close()
        while served.server.listeners.connections:
            await asyncio.sleep(0.01)
        assert "on TLS after a TLS failure: it does not speak TLS, and this listener does" in caplog.text

    asyncio.run(act())


def test_a_tls_client_on_a_plain_listener_gets_a_line(certificates: Certificates, caplog: pytest.LogCaptureFixture) -> None:
    async def act() -> None:
        served = Served(certificates)
        await served.server.start(names=("TLS", "PLAINTEXT"))
        with pytest.raises(OSError, match="closed the connection during the TLS handshake"):
            await FrameClient.connect(RealNetwork(), "127.0.0.1", served.server.ports["PLAINTEXT"], tls=TlsOptions())
        assert "on PLAINTEXT after the peer began a TLS handshake where no TLS is spoken" in caplog.text

    asyncio.run(act())


def test_a_client_that_must_show_a_certificate_and_does_not(
    certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    async def act() -> None:
        served = Served(certificates, "required")
        client = await served.client()
        client.send(shake("ping", 1))
        await client.owner.until_ended()
        assert isinstance(client.owner.error, TlsFailed)
        assert "it shows no certificate, and ssl.client.auth requires one" in caplog.text
        assert served.server.asked == []

    asyncio.run(act())


def test_a_listener_without_usable_files_is_not_opened(certificates: Certificates, tmp_path: Path) -> None:
    async def act() -> None:
        served = Served(certificates)
        missing = str(tmp_path / "no.pem")
        security = ListenerSecurity("TLS", "SSL", served.tls._replace(certificate=missing))
        server = EchoServer(RealNetwork(), NetSettings(listener_security={"TLS": security}))
        with pytest.raises(Exception, match=f"listener TLS: the certificate .*{missing}: there is no such file"):
            await server.start(names=("TLS",))

    asyncio.run(act())
