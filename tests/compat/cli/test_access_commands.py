"""`ottla acls`, `users`, `tokens` and `quotas` on a secured server, beside Kafka's own tools; refused logins."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from tests.support.peers.topics import await_true
from tests.support.servers.kafka_server import KafkaServer, ports_of
from tests.support.servers.kafka_tools import KafkaTools
from tests.support.servers.ottla_cli import Said, run_cli
from tests.support.servers.ottla_server import StartServer
from tests.support.servers.secure_kafka import ALICES_PASSWORD, secure_properties
from tests.support.servers.tls_server import TestCertificates, make_certificates

ACCESS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS;User:alice",
}


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> TestCertificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def server(start_server: StartServer, certificates: TestCertificates) -> Iterator[KafkaServer]:
    with start_server(secure_properties(certificates) | ACCESS) as running:
        yield running


@pytest.fixture
def boss(server: KafkaServer, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of a super user."""
    address = f"127.0.0.1:{ports_of(server.properties)['PLAINTEXT']}"
    monkeypatch.setenv("OTTLA_BOOTSTRAP_SERVERS", address)
    return address


def login(server: KafkaServer, listener: str, user: str, password: str, mechanism: str, *words: str, **more: str) -> Said:
    """Run a command as a user, over a listener with SASL."""
    protocol = "SASL_SSL" if listener == "SASLTLS" else "SASL_PLAINTEXT"
    module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    jaas = f'org.apache.kafka.common.security.{module} required username="{user}" password="{password}";'
    settings = {"security.protocol": protocol, "sasl.mechanism": mechanism, "sasl.jaas.config": jaas} | {
        name.replace("_", "."): value for name, value in more.items()
    }
    properties = [word for name, value in settings.items() for word in ("--command-property", f"{name}={value}")]
    return run_cli(*words, "-b", f"127.0.0.1:{ports_of(server.properties)[listener]}", *properties)


def done(said: Said) -> list[str]:
    assert said.rc == 0, said.err
    return said.lines


@pytest.mark.slow
def test_rules_are_shown_as_kafkas_tool_shows_them(boss: str, kafka_tools: KafkaTools) -> None:
    done(run_cli("acls", "add", "carol", "read,describe", "topic:orders"))
    done(run_cli("acls", "add", "carol", "all", "group:billing-*", "--deny", "--host", "10.0.0.7"))
    theirs = kafka_tools.run("org.apache.kafka.tools.AclCommand", "--bootstrap-server", boss, "--list").stdout
    assert sorted(done(run_cli("acls", "list"))) == sorted(theirs.splitlines())
    assert json.loads(run_cli("acls", "check", "carol", "describe", "topic:orders", "--json").out)["allowed"]
    assert run_cli("acls", "check", "carol", "write", "topic:orders").rc == 1
    kafka_tools.run(
        *("org.apache.kafka.tools.AclCommand", "--bootstrap-server", boss, "--add", "--allow-principal", "User:dave"),
        *("--producer", "--topic", "sales"),
    )
    found = json.loads(run_cli("acls", "list", "--principal", "dave", "--json").out)
    assert {each["operation"] for each in found} == {"WRITE", "DESCRIBE", "CREATE"}
    done(run_cli("acls", "remove", "--principal", "dave"))
    assert json.loads(run_cli("acls", "list", "--principal", "dave", "--json").out) == []


def test_user_logs_in_and_is_told_what_is_wrong(
    boss: str, server: KafkaServer, monkeypatch: pytest.MonkeyPatch, certificates: TestCertificates
) -> None:
    monkeypatch.setenv("OTTLA_NEW_PASSWORD", "bob-secret")
    done(run_cli("users", "add", "bob"))
    assert json.loads(run_cli("users", "list", "bob", "--json").out) == [
        {"user": "bob", "credentials": [{"mechanism": "SCRAM-SHA-512", "iterations": 4096}]}
    ]
    bob = ("bob", "bob-secret", "SCRAM-SHA-512")
    done(login(server, "SASL", *bob, "topics", "list"))
    said = login(server, "SASL", *bob, "topics", "create", "forbidden")
    assert said.rc == 1
    assert "TOPIC_AUTHORIZATION_FAILED" in said.err
    said = login(server, "SASL", "bob", "wrong", "SCRAM-SHA-512", "topics", "list")
    assert said.rc == 1
    assert "user name and password" in said.err
    said = login(server, "PLAINONLY", *bob, "topics", "list")
    assert said.rc == 1
    assert "SCRAM-SHA-512" in said.err
    assert "PLAIN" in said.err
    said = login(server, "SASLTLS", *bob, "topics", "list")
    assert said.rc == 1
    assert "certificate" in said.err
    done(run_cli("users", "remove", "bob"))
    assert login(server, "SASL", *bob, "topics", "list").rc == 1


def test_token_lives_as_told(server: KafkaServer, certificates: TestCertificates) -> None:
    def ask(*words: str) -> Said:
        trust = {"ssl_truststore_type": "PEM", "ssl_truststore_location": str(certificates.authority.certificate)}
        return login(server, "SASLTLS", "alice", ALICES_PASSWORD, "PLAIN", *words, **trust)

    token = json.loads(ask("tokens", "create", "--max-lifetime", "2d", "--renewer", "carol", "--json").out)
    assert (token["owner"], token["renewers"]) == ("User:alice", ["User:carol"])
    assert token["maxLifetimeEnds"] - token["issued"] == 2 * 24 * 3600 * 1000
    await_true(lambda: token["id"] in ask("tokens", "list", "--json").out, "the broker to know the token")
    (listed,) = json.loads(ask("tokens", "list", "--json").out)
    assert listed == {name: value for name, value in token.items() if name != "hmac"}
    assert token["hmac"] in ask("tokens", "--describe").out, "Kafka's lines have it"
    renewed = json.loads(ask("tokens", "renew", token["id"], "--period", "1h", "--json").out)
    assert renewed["expires"] != token["expires"]
    said = login(server, "SASL", token["id"], token["hmac"], "SCRAM-SHA-256", "topics", "list")
    assert said.rc == 1, "without tokenauth=true it is an unknown user"
    assert ask("tokens", "--expire", "--hmac", token["hmac"], "--expiry-time-period", "-1").rc == 0
    await_true(lambda: json.loads(ask("tokens", "list", "--json").out) == [], "the broker to forget the token")
    said = ask("tokens", "renew", token["id"])
    assert said.rc == 1
    assert f"there is no token {token['id']}" in said.err


@pytest.mark.slow
def test_quotas_and_kafkas_tool_agree(boss: str, kafka_tools: KafkaTools) -> None:
    done(run_cli("quotas", "set", "--user", "alice", "--client", "app", "produce=10MB", "requests=12.5"))
    theirs = kafka_tools.run(
        *("configs", "--bootstrap-server", boss, "--describe", "--entity-type", "users", "--entity-name", "alice"),
        *("--entity-type", "clients", "--entity-name", "app"),
    ).stdout
    words = ("--entity-type", "users", "--entity-name", "alice", "--entity-type", "clients", "--entity-name", "app")
    assert done(run_cli("configs", "--describe", *words)) == theirs.splitlines()
    done(run_cli("quotas", "remove", "--user", "alice", "--client", "app", "--all"))
    assert done(run_cli("quotas", "list")) == []
