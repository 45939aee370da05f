"""The console at a node with TLS, logins and an authorizer: rules and delegation tokens."""

from collections.abc import Iterator

import pytest
from tests.support.servers.console_server import RunningConsole, running_console

from ottla import Admin
from ottla.testing import Broker, Security

HOSTILE = "<script>alert(1)</script>\"'&"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"delegation.token.secret.key": "secret"}, security=Security(acls=True)) as running:
        yield running


@pytest.fixture(scope="module")
def console(broker: Broker) -> Iterator[RunningConsole]:
    with running_console(broker.bootstrap_servers, properties=broker.client_config()) as running:
        yield running


def test_rules_are_added_searched_and_deleted(console: RunningConsole) -> None:
    assert console.api("/acls")["absent"] == ""
    assert "There are no rules" in console.page("/acls")
    rule = {
        "principal": f"bob{HOSTILE}",
        "permission": "allow",
        "operation": "read",
        "resource_type": "topic",
        "resource_name": f"orders{HOSTILE}",
        "pattern_type": "prefixed",
    }
    console.done("/acls/add", rule)
    console.done("/acls/add", {"principal": "User:ada", "permission": "deny", "operation": "alter", "resource_type": "cluster"})
    first, second = console.api("/acls")["rows"]
    assert (first["principal"], first["permission"], first["resource_name"]) == ("User:ada", "deny", "kafka-cluster")
    assert (second["principal"], second["operation"], second["pattern_type"]) == (f"User:bob{HOSTILE}", "read", "prefixed")
    assert "<script>alert" not in console.page("/acls")
    assert [each["principal"] for each in console.api("/acls?q=ada")["rows"]] == ["User:ada"]
    shown = {name: second[name] for name in ("principal", "host", "permission", "operation", "resource_type", "resource_name")}
    assert console.post("/api/acls/delete", shown).status == 404  # literal, and the rule is prefixed
    console.done("/acls/delete", shown | {"pattern_type": "prefixed"})
    assert [each["principal"] for each in console.api("/acls")["rows"]] == ["User:ada"]
    console.done("/acls/delete", {name: str(value) for name, value in first.items()})


@pytest.mark.parametrize(
    "form",
    [
        {"principal": "User:a", "operation": "fly", "resource_type": "topic", "resource_name": "t"},
        {"principal": "User:a", "operation": "read", "resource_type": "shelf", "resource_name": "t"},
        {"principal": "User:a", "operation": "read", "resource_type": "topic", "resource_name": "t", "permission": "maybe"},
        {"principal": "User:a", "operation": "read", "resource_type": "topic"},
    ],
)
def test_mistaken_rules_are_refused(console: RunningConsole, form: dict[str, str]) -> None:
    answer = console.post("/api/acls/add", form)
    assert answer.status in (400, 502)
    assert console.api("/acls")["rows"] == []


def test_token_is_created_shown_once_renewed_and_ended(console: RunningConsole, broker: Broker) -> None:
    made = console.post("/tokens/create", {"renewers": "User:bob", "hours": "2"})
    assert made.status == 200
    assert "Location" not in made.headers
    secret = made.text.split('<th scope="row">Secret</th><td><code>')[1].split("<")[0]
    (token,) = console.api("/tokens")["rows"]
    assert token["renewers"] == ["User:bob"]
    page = console.page("/tokens")
    assert token["id"] in page
    assert secret not in page
    assert secret not in str(token)
    with Admin(
        broker.bootstrap_servers,
        config=broker.client_config()
        | {
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
            f'username="{token["id"]}" password="{secret}" tokenauth=true;',
        },
    ) as admin:
        assert admin.describe_cluster().cluster_id
    console.done("/tokens/renew", {"id": token["id"]})
    console.done("/tokens/expire", {"id": token["id"]})
    assert console.api("/tokens")["rows"] == []
    assert console.post("/api/tokens/renew", {"id": token["id"]}).status == 404
