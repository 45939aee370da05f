"""Bootstrap addresses and client properties."""

from pathlib import Path

import click
import pytest
from tests.support.nodes.fake_node import FakeNetwork, FakeNode
from tests.unit.cli.conftest import RunOttla

from ottla.cli.common.settings import build_settings, parse_bootstrap, parse_pairs


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("localhost", (("localhost", 9092),)),
        ("a:1,b:2", (("a", 1), ("b", 2))),
        (" a:1 , b ", (("a", 1), ("b", 9092))),
        ("[::1]:9093", (("::1", 9093),)),
        ("[::1]", (("::1", 9092),)),
        ("PLAINTEXT://host:9094", (("host", 9094),)),
    ],
)
def test_addresses(text: str, addresses: tuple[tuple[str, int], ...]) -> None:
    assert parse_bootstrap(text) == addresses


@pytest.mark.parametrize("text", ["", ",", "host:", "host:x", "host:0", "host:70000", ":9092", "::1:9092", "host:-1"])
def test_malformed_addresses_are_refused(text: str) -> None:
    with pytest.raises(click.UsageError):
        parse_bootstrap(text)


def test_flags_override_files_and_files_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTTLA_BOOTSTRAP_SERVERS", "environment:1")
    assert build_settings("flag:2", {"bootstrap.servers": "file:3"}).bootstrap == (("flag", 2),)
    assert build_settings(None, {"bootstrap.servers": "file:3"}).bootstrap == (("file", 3),)
    assert build_settings(None, {}).bootstrap == (("environment", 1),)
    monkeypatch.delenv("OTTLA_BOOTSTRAP_SERVERS")
    assert build_settings(None, {}).bootstrap == (("localhost", 9092),)


def test_properties_are_used_or_named_in_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    settings = build_settings(
        None,
        {"client.id": "me", "request.timeout.ms": "5", "retry.backoff.ms": "6", "acks": "1", "interceptor.classes": "x"},
        frozenset({"acks"}),
    )
    assert (settings.client_id, settings.request_timeout_ms, settings.retry_backoff_ms) == ("me", 5, 6)
    assert settings.properties["acks"] == "1"
    said = capsys.readouterr().err
    assert "this command does not use the setting interceptor.classes" in said
    assert "acks" not in said


@pytest.mark.parametrize(
    "properties",
    [
        {"security.protocol": "SASL_SSL"},
        {"sasl.mechanism": "PLAIN"},
        {"ssl.truststore.location": "x"},
        {"request.timeout.ms": "soon"},
        {"request.timeout.ms": "-2"},
    ],
)
def test_unsupported_and_invalid_settings_are_refused(properties: dict[str, str]) -> None:
    with pytest.raises(click.UsageError) as refused:
        build_settings(None, properties)
    assert next(iter(properties)) in refused.value.message


def test_security_protocol_plaintext_is_accepted() -> None:
    assert build_settings(None, {"security.protocol": "plaintext"}).bootstrap


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
