"""Links to Apache Kafka with TLS and SASL: every mechanism, refusals on both sides, reauthentication, throttling."""

import asyncio
import json
from base64 import urlsafe_b64encode
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from time import time

import pytest
from tests.support.servers.apache_kafka import ApacheKafka, KafkaServer
from tests.support.servers.kafka_server import ports_of
from tests.support.servers.secure_kafka import ALICES_PASSWORD, SESSION_MS, secure_properties
from tests.support.servers.tls_server import TestCertificates, make_certificates

from ottla.env import TlsOptions
from ottla.env.real import RealNetwork, RealRandomness
from ottla.link import (
    AuthenticationFailed,
    ConnectFailed,
    EncryptionFailed,
    Link,
    LinkEnded,
    LinkOptions,
    LinkSecurity,
    PeerFault,
    SaslOptions,
)
from ottla.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntityData,
    AlterClientQuotasRequestEntryData,
    OpData,
)
from ottla.wire.messages.metadata import MetadataRequest

pytestmark = pytest.mark.slow  # all of them are against Apache Kafka; the quick ones against Ottla are in tests/unit/link

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
ODD_PASSWORD = "Ⅳ ﬁsh-pä"
"""SASLprep would change it; Kafka does not use SASLprep."""


@dataclass
class Secure:
    """The running server."""

    server: KafkaServer
    ports: dict[str, int]
    certificates: TestCertificates

    def tls(self, **changes: object) -> TlsOptions:
        return TlsOptions(ca=str(self.certificates.authority.certificate), **changes)  # type: ignore[arg-type]

    def talk(
        self,
        listener: str,
        tls: TlsOptions | None = None,
        sasl: SaslOptions | None = None,
        script: Callable[[Link], Awaitable[None]] | None = None,
    ) -> None:
        async def run() -> None:
            options = LinkOptions(security=LinkSecurity(tls, sasl))
            link = await Link.connect(RealNetwork(), "127.0.0.1", self.ports[listener], options, RealRandomness())
            try:
                answer = await link.request(MetadataRequest(topics=[]))
                assert [broker.port for broker in answer.brokers] == [self.ports[listener]]
                if script is not None:
                    await script(link)
            finally:
                link.close()

        asyncio.run(run())


@pytest.fixture(scope="module")
def secure(apache_kafka: ApacheKafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secure]:
    certificates = make_certificates(tmp_path_factory.mktemp("certificates"))
    properties = secure_properties(certificates)
    with apache_kafka.start_server(properties) as server:
        credentials = [("alice", 256, ALICES_PASSWORD), ("alice", 512, ALICES_PASSWORD), ("odd", 256, ODD_PASSWORD)]
        with ThreadPoolExecutor() as pool:
            list(
                pool.map(lambda each: add_scram_user(apache_kafka, server, tmp_path_factory.mktemp("user"), *each), credentials)
            )
        yield Secure(server, ports_of(server.properties), certificates)


def add_scram_user(kafka: ApacheKafka, server: KafkaServer, folder: Path, name: str, bits: int, password: str) -> None:
    """Add a user with Kafka's own tool. The password is in a file, escaped: arguments depend on the machine's encoding."""
    escaped = password.encode("ascii", "backslashreplace").decode().replace("\\x", "\\u00")
    config = folder / "user.properties"
    config.write_text(f"SCRAM-SHA-{bits}=password={escaped}\n")
    kafka.run_tool(
        "kafka.admin.ConfigCommand", "--bootstrap-server", server.bootstrap, "--alter", "--entity-type", "users",
        "--entity-name", name, "--add-config-file", config,
    )  # fmt: skip


def token(**claims: object) -> str:
    """An unsigned token, as a broker without a key to check it accepts."""
    now = int(time())
    body = {"sub": "alice", "iat": now, "exp": now + 3600} | claims
    parts = (urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in ({"alg": "none"}, body))
    return ".".join(parts) + "."


def login(mechanism: str, password: str = ALICES_PASSWORD) -> SaslOptions:
    if mechanism == "OAUTHBEARER":
        return SaslOptions(mechanism, token=lambda: (token(), None, {"traceId": "123"}))
    return SaslOptions(mechanism, "alice", password)


def test_tls(secure: Secure) -> None:
    secure.talk("TLS", secure.tls())
    secure.talk("TLS", secure.tls(versions=("TLSv1.2",), ciphers=("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",)))


def test_client_certificates(secure: Secure) -> None:
    client, stranger = secure.certificates.client, secure.certificates.stranger
    secure.talk("MTLS", secure.tls(certificate=str(client.certificate), key=str(client.key)))
    for version in ("TLSv1.2", "TLSv1.3"):
        with pytest.raises((EncryptionFailed, ConnectFailed), match=r"client certificate|accepts our certificate"):
            secure.talk("MTLS", secure.tls(versions=(version,)))
        unknown = secure.tls(certificate=str(stranger.certificate), key=str(stranger.key), versions=(version,))
        with pytest.raises((EncryptionFailed, ConnectFailed), match=r"client certificate|accepts our certificate"):
            secure.talk("MTLS", unknown)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("listener", ["SASL", "SASLTLS"])
def test_every_mechanism(secure: Secure, listener: str, mechanism: str) -> None:
    secure.talk(listener, secure.tls() if listener == "SASLTLS" else None, login(mechanism))


@pytest.mark.parametrize("mechanism", MECHANISMS[:3])
def test_wrong_password(secure: Secure, mechanism: str) -> None:
    with pytest.raises(AuthenticationFailed) as failed:
        secure.talk("SASL", sasl=login(mechanism, "wrong"))
    text = str(failed.value)
    assert f"refused the login of user alice with {mechanism}: Authentication failed" in text
    assert "Check user name and password" in text
    assert "wrong" not in text
    assert not failed.value.is_retriable


def test_passwords_are_used_as_they_are(secure: Secure) -> None:
    secure.talk("SASL", sasl=SaslOptions("SCRAM-SHA-256", "odd", ODD_PASSWORD))


def test_refused_token(secure: Secure) -> None:
    with pytest.raises(AuthenticationFailed, match=r"with OAUTHBEARER: .*Check that the token is valid"):
        secure.talk("SASL", sasl=SaslOptions("OAUTHBEARER", token=lambda: token(exp=1, iat=0)))


def test_mechanism_that_is_not_offered(secure: Secure) -> None:
    with pytest.raises(AuthenticationFailed, match=r"does not offer the SASL mechanism SCRAM-SHA-256; it offers: PLAIN"):
        secure.talk("PLAINONLY", sasl=login("SCRAM-SHA-256"))


def test_wrong_kind_of_listener(secure: Secure) -> None:
    with pytest.raises(AuthenticationFailed, match=r"does not want a login here"):
        secure.talk("PLAINTEXT", sasl=login("PLAIN"))
    with pytest.raises(LinkEnded, match=r"If this listener wants a login, set security.protocol"):
        secure.talk("SASL")
    with pytest.raises(ConnectFailed, match=r"closed the connection during the TLS handshake"):
        secure.talk("PLAINTEXT", secure.tls())
    with pytest.raises((PeerFault, ConnectFailed), match=r"security.protocol"):
        secure.talk("TLS")


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_reauthentication_under_load(secure: Secure, mechanism: str) -> None:
    async def keep_asking(link: Link) -> None:
        asked = 0
        until = link._loop.time() + 2.5 * SESSION_MS / 1000
        while link._loop.time() < until:
            await asyncio.gather(*(link.request(MetadataRequest(topics=[])) for _ in range(20)))
            asked += 20
        assert link.counters.logins >= 3
        assert link.counters.answers == asked + 1

    secure.talk("SASL", sasl=login(mechanism), script=keep_asking)


def test_reauthentication_of_an_idle_link(secure: Secure) -> None:
    async def wait(link: Link) -> None:
        until = link._loop.time() + 60
        while link.counters.logins < 3:
            assert link._loop.time() < until
            await asyncio.sleep(0.05)
        await link.request(MetadataRequest(topics=[]))

    secure.talk("SASL", sasl=login("SCRAM-SHA-512"), script=wait)


def test_quota_of_the_broker_is_obeyed(secure: Secure) -> None:
    entity = [AlterClientQuotasRequestEntityData(entity_type="client-id", entity_name="slow")]
    limit = OpData(key="request_percentage", value=0.05)

    async def run() -> None:
        admin = await Link.connect(RealNetwork(), "127.0.0.1", secure.ports["PLAINTEXT"])
        altered = await admin.request(
            AlterClientQuotasRequest(entries=[AlterClientQuotasRequestEntryData(entity=entity, ops=[limit])])
        )
        assert altered.entries[0].error_code == 0
        admin.close()
        slow = await Link.connect(RealNetwork(), "127.0.0.1", secure.ports["PLAINTEXT"], LinkOptions(client_id="slow"))
        until = slow._loop.time() + 60
        while not slow.counters.throttled_answers:
            assert slow._loop.time() < until, "the broker never throttled"
            await slow.request(MetadataRequest())
        assert slow.throttled_until_s > slow._loop.time()
        free_s = slow.throttled_until_s
        await slow.request(MetadataRequest())
        assert slow._loop.time() >= free_s, "the next request waited"
        slow.close()

    asyncio.run(run())
