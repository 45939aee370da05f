"""`${env:…}`, `${file:…}` and `${directory:…}` in settings: secrets that are in no command line."""

from pathlib import Path

import click
import pytest

from ottla.cli.common.references import resolved
from ottla.cli.common.settings import read_properties
from ottla.cli.node.up import parse_overrides


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
