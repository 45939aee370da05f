"""Links between nodes: the security of the listener they lead to."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.cases.config_files import COMBINED
from tests.support.nodes.net_server import EchoServer
from tests.support.servers.certificates import Authority, Issued

from ottla.broker.net.settings import NetSettings
from ottla.broker.node_links import NodeLinks
from ottla.config.broker import BrokerConfig
from ottla.config.broker_security import ListenerSecurity
from ottla.config.values import InvalidConfig
from ottla.env.real import RealNetwork
from ottla.ids import Principal
from ottla.link import EncryptionFailed, LinkOptions
from ottla.wire.messages.sasl_handshake import SaslHandshakeRequest

SASL = {
    "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512,OAUTHBEARER",
    "listener.name.plaintext.plain.sasl.jaas.config": 'Plain required username="node" password="secret";',
    "listener.name.plaintext.scram-sha-512.sasl.jaas.config": "Scram required;",
    "listener.name.plaintext.oauthbearer.sasl.jaas.config": "OAuth required;",
}


def brokers_security(changes: dict[str, str]) -> ListenerSecurity:
    return BrokerConfig.from_settings({**COMBINED, **changes}).brokers_security


def tls_security(authority: Authority, shown: Issued) -> ListenerSecurity:
    return brokers_security(
        {
            "listener.security.protocol.map": "PLAINTEXT:SSL,CONTROLLER:PLAINTEXT",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(shown.single_file()),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(authority.certificate),
            "ssl.client.auth": "required",
        }
    )


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ca"))


def connect(security: ListenerSecurity, act: Callable[[EchoServer], None] = lambda server: None) -> None:
    """One node connects to the listener of another."""

    async def run() -> None:
        server = EchoServer(RealNetwork(), NetSettings(listener_security={"BROKERS": security}))
        port = await server.start(names=("BROKERS",))
        link = await NodeLinks(RealNetwork(), None, lambda: security).connect("127.0.0.1", port, LinkOptions())
        assert (await link.request(SaslHandshakeRequest(mechanism="ping"))).mechanisms == ["ping"]
        act(server)
        link.close()

    asyncio.run(run())


def test_a_node_shows_the_listeners_own_certificate(authority: Authority) -> None:
    def check(server: EchoServer) -> None:
        (connection,) = server.listeners.connections
        assert connection.info.principal == Principal("User", "CN=node")

    connect(tls_security(authority, authority.issue("node", ["IP:127.0.0.1"])), check)


def test_a_certificate_for_another_host_is_refused_with_a_sentence(authority: Authority) -> None:
    security = tls_security(authority, authority.issue("other.example", ["DNS:other.example"]))
    with pytest.raises(EncryptionFailed, match=r"is not for 127\.0\.0\.1: it is for other\.example"):
        connect(security)


def test_settings_that_no_link_can_use_are_told_at_the_start(authority: Authority, tmp_path: Path) -> None:
    def refusal(security: ListenerSecurity) -> str:
        with pytest.raises(InvalidConfig) as refused:
            NodeLinks(RealNetwork(), None, lambda: security).check()
        return str(refused.value)

    good = tls_security(authority, authority.issue("node", ["IP:127.0.0.1"]))
    NodeLinks(RealNetwork(), None, lambda: good).check()
    assert good.tls is not None
    missing = good._replace(tls=good.tls._replace(ca=str(tmp_path / "no.pem")))
    assert "nodes cannot connect to listener PLAINTEXT: the trusted certificates" in refusal(missing)
    mechanism = "sasl.mechanism.inter.broker.protocol"
    plain = brokers_security({**SASL, mechanism: "PLAIN"})
    NodeLinks(RealNetwork(), None, lambda: plain).check()
    assert "has no username or no password" in refusal(brokers_security({**SASL, mechanism: "SCRAM-SHA-512"}))
