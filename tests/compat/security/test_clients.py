"""Clients of others over TLS and with every login, each reading in a group what it has written; on both servers.

The table of clients is `CLIENTS`, that of logins `LOGINS`. Our own clients are in `tests/compat/client/test_secure_clients.py`.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import aiokafka
import confluent_kafka
import kafka
import pytest
from aiokafka.abc import AbstractTokenProvider as AioTokenProvider
from aiokafka.helpers import create_ssl_context
from kafka.net.sasl.oauth import AbstractTokenProvider
from tests.support.peers.topics import await_true, make_topic
from tests.support.servers.kafka_server import HANG_S, KafkaServer, ports_of
from tests.support.servers.kafka_tools import KafkaTools
from tests.support.servers.ottla_server import StartServer
from tests.support.servers.secure_kafka import ALICES_PASSWORD, secure_properties
from tests.support.servers.tls_server import TestCertificates, make_certificates
from tests.support.servers.token_endpoint import unsigned_token

from ottla import Admin
from ottla.client.admin.scram import ScramUpsertion

pytestmark = pytest.mark.slow

COUNT = 20
WAIT_S = 60
LOGINS = {
    "tls": ("TLS", ""),
    "certificate": ("MTLS", ""),
    "plain": ("SASLTLS", "PLAIN"),
    "scram-256": ("SASLTLS", "SCRAM-SHA-256"),
    "scram-512": ("SASLTLS", "SCRAM-SHA-512"),
    "token": ("SASLTLS", "OAUTHBEARER"),
    "plain, unencrypted": ("SASL", "PLAIN"),
    "scram-256, unencrypted": ("SASL", "SCRAM-SHA-256"),
}


class Secure(NamedTuple):
    server: KafkaServer
    certificates: TestCertificates

    def at(self, listener: str) -> str:
        return f"127.0.0.1:{ports_of(self.server.properties)[listener]}"

    @property
    def authority(self) -> str:
        return str(self.certificates.authority.certificate)

    @property
    def shown(self) -> tuple[str, str]:
        """The files of the client's certificate and of its key."""
        return str(self.certificates.client.certificate), str(self.certificates.client.key)


@pytest.fixture(scope="module")
def secure(start_server: StartServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secure]:
    certificates = make_certificates(tmp_path_factory.mktemp("certificates"))
    with start_server(secure_properties(certificates)) as server:
        with Admin(server.bootstrap) as admin:
            for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
                changed = admin.alter_user_scram_credentials([ScramUpsertion("alice", mechanism, ALICES_PASSWORD)])
                assert not changed.errors
        yield Secure(server, certificates)


def protocol_of(listener: str) -> str:
    return {"TLS": "SSL", "MTLS": "SSL", "SASLTLS": "SASL_SSL", "SASL": "SASL_PLAINTEXT"}[listener]


def a_token() -> str:
    return unsigned_token(iat=time.time() - 5)  # a token from the server's next millisecond is refused


# Each sends COUNT records to the topic and returns what it reads from there, as a group of the topic's name.


def with_confluent_kafka(secure: Secure, listener: str, mechanism: str, topic: str) -> list[str]:
    settings: dict[str, Any] = {"bootstrap.servers": secure.at(listener), "security.protocol": protocol_of(listener)}
    if "TLS" in listener:
        settings["ssl.ca.location"] = secure.authority
    if listener == "MTLS":
        settings["ssl.certificate.location"], settings["ssl.key.location"] = secure.shown
    if mechanism == "OAUTHBEARER":
        settings |= {"enable.sasl.oauthbearer.unsecure.jwt": True, "sasl.oauthbearer.config": "principal=alice"}
    elif mechanism:
        settings |= {"sasl.username": "alice", "sasl.password": ALICES_PASSWORD}
    if mechanism:
        settings["sasl.mechanism"] = mechanism
    producer = confluent_kafka.Producer(settings)
    for number in range(COUNT):
        producer.produce(topic, b"%d" % number)
    assert producer.flush(WAIT_S) == 0
    consumer = confluent_kafka.Consumer(settings | {"group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    found: list[str] = []
    while len(found) < COUNT:
        record = consumer.poll(WAIT_S)
        assert record is not None
        assert record.error() is None, record.error()
        found.append(record.value().decode())
    consumer.close()
    return found


def with_kafka_python(secure: Secure, listener: str, mechanism: str, topic: str) -> list[str]:
    class Tokens(AbstractTokenProvider):  # type: ignore[misc]  # it has no types
        def token(self) -> str:
            return a_token()

    settings: dict[str, Any] = {"bootstrap_servers": secure.at(listener), "security_protocol": protocol_of(listener)}
    if "TLS" in listener:
        settings["ssl_cafile"] = secure.authority
    if listener == "MTLS":
        settings["ssl_certfile"], settings["ssl_keyfile"] = secure.shown
    if mechanism == "OAUTHBEARER":
        settings["sasl_oauth_token_provider"] = Tokens()
    elif mechanism:
        settings |= {"sasl_plain_username": "alice", "sasl_plain_password": ALICES_PASSWORD}
    if mechanism:
        settings["sasl_mechanism"] = mechanism
    producer = kafka.KafkaProducer(**settings)
    for number in range(COUNT):
        producer.send(topic, b"%d" % number)
    producer.flush(WAIT_S)
    producer.close()
    consumer = kafka.KafkaConsumer(
        topic, group_id=topic, auto_offset_reset="earliest", consumer_timeout_ms=WAIT_S * 1000, **settings
    )
    found: list[str] = []
    for record in consumer:
        found.append(record.value.decode())
        if len(found) == COUNT:
            break
    consumer.close()
    return found


def with_aiokafka(secure: Secure, listener: str, mechanism: str, topic: str) -> list[str]:
    class Tokens(AioTokenProvider):  # type: ignore[misc]  # it has no types
        async def token(self) -> str:
            return a_token()

    async def run() -> list[str]:
        settings: dict[str, Any] = {"bootstrap_servers": secure.at(listener), "security_protocol": protocol_of(listener)}
        if "TLS" in listener:
            own = secure.shown if listener == "MTLS" else (None, None)
            settings["ssl_context"] = create_ssl_context(cafile=secure.authority, certfile=own[0], keyfile=own[1])
        if mechanism == "OAUTHBEARER":
            settings["sasl_oauth_token_provider"] = Tokens()
        elif mechanism:
            settings |= {"sasl_plain_username": "alice", "sasl_plain_password": ALICES_PASSWORD}
        if mechanism:
            settings["sasl_mechanism"] = mechanism
        async with aiokafka.AIOKafkaProducer(**settings) as producer:
            for number in range(COUNT):
                await producer.send_and_wait(topic, b"%d" % number)
        found: list[str] = []
        async with aiokafka.AIOKafkaConsumer(topic, group_id=topic, auto_offset_reset="earliest", **settings) as consumer:
            async with asyncio.timeout(WAIT_S):
                while len(found) < COUNT:
                    found.append((await consumer.getone()).value.decode())
        return found

    return asyncio.run(run())


CLIENTS = [with_confluent_kafka, with_kafka_python, with_aiokafka]


@pytest.mark.parametrize("login", LOGINS)
@pytest.mark.parametrize("client", CLIENTS)
def test_python_clients(secure: Secure, login: str, client: Callable[[Secure, str, str, str], list[str]]) -> None:
    topic = f"{client.__name__}-{login}".replace(", ", "-").replace("_", "-")
    make_topic(secure.server.bootstrap, topic)
    assert sorted(client(secure, *LOGINS[login], topic), key=int) == [str(number) for number in range(COUNT)]


def java_properties(secure: Secure, listener: str, mechanism: str, user: str = "alice", password: str = ALICES_PASSWORD) -> str:
    lines = [f"security.protocol={protocol_of(listener)}"]
    if "TLS" in listener:
        lines += ["ssl.truststore.type=PEM", f"ssl.truststore.location={secure.authority}"]
    if listener == "MTLS":
        lines += ["ssl.keystore.type=PEM", f"ssl.keystore.location={secure.certificates.client.single_file()}"]
    modules = "org.apache.kafka.common.security"
    if mechanism == "OAUTHBEARER":
        jaas = f'{modules}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="{user}";'
    elif mechanism == "PLAIN":
        jaas = f'{modules}.plain.PlainLoginModule required username="{user}" password="{password}";'
    else:
        jaas = f'{modules}.scram.ScramLoginModule required username="{user}" password="{password}";'
    if mechanism:
        lines += [f"sasl.mechanism={mechanism}", f"sasl.jaas.config={jaas}"]
    return "\n".join(lines)


@pytest.mark.kafka
@pytest.mark.parametrize("login", LOGINS)
def test_java_client(secure: Secure, kafka_tools: KafkaTools, tmp_path: Path, login: str) -> None:
    listener, mechanism = LOGINS[login]
    config = tmp_path / "client.properties"
    config.write_text(java_properties(secure, listener, mechanism))
    at = ("--bootstrap-server", secure.at(listener), "--command-config", config, "--topic", f"java-{login.replace(', ', '-')}")
    kafka_tools.run("topics", *at, "--create", "--partitions", "1")
    kafka_tools.run("console_producer", *at, stdin="".join(f"{number}\n" for number in range(COUNT)))
    read = kafka_tools.run(
        "console_consumer",
        *at,
        "--from-beginning",
        "--max-messages",
        COUNT,
        "--timeout-ms",
        "60000",
        "--group",
        f"java-{login}",
    )
    assert read.stdout.split() == [str(number) for number in range(COUNT)]


@pytest.mark.parametrize("login", LOGINS)
def test_franz_go(secure: Secure, franz: Path, login: str) -> None:
    listener, mechanism = LOGINS[login]
    password = a_token() if mechanism == "OAUTHBEARER" else ALICES_PASSWORD
    environment = {"FRANZ_MECHANISM": mechanism, "FRANZ_USER": "alice", "FRANZ_PASSWORD": password, "FRANZ_TOPIC": listener}
    if "TLS" in listener:
        environment["FRANZ_CA"] = secure.authority
    if listener == "MTLS":
        environment["FRANZ_CERTIFICATE"], environment["FRANZ_KEY"] = secure.shown
    done = subprocess.run(
        [franz, secure.at(listener), "secured"],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr[-3000:]


# Kafka's tools that manage access, as an administrator uses them


@pytest.fixture(scope="module")
def guarded(start_server: StartServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secure]:
    """A server with access control; alice is a super user, and nodes talk over the PLAINTEXT listener."""
    certificates = make_certificates(tmp_path_factory.mktemp("certificates"))
    access = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:alice;User:ANONYMOUS",
    }
    with start_server(secure_properties(certificates) | access) as server:
        yield Secure(server, certificates)


@pytest.mark.kafka
def test_kafkas_tools_manage_access(guarded: Secure, kafka_tools: KafkaTools, tmp_path: Path) -> None:
    config, bobs = tmp_path / "admin.properties", tmp_path / "bob.properties"
    config.write_text(java_properties(guarded, "SASLTLS", "PLAIN"))
    bobs.write_text(java_properties(guarded, "SASLTLS", "SCRAM-SHA-512", "bob", "builder"))
    at = ("--bootstrap-server", guarded.at("SASLTLS"), "--command-config")

    def tool(name: str, *arguments: object, config: Path = config, check: bool = True) -> str:
        said = kafka_tools.run(name, *at, config, *arguments, check=check)
        return said.stdout + said.stderr

    def until_said(text: str, name: str, *arguments: object, config: Path = config) -> None:
        await_true(lambda: text in tool(name, *arguments, config=config, check=False), text)

    bob = ("--entity-type", "users", "--entity-name", "bob")
    said = tool("configs", "--alter", "--add-config", "SCRAM-SHA-512=[iterations=8192,password=builder]", *bob)
    assert "Completed updating config for user bob." in said
    until_said(
        "SCRAM credential configs for user-principal 'bob' are SCRAM-SHA-512=iterations=8192", "configs", "--describe", *bob
    )
    tool("topics", "--create", "--topic", "orders", "--partitions", "1")
    denied = tool("topics", "--create", "--topic", "sales", config=bobs, check=False)
    assert "Authorization failed" in denied
    rule = ("--allow-principal", "User:bob", "--operation", "Describe", "--operation", "Create", "--topic", "sales")
    tool("acls", "--add", *rule)
    until_said("(principal=User:bob, host=*, operation=CREATE, permissionType=ALLOW)", "acls", "--list", "--topic", "sales")
    assert "Created topic sales" in tool("topics", "--create", "--topic", "sales", "--partitions", "1", config=bobs)
    assert tool("topics", "--list", config=bobs).split() == ["sales"]
    tool("acls", "--remove", "--force", *rule)
    await_true(lambda: "sales" not in tool("topics", "--list", config=bobs), "bob to lose his rights")
    tool("acls", "--add", "--deny-principal", "User:eve", "--deny-host", "10.0.0.9", "--operation", "All", "--cluster")
    tool("acls", "--add", "--allow-principal", "User:bob", "--producer", "--topic", "or", "--resource-pattern-type", "prefixed")
    listed = tool("acls", "--list", "--principal", "User:eve")
    assert "(principal=User:eve, host=10.0.0.9, operation=ALL, permissionType=DENY)" in listed
    assert "User:bob" in tool("acls", "--list", "--topic", "orders", "--resource-pattern-type", "match")
    tool("console_producer", "--topic", "orders", config=bobs)

    limits = ("--entity-type", "users", "--entity-name", "bob", "--entity-type", "clients", "--entity-default")
    tool("configs", "--alter", "--add-config", "producer_byte_rate=1000,request_percentage=12.5", *limits)
    until_said("producer_byte_rate=1000.0", "configs", "--describe", *limits)
    assert "request_percentage=12.5" in tool("configs", "--describe", *limits)
    tool("configs", "--alter", "--delete-config", "producer_byte_rate,request_percentage", *limits)
    await_true(lambda: "byte_rate" not in tool("configs", "--describe", *limits), "the quota to go")
    address = ("--entity-type", "ips", "--entity-name", "10.0.0.9")
    tool("configs", "--alter", "--add-config", "connection_creation_rate=7", *address)
    until_said("connection_creation_rate=7", "configs", "--describe", *address)

    made = tool("delegation_tokens", "--create", "--max-life-time-period", "-1", "--renewer-principal", "User:bob", config=bobs)
    token_id, hmac = made.strip().splitlines()[-1].split()[:2]
    assert len(b64encode(b"x" * 64)) == len(hmac)
    bobs_tokens = ("delegation_tokens", "--describe", "--owner-principal", "User:bob")
    until_said(token_id, *bobs_tokens, config=bobs)
    assert token_id in tool(*bobs_tokens), "an administrator sees it too"
    by_token = tmp_path / "token.properties"
    text = java_properties(guarded, "SASLTLS", "SCRAM-SHA-256", token_id, hmac)
    by_token.write_text(text.replace('";', '" tokenauth="true";'))
    tool("console_producer", "--topic", "orders", config=by_token)
    assert "ompleted renew" in tool("delegation_tokens", "--renew", "--renew-time-period", "-1", "--hmac", hmac, config=bobs)
    assert "ompleted expire" in tool("delegation_tokens", "--expire", "--expiry-time-period", "-1", "--hmac", hmac, config=bobs)
    await_true(lambda: token_id not in tool(*bobs_tokens, config=bobs), "the token to go")
    tool("configs", "--alter", "--delete-config", "SCRAM-SHA-512", *bob)
    await_true(lambda: "SCRAM-SHA-512" not in tool("configs", "--describe", *bob), "bob's password to go")
