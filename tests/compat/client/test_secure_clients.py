"""Ottla's Producer, Consumer and Admin over TLS and SASL, against both servers."""

import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator
from time import monotonic, time
from typing import Any, NamedTuple

import pytest
from tests.support.peers.ottla_clients import Faces
from tests.support.peers.topics import await_leaders
from tests.support.servers.kafka_server import ports_of
from tests.support.servers.ottla_server import StartServer
from tests.support.servers.secure_kafka import ALICES_PASSWORD, secure_properties
from tests.support.servers.tls_server import TestCertificates, make_certificates

from ottla import Admin
from ottla.client.admin.scram import ScramUpsertion
from ottla.errors import AuthenticationError, KafkaError

WAIT_S = 60
LISTENERS = {"SSL": "TLS", "SASL_PLAINTEXT": "SASL", "SASL_SSL": "SASLTLS"}


class Secure(NamedTuple):
    """A running server with a listener for each kind of security."""

    ports: dict[str, int]
    certificates: TestCertificates

    def at(self, listener: str) -> str:
        return f"127.0.0.1:{self.ports[listener]}"

    def settings(self, protocol: str, mechanism: str = "", password: str = ALICES_PASSWORD) -> dict[str, Any]:
        chosen: dict[str, Any] = {"security_protocol": protocol}
        if protocol.endswith("SSL"):
            chosen |= {"ssl_truststore_type": "PEM", "ssl_truststore_location": str(self.certificates.authority.certificate)}
        if mechanism == "OAUTHBEARER":
            chosen |= {"sasl_mechanism": mechanism, "sasl_oauth_token": token}
        elif mechanism:
            chosen |= {"sasl_mechanism": mechanism, "sasl_plain_username": "alice", "sasl_plain_password": password}
        return chosen


def token() -> str:
    """An unsigned token, as a broker without a key to check it accepts."""
    now = int(time())
    body = {"sub": "alice", "iat": now, "exp": now + 3600}
    parts = (urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in ({"alg": "none"}, body))
    return ".".join(parts) + "."


@pytest.fixture(scope="module")
def secure(start_server: StartServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secure]:
    certificates = make_certificates(tmp_path_factory.mktemp("certificates"))
    with start_server(secure_properties(certificates)) as server:
        with Admin(server.bootstrap) as admin:
            for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
                changed = admin.alter_user_scram_credentials([ScramUpsertion("alice", mechanism, ALICES_PASSWORD)])
                assert not changed.errors
        yield Secure(ports_of(server.properties), certificates)


@pytest.mark.parametrize(
    ("protocol", "mechanism"),
    [
        ("SSL", ""),
        ("SASL_PLAINTEXT", "PLAIN"),
        ("SASL_SSL", "PLAIN"),
        ("SASL_SSL", "SCRAM-SHA-256"),
        ("SASL_SSL", "SCRAM-SHA-512"),
        ("SASL_SSL", "OAUTHBEARER"),
    ],
)
def test_all_clients(secure: Secure, face: Faces, topic: str, protocol: str, mechanism: str) -> None:
    bootstrap, settings = secure.at(LISTENERS[protocol]), secure.settings(protocol, mechanism)
    assert not face.admin(bootstrap, **settings).create_topics({topic: 2}).errors
    await_leaders(secure.at("PLAINTEXT"), topic, 2)
    producer = face.producer(bootstrap, **settings)
    for number in range(20):
        producer.send(topic, b"%d" % number, partition=number % 2)
    producer.flush(WAIT_S)
    consumer = face.consumer(bootstrap, group_id=topic, auto_offset_reset="earliest", **settings)
    consumer.subscribe([topic])
    found: list[int] = []
    while len(found) < 20:
        records = consumer.poll(WAIT_S)
        assert records, f"only {found} within {WAIT_S} s"
        found += [int(record.value) for record in records]
    assert sorted(found) == list(range(20))


def test_delegation_token(secure: Secure, face: Faces, topic: str) -> None:
    """A login by the id and the HMAC of a token, as the user that has made the token."""
    bootstrap = secure.at("SASLTLS")
    admin = face.admin(bootstrap, **secure.settings("SASL_SSL", "SCRAM-SHA-256"))
    made = admin.create_delegation_token()
    assert made.owner == "User:alice"
    deadline_s = monotonic() + WAIT_S
    while made.id not in [each.id for each in admin.describe_delegation_tokens()]:  # the broker learns of it later
        assert monotonic() < deadline_s
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    hmac = b64encode(made.hmac).decode()
    settings = secure.settings("SASL_SSL") | {
        "sasl_mechanism": "SCRAM-SHA-256",
        "sasl_jaas_config": f'{module} required username="{made.id}" password="{hmac}" tokenauth=true;',
    }
    assert face.producer(bootstrap, **settings).send(topic, b"v").result(WAIT_S).offset == 0


def test_one_token_serves_all_connections(secure: Secure, face: Faces, topic: str) -> None:
    fetched: list[str] = []

    def counting_token() -> str:
        fetched.append(token())
        return fetched[-1]

    bootstrap = secure.at("SASLTLS")
    settings = secure.settings("SASL_SSL", "OAUTHBEARER") | {"sasl_oauth_token": counting_token}
    producer = face.producer(bootstrap, **settings)
    assert producer.send(topic, b"v").result(WAIT_S).offset == 0
    assert producer.metrics()["producer-metrics"]["connection-creation-total"] > 1
    assert len(fetched) == 1


def test_client_certificate(secure: Secure, face: Faces, topic: str) -> None:
    client = secure.certificates.client
    settings = secure.settings("SSL") | {
        "ssl_keystore_type": "PEM",
        "ssl_keystore_certificate_chain": client.certificate.read_text(),
        "ssl_keystore_key": client.key.read_text(),
    }
    assert face.producer(secure.at("MTLS"), **settings).send(topic, b"v").result(WAIT_S).offset == 0


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_wrong_password_is_named_at_the_first_call(secure: Secure, face: Faces, topic: str, mechanism: str) -> None:
    bootstrap, settings = secure.at("SASLTLS"), secure.settings("SASL_SSL", mechanism, "wrong")
    with pytest.raises(AuthenticationError, match="Check user name and password"):
        face.admin(bootstrap, **settings).list_topics()
    with pytest.raises(AuthenticationError, match="Check user name and password"):
        face.producer(bootstrap, **settings).send(topic, b"v")
    consumer = face.consumer(bootstrap, group_id=topic, **settings)
    consumer.subscribe([topic])
    with pytest.raises(AuthenticationError, match="Check user name and password"):
        consumer.poll(WAIT_S)


def test_certificate_of_a_stranger_is_refused(secure: Secure, face: Faces, topic: str) -> None:
    settings = secure.settings("SSL")
    settings["ssl_truststore_location"] = str(secure.certificates.stranger_authority.certificate)
    with pytest.raises(KafkaError, match="certificate"):
        face.producer(secure.at("TLS"), max_block_ms=10_000, **settings).send(topic, b"v")


def test_sessions_that_end_are_renewed(secure: Secure, face: Faces, topic: str) -> None:
    """The listener's sessions last 3 s; sends go on past that."""
    producer = face.producer(secure.at("SASL"), linger_ms=0, **secure.settings("SASL_PLAINTEXT", "PLAIN"))
    until, offsets = time() + 4, []
    while time() < until:
        offsets.append(producer.send(topic, b"v", partition=0).result(WAIT_S).offset)
    assert offsets == list(range(len(offsets)))
