"""Bootstrap addresses and client properties."""

from pathlib import Path

import click
import pytest
from tests.support.nodes.fake_node import FakeNetwork, FakeNode
from tests.support.servers.ottla_cli import run_cli
from tests.unit.cli.conftest import RunOttla

from ottla.cli.common.settings import build_settings, parse_pairs
from ottla.config.client.kinds import ADMIN, CONSUMER, PRODUCER, ClientKind


def test_flags_override_files_and_files_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTTLA_BOOTSTRAP_SERVERS", "environment:1")
    assert build_settings("flag:2", {"bootstrap.servers": "file:3"}).client.bootstrap_servers == (("flag", 2),)
    assert build_settings(None, {"bootstrap.servers": "file:3"}).client.bootstrap_servers == (("file", 3),)
    assert build_settings(None, {}).client.bootstrap_servers == (("environment", 1),)
    monkeypatch.delenv("OTTLA_BOOTSTRAP_SERVERS")
    assert build_settings(None, {}).client.bootstrap_servers == (("localhost", 9092),)


def test_addresses_of_one_kind_override_those_of_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTTLA_BOOTSTRAP_SERVERS", "environment:1")
    settings = build_settings(None, {"bootstrap.controllers": "file:3"}).client
    assert (settings.bootstrap_servers, settings.bootstrap_controllers) == ((), (("file", 3),))
    monkeypatch.delenv("OTTLA_BOOTSTRAP_SERVERS")
    monkeypatch.setenv("OTTLA_BOOTSTRAP_CONTROLLERS", "environment:1")
    assert build_settings("flag:2", {}).client.bootstrap_servers == (("flag", 2),)
    with pytest.raises(click.UsageError, match="both given"):
        build_settings(None, {"bootstrap.controllers": "file:3", "bootstrap.servers": "file:3"})


def test_properties_are_used_or_named_in_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    settings = build_settings(
        None,
        {"client.id": "me", "request.timeout.ms": "5", "retry.backoff.ms": "6", "acks": "1", "interceptor.classes": "x"},
        frozenset({"acks"}),
    )
    assert (settings.client.client_id, settings.client.request_timeout_ms, settings.client.retry_backoff_ms) == ("me", 5, 6)
    assert settings.properties["acks"] == "1"
    said = capsys.readouterr().err
    assert "this command does not use the setting interceptor.classes" in said
    assert "acks" not in said


@pytest.mark.parametrize(
    "properties",
    [
        {"sasl.mechanism": "GSSAPI", "security.protocol": "SASL_SSL"},
        {"ssl.truststore.type": "BCFKS", "ssl.truststore.location": "x", "security.protocol": "SSL"},
        {"request.timeout.ms": "soon"},
        {"request.timeout.ms": "-2"},
        {"bootstrap.servers": "host:70000"},
    ],
)
def test_invalid_settings_are_refused_by_name(properties: dict[str, str]) -> None:
    with pytest.raises(click.UsageError) as refused:
        build_settings(None, properties)
    assert next(iter(properties)) in refused.value.message


def test_security_settings_come_from_properties() -> None:
    jaas = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="me" password="secret";'
    given = {"security.protocol": "sasl_ssl", "sasl.mechanism": "PLAIN", "sasl.jaas.config": jaas}
    security = build_settings(None, given).client.security
    assert (security.protocol, security.mechanism, security.username, security.password) == (
        "SASL_SSL",
        "PLAIN",
        "me",
        "secret",
    )


def test_security_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    variables = {
        "OTTLA_SECURITY_PROTOCOL": "SASL_SSL",
        "OTTLA_SASL_MECHANISM": "SCRAM-SHA-256",
        "OTTLA_SASL_USERNAME": "me",
        "OTTLA_SASL_PASSWORD": "secret",
        "OTTLA_SSL_TRUSTSTORE_LOCATION": "ca.pem",
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    security = build_settings(None, {}).client.security
    assert (security.protocol, security.mechanism, security.ca) == ("SASL_SSL", "SCRAM-SHA-256", "ca.pem")
    assert (security.username, security.password) == ("me", "secret")
    jaas = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="file" password="other";'
    assert build_settings(None, {"sasl.jaas.config": jaas}).client.security.username == "file"
    assert build_settings(None, {"security.protocol": "PLAINTEXT"}).client.security.protocol == "PLAINTEXT"
    file = {"sasl.mechanism": "OAUTHBEARER", "sasl.login.callback.handler.class": "my_logins:token"}
    assert build_settings(None, {"security.protocol": "SASL_SSL", **file}).client.security.token_settings is not None


def test_setting_of_a_producer_is_ignored_with_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    build_settings(None, {"linger.ms": "5"})
    assert "this command does not use the setting linger.ms" in capsys.readouterr().err


def test_changed_settings_keep_the_others() -> None:
    settings = build_settings("a:1", {"client.id": "me"}).changed({"request.timeout.ms": 7})
    assert (settings.client.bootstrap_servers, settings.client.client_id) == ((("a", 1),), "me")
    assert settings.client.request_timeout_ms == 7


def test_pairs() -> None:
    assert parse_pairs(["a=1", "b=x=y", "c=", "a=2"], "--config") == {"a": "2", "b": "x=y", "c": ""}
    for bad in ("a", "=1", ""):
        with pytest.raises(click.UsageError, match="--config takes KEY=VALUE"):
            parse_pairs([bad], "--config")


def test_a_file_of_settings(ottla: RunOttla, network: FakeNetwork, node: FakeNode, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=elsewhere:9\nclient.id=from-file\n")
    network.nodes = {("elsewhere", 9): node, ("localhost", 9092): node}
    assert ottla("topics", "list", "--command-config", file, "--command-property", "client.id=from-flag").lines == ["orders"]
    assert node.client_ids == {"from-flag"}
    missing = ottla("topics", "list", "--command-config", tmp_path / "absent")
    assert (missing.rc, "absent cannot be read" in missing.err) == (2, True)
    file.write_bytes(b"broken=\\u12")
    assert "is not a properties file" in ottla("topics", "list", "--command-config", file).err


def test_misspelt_setting_gets_a_suggestion(capsys: pytest.CaptureFixture[str]) -> None:
    build_settings("a:1", {"lingr.ms": "3", "xyzzy": "1"}, frozenset({"linger.ms"}))
    assert capsys.readouterr().err.splitlines() == [
        "ottla: this command does not use the setting lingr.ms: it is ignored; did you mean linger.ms?",
        "ottla: this command does not use the setting xyzzy: it is ignored",
    ]


@pytest.mark.parametrize(
    ("name", "kind", "advice"),
    [
        ("block.on.buffer.full", PRODUCER, "use max.block.ms: how long"),
        ("timeout.ms", PRODUCER, "use request.timeout.ms, or delivery.timeout.ms for the whole delivery"),
        ("metadata.fetch.timeout.ms", PRODUCER, "use max.block.ms"),
        ("fetch.message.max.bytes", CONSUMER, "use max.partition.fetch.bytes\n"),
        ("fetch.message.max.bytes", PRODUCER, "use max.partition.fetch.bytes, which is a setting of consumer clients"),
        ("consumer.timeout.ms", CONSUMER, "use --timeout-ms"),
        ("sasl.username", ADMIN, "OTTLA_SASL_USERNAME"),
        ("zookeeper.connect", ADMIN, "use bootstrap.servers"),
    ],
)
def test_setting_by_an_old_name_gets_the_new_one(
    name: str, kind: ClientKind, advice: str, capsys: pytest.CaptureFixture[str]
) -> None:
    build_settings("a:1", {name: "1"}, frozenset(kind.table))
    said = capsys.readouterr().err
    assert said.startswith(f"ottla: this command does not use the setting {name}: it is ignored; ")
    assert advice in said


@pytest.mark.parametrize(
    ("verb", "name", "advice"),
    [
        ("consume", "print.keys", "did you mean print.key?"),
        ("consume", "print.timestmap", "did you mean print.timestamp?"),
        ("consume", "key.deserialiser", "did you mean key.deserializer?"),
        ("consume", "group.id", "it is a setting of the client; give it with --command-property"),
        ("consume", "fetch.message.max.bytes", "use max.partition.fetch.bytes; give it with --command-property"),
        ("consume", "zzz", "choose from print.timestamp, "),
        ("produce", "parse.keys", "did you mean parse.key?"),
        ("produce", "request.required.acks", "use acks; give it with --command-property"),
    ],
)
def test_property_that_formatters_and_readers_lack(verb: str, name: str, advice: str) -> None:
    said = run_cli(verb, "x", "--property", f"{name}=true")
    assert said.rc == 2
    assert f"has no property {name}: " in said.err
    assert advice in said.err
