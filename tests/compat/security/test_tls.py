"""TLS listeners of a node, as clients see them: stores of every kind, client certificates, real clients and Kafka's tools."""

import os
import signal
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.helpers import create_ssl_context
from confluent_kafka import Producer as ConfluentProducer
from kafka import KafkaProducer
from tests.support.peers.topics import await_true
from tests.support.servers.certificates import PASSWORD, Authority, Issued
from tests.support.servers.kafka_server import KafkaServer, free_ports, ports_of
from tests.support.servers.kafka_tools import KafkaTools
from tests.support.servers.ottla_server import start_ottla

from ottla import Admin, Consumer, Producer
from ottla.errors import AuthenticationError
from ottla.errors.codes import ErrorCode

WAIT_S = 60
PROTOCOLS = {"PLAINTEXT": "PLAINTEXT", "PEM": "SSL", "INLINE": "SSL", "STORES": "SSL", "MUTUAL": "SSL", "CONTROLLER": "SSL"}


class Secure(NamedTuple):
    """A running node with a TLS listener for each way to give its certificate; the controller's has one too."""

    server: KafkaServer
    authority: Authority
    client: Issued

    def at(self, listener: str) -> str:
        return f"127.0.0.1:{ports_of(self.server.properties)[listener]}"

    def settings(self, with_certificate: bool = False) -> dict[str, Any]:
        """For Ottla's clients."""
        given = {
            "security_protocol": "SSL",
            "ssl_truststore_type": "PEM",
            "ssl_truststore_location": self.authority.certificate,
        }
        if with_certificate:
            given |= {"ssl_keystore_type": "PEM", "ssl_keystore_location": self.client.single_file()}
        return {name: str(value) for name, value in given.items()}


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secure]:
    pytest.importorskip("cryptography")
    authority = Authority(tmp_path_factory.mktemp("certificates"))
    server, client = authority.issue("localhost", ["IP:127.0.0.1", "DNS:localhost"]), authority.issue("client")
    ports = dict(zip(PROTOCOLS, free_ports(len(PROTOCOLS)), strict=True))
    pem: dict[str, object] = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": server.single_file(),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": authority.certificate,
    }
    own = {
        "inline": {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.key": server.key.read_text(),
            "ssl.keystore.certificate.chain": server.certificate.read_text(),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.certificates": authority.certificate.read_text(),
        },
        "stores": {
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": server.keystore(),
            "ssl.keystore.password": PASSWORD,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": authority.certificate,
        },
        "pem": pem,
        "mutual": pem | {"ssl.client.auth": "required", "ssl.principal.mapping.rules": "RULE:^CN=(.*?)$/$1/U"},
        "controller": pem | {"ssl.client.auth": "required"},
    }
    properties: dict[str, object] = {
        "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items()),
        "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in PROTOCOLS.items()),
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{ports['CONTROLLER']}",
        "inter.broker.listener.name": "PEM",
        **{f"listener.name.{name}.{key}": value for name, keys in own.items() for key, value in keys.items()},
    }
    with start_ottla(properties) as running:
        yield Secure(running, authority, client)


@pytest.mark.parametrize("listener", ["PEM", "INLINE", "STORES", "MUTUAL"])
def test_our_clients(secure: Secure, listener: str) -> None:
    settings, topic = secure.settings(with_certificate=listener == "MUTUAL"), f"ours-{listener.lower()}"
    with Admin(secure.at(listener), **settings) as admin:
        assert not admin.create_topics({topic: 1}).errors
    with Producer(secure.at(listener), **settings) as producer:
        deliveries = [producer.send(topic, bytes(100_000)) for _ in range(30)]
        producer.flush(WAIT_S)
        assert [each.result(WAIT_S).offset for each in deliveries] == list(range(30))
    with Consumer(secure.at(listener), auto_offset_reset="earliest", **settings) as consumer:
        consumer.assign([(topic, 0)])
        count = 0
        while count < 30:
            records = consumer.poll(WAIT_S)
            assert records, f"only {count} of 30 records"
            assert all(record.value == bytes(100_000) for record in records)
            count += len(records)


def confluent(secure: Secure, topic: str) -> None:
    settings = {
        "bootstrap.servers": secure.at("MUTUAL"),
        "security.protocol": "SSL",
        "ssl.ca.location": str(secure.authority.certificate),
        "ssl.certificate.location": str(secure.client.certificate),
        "ssl.key.location": str(secure.client.key),
    }
    producer = ConfluentProducer(settings)
    producer.produce(topic, b"value")
    assert producer.flush(WAIT_S) == 0


def kafka_python(secure: Secure, topic: str) -> None:
    producer = KafkaProducer(
        bootstrap_servers=secure.at("MUTUAL"),
        security_protocol="SSL",
        ssl_cafile=str(secure.authority.certificate),
        ssl_certfile=str(secure.client.certificate),
        ssl_keyfile=str(secure.client.key),
    )
    producer.send(topic, b"value").get(WAIT_S)
    producer.close()


def aiokafka(secure: Secure, topic: str) -> None:
    import asyncio

    async def send() -> None:
        context = create_ssl_context(
            cafile=str(secure.authority.certificate),
            certfile=str(secure.client.certificate),
            keyfile=str(secure.client.key),
        )
        async with AIOKafkaProducer(
            bootstrap_servers=secure.at("MUTUAL"), security_protocol="SSL", ssl_context=context
        ) as producer:
            await producer.send_and_wait(topic, b"value")

    asyncio.run(send())


@pytest.mark.parametrize("send", [confluent, kafka_python, aiokafka])
def test_other_clients_with_certificates(secure: Secure, send: Callable[[Secure, str], None]) -> None:
    topic = f"others-{send.__name__.replace('_', '-')}"
    with Admin(secure.at("PLAINTEXT")) as admin:
        assert not admin.create_topics({topic: 1}).errors
    send(secure, topic)
    with Consumer(secure.at("PLAINTEXT"), auto_offset_reset="earliest") as consumer:
        consumer.assign([(topic, 0)])
        assert [record.value for record in consumer.poll(WAIT_S)] == [b"value"]


@pytest.mark.kafka
def test_kafkas_console_tools(secure: Secure, kafka_tools: KafkaTools, tmp_path: Path) -> None:
    config = tmp_path / "client.properties"
    config.write_text(
        f"security.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.location={secure.authority.certificate}\n"
        f"ssl.keystore.type=PEM\nssl.keystore.location={secure.client.single_file()}\n"
    )
    at = ("--bootstrap-server", secure.at("MUTUAL"))
    kafka_tools.run("topics", *at, "--command-config", config, "--create", "--topic", "tools", "--partitions", "1")
    kafka_tools.run("console_producer", *at, "--command-config", config, "--topic", "tools", stdin="one\ntwo\n")
    read = kafka_tools.run(
        "console_consumer",
        *at,
        "--command-config",
        config,
        "--topic",
        "tools",
        "--from-beginning",
        "--max-messages",
        "2",
        "--timeout-ms",
        "60000",
    )
    assert read.stdout.split() == ["one", "two"]


def test_a_client_that_shows_no_certificate_is_told(secure: Secure) -> None:
    with (
        pytest.raises(AuthenticationError, match=r"asks for a client certificate|got none"),
        Admin(secure.at("MUTUAL"), **secure.settings()) as admin,
    ):
        admin.list_topics()


def test_secrets_are_neither_described_nor_logged(secure: Secure) -> None:
    with Admin(secure.at("PLAINTEXT")) as admin:
        shown = str(admin.describe_configs({("broker", "1")}))
    assert "listener.name.stores.ssl.keystore.password" in shown
    for text in (shown, secure.server.log_text()):
        assert PASSWORD not in text
        assert "PRIVATE KEY" not in text


def shown(secure: Secure, listener: str) -> str:
    """The certificate that a new connection sees."""
    return ssl.get_server_certificate(("127.0.0.1", ports_of(secure.server.properties)[listener])).strip()


def alter(secure: Secure, changes: dict[str, str]) -> int:
    """Change settings of the broker; the error code."""
    with Admin(secure.at("PLAINTEXT")) as admin:
        errors = admin.alter_configs({("broker", "1"): changes}).errors
    return 0 if not errors else next(iter(errors.values())).code


def test_certificates_are_renewed_while_the_node_runs(secure: Secure, tmp_path: Path) -> None:
    location = "listener.name.pem.ssl.keystore.location"
    here = ["IP:127.0.0.1", "DNS:localhost"]
    renewed = Authority(tmp_path / "renewed").issue("localhost", here)
    before = shown(secure, "PEM")
    with Producer(secure.at("PEM"), **secure.settings()) as producer:
        producer.send("renewal", b"before").result(WAIT_S)
        elsewhere = secure.authority.issue("elsewhere.example", here)
        assert alter(secure, {location: str(tmp_path / "missing.pem")}) == ErrorCode.INVALID_REQUEST
        assert alter(secure, {location: str(elsewhere.single_file())}) == ErrorCode.INVALID_REQUEST, "another subject"
        assert alter(secure, {location: str(renewed.single_file())}) == ErrorCode.INVALID_REQUEST, "brokers do not trust it"
        assert alter(secure, {"ssl.keystore.location": str(renewed.single_file())}) == ErrorCode.INVALID_REQUEST, "no prefix"
        assert shown(secure, "PEM") == before
        # The same authority again: a certificate as it comes at the end of a year.
        new = Authority.again(secure.authority, tmp_path / "new").issue("localhost", here)
        assert alter(secure, {location: str(new.single_file())}) == 0
        assert shown(secure, "PEM") == new.certificate.read_text().strip()
        producer.send("renewal", b"after").result(WAIT_S)  # on the old connection
    # Another authority may sign for a listener that is not for brokers.
    password = "listener.name.stores.ssl.keystore.password"
    assert alter(secure, {"listener.name.stores.ssl.keystore.location": str(renewed.keystore()), password: "wrong"}) == 42
    assert alter(secure, {"listener.name.stores.ssl.keystore.location": str(renewed.keystore())}) == 0
    assert shown(secure, "STORES") == renewed.certificate.read_text().strip()


def test_sighup_reads_files_again(secure: Secure, tmp_path: Path) -> None:
    shown_before = shown(secure, "MUTUAL")
    path = Path(str(secure.server.properties["listener.name.mutual.ssl.keystore.location"]))
    new = Authority.again(secure.authority, tmp_path / "new").issue("localhost", ["IP:127.0.0.1", "DNS:localhost"])
    path.write_text(new.single_file().read_text())
    assert shown(secure, "MUTUAL") == shown_before
    os.kill(secure.server.pid, signal.SIGHUP)
    await_true(lambda: shown(secure, "MUTUAL") == new.certificate.read_text().strip(), "the listener shows the new certificate")
