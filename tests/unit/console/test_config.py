"""The console's configuration file: what it gives, and that mistakes name their line and key."""

import re
from pathlib import Path

import pytest

from ottla.console.access import OpenIdLogin, ProxyLogin
from ottla.console.config import BadConfig, parse_config, read_config

WHOLE = """
clusters:
  - name: prod
    bootstrap.servers: a:9092,b:9092
    command-config: prod.properties
    schema-registry: http://registry:8081
    read-only: true
  - bootstrap.servers: localhost:9092
    properties: {client.id: console}
login:
  header: X-User
  groups-header: X-Groups
  trusted: [127.0.0.1, 10.0.0.0/8]
  editors: [admins]
masking:
  - {topics: "orders*", path: $.email, how: hash}
audit-topic: audit
allow-changes: true
sql: yes
pipelines: http://etl:9464
"""


def test_whole_file() -> None:
    config = parse_config(WHOLE, "console.yaml")
    prod, test = config.clusters
    assert (prod.name, prod.properties, prod.command_config, prod.registry, prod.is_read_only) == (
        "prod",
        {"bootstrap.servers": "a:9092,b:9092"},
        "prod.properties",
        "http://registry:8081",
        True,
    )
    assert (test.name, test.properties["client.id"], test.is_read_only) == ("localhost:9092", "console", False)
    assert isinstance(config.access, ProxyLogin)
    assert [str(each) for each in config.access.trusted] == ["127.0.0.1/32", "10.0.0.0/8"]
    assert config.rules[0].topics == "orders*"
    assert (config.audit_topic, config.allows_changes, config.runs_sql, config.pipelines) == (
        "audit",
        True,
        True,
        ["http://etl:9464"],
    )


def test_openid_login_resolves_references() -> None:
    text = "login: {openid: {issuer: https://id, client-id: me, client-secret: '${env:SECRET}'}, editors: admins}"
    config = parse_config(
        text, "c", lambda given: {name: value.replace("${env:SECRET}", "s3") for name, value in given.items()}
    )
    assert isinstance(config.access, OpenIdLogin)
    assert config.access._provider.client_secret == "s3"


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", 0, "is empty"),
        ("clusters: [", 1, "not YAML"),
        ("- a", 1, "fields are expected"),
        ("cluster: []", 1, "cluster: there is no such key: did you mean clusters?"),
        ("clusters: 7", 1, "clusters: a list is expected"),
        (
            "clusters:\n  - name: a\n    bootstrap.server: x",
            3,
            "clusters[0].bootstrap.server: there is no such key: did you mean",
        ),
        ("clusters:\n  - name: a", 2, "clusters[0]: the cluster has no address"),
        ("clusters:\n  - bootstrap.servers: a\n  - bootstrap.servers: a", 3, "there are two clusters a"),
        ("clusters:\n  - bootstrap.servers: a\n    read-only: maybe", 3, "read-only: true or false is expected"),
        ("clusters:\n  - bootstrap.servers: {a: 1}", 2, "bootstrap.servers: a text is expected"),
        ("clusters:\n  - bootstrap.servers:", 2, "bootstrap.servers: a text is expected"),
        ("sql: true\nsql: true", 2, "sql: it is given twice"),
        ("login:\n  editors: [a]", 2, "name one way to log in"),
        ("login:\n  header: X", 2, "trusted is missing"),
        ("login:\n  header: X\n  trusted: [here]", 3, "login.trusted: 'here' is no address"),
        ("login:\n  openid: {issuer: x}", 2, "client-id is missing"),
        ("masking:\n  - {path: email}", 2, "masking[0]: 'email' is no path"),
        ("masking:\n  - {how: blur}", 2, "is no way to mask"),
    ],
)
def test_mistakes_name_line_and_key(text: str, line: int, words: str) -> None:
    place = f"console.yaml, line {line}: " if line else "console.yaml "
    with pytest.raises(BadConfig, match=f"{re.escape(place)}.*{re.escape(words)}"):
        parse_config(text, "console.yaml")


def test_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match=r"none\.yaml cannot be read: No such file"):
        read_config(tmp_path / "none.yaml")
