"""`${env:…}`, `${file:…}` and `${directory:…}` in settings: secrets that are in no command line."""

from pathlib import Path

import click
import pytest

from ottla.cli.common.references import is_secret, refuse_plain_secrets, resolved
from ottla.cli.common.settings import read_properties
from ottla.cli.node.up import parse_overrides
from ottla.config.broker_keys import BROKER_KEYS
from ottla.config.values import ConfigType


def test_references_are_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTTLA_TEST_PASSWORD", "s3cret ${env:HOME}")
    (tmp_path / "secrets.properties").write_text("key.password=from a file\n")
    (tmp_path / "token").write_text("from a folder\n")
    assert resolved(
        {
            "ssl.key.password": f"${{file:{tmp_path}/secrets.properties:key.password}}",
            "sasl.jaas.config": 'X required password="${env:OTTLA_TEST_PASSWORD}";',
            "token": f"${{directory:{tmp_path}:token}}",
            "rules": "RULE:^CN=(.*?)$/$1/,${other:x}",
        }
    ) == {
        "ssl.key.password": "from a file",
        "sasl.jaas.config": 'X required password="s3cret ${env:HOME}";',
        "token": "from a folder",
        "rules": "RULE:^CN=(.*?)$/$1/,${other:x}",
    }


@pytest.mark.parametrize(
    ("reference", "why"),
    [
        ("${env:OTTLA_TEST_ABSENT}", "no environment variable OTTLA_TEST_ABSENT"),
        ("${file:/nowhere/at/all:key}", "/nowhere/at/all is no file"),
        ("${file:/dev/null}", "write ${file:PATH:KEY}"),
        ("${directory:/etc:../passwd}", "no name of a file in /etc"),
    ],
)
def test_a_reference_that_leads_nowhere_names_the_setting(reference: str, why: str) -> None:
    with pytest.raises(click.UsageError) as refused:
        resolved({"ssl.key.password": reference})
    assert refused.value.message.startswith(f"ssl.key.password refers to {reference}: ")
    assert why in refused.value.message


def test_commands_and_nodes_resolve_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTTLA_TEST_PASSWORD", "s3cret")
    file = tmp_path / "client.properties"
    file.write_text("ssl.key.password=${env:OTTLA_TEST_PASSWORD}\n")
    assert read_properties(str(file)) == {"ssl.key.password": "s3cret"}
    assert parse_overrides(("ssl.key.password=${env:OTTLA_TEST_PASSWORD}",)) == {"ssl.key.password": "s3cret"}


def test_every_password_of_kafkas_tables_is_known() -> None:
    """But certificates, which Kafka hides too, are no secrets."""
    public = {"ssl.keystore.certificate.chain", "ssl.truststore.certificates"}
    hidden = {name for name, key in BROKER_KEYS.items() if key.type is ConfigType.PASSWORD}
    assert {name for name in BROKER_KEYS if is_secret(name)} == hidden - public
    assert is_secret("listener.name.tls.scram-sha-512.sasl.jaas.config")
    assert is_secret("my.plugin.password")


@pytest.mark.parametrize("value", ["s3cret", "  s3cret", "s3cret $HOME"])
def test_secret_on_the_command_line_is_refused_without_repeating_it(value: str) -> None:
    with pytest.raises(click.UsageError, match=r"--set ssl\.key\.password=…: others .* can read .*: use a file") as refused:
        refuse_plain_secrets("--set", ["num.partitions=6", f"ssl.key.password={value}"], "use a file")
    assert "s3cret" not in refused.value.message


def test_references_and_other_settings_may_be_on_the_command_line() -> None:
    harmless = ["ssl.key.password=${env:X}", "ssl.key.password=", "num.partitions=6"]
    refuse_plain_secrets("--set", [*harmless, "sasl.jaas.config=x.ScramLoginModule required;"], "use a file")


@pytest.mark.parametrize("option", ["password", "user_alice", "clientSecret"])
def test_login_with_a_secret_in_it_is_refused(option: str) -> None:
    with pytest.raises(click.UsageError):
        refuse_plain_secrets("--set", [f'listener.name.x.plain.sasl.jaas.config=x.Module required {option}="y";'], "use a file")
