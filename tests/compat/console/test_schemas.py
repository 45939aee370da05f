"""The console's schema pages, before Ottla's registry."""

import json
from collections.abc import Iterator
from html import unescape
from urllib.parse import quote, urlencode

import pytest
from tests.support.servers.console_server import RunningConsole, running_console

from ottla.testing import Broker

HOSTILE = "<script>alert(1)</script>\"'&"


def record(**fields: str) -> str:
    """A record schema; a field's default makes it optional."""
    made = [
        {"name": name, "type": kind.rstrip("?"), **({"default": 0} if kind.endswith("?") else {})}
        for name, kind in fields.items()
    ]
    return json.dumps({"type": "record", "name": "R", "fields": made})


@pytest.fixture(scope="module")
def registry_console() -> Iterator[RunningConsole]:
    with Broker() as broker, running_console(broker.bootstrap_servers, registry_url=broker.schema_registry_url) as running:
        yield running


def test_schema_is_registered_compared_and_deleted(registry_console: RunningConsole) -> None:
    console, subject = registry_console, f"orders-value{HOSTILE}"
    path = f"/schemas/{quote(subject, safe='')}"
    assert "There are no schemas yet" in console.page("/schemas")
    console.done("/schemas/register", {"subject": subject, "schema": record(a="int"), "kind": "AVRO"})
    console.done(f"{path}/register", {"schema": record(a="int", b="int?")})
    found = console.api(path)
    assert (found["versions"], found["shown"], found["level"], found["is_own_level"]) == ([1, 2], 2, "BACKWARD", False)
    for page in ("/schemas", path, f"{path}?version=1", f"{path}/diff", f"{path}/check"):
        text = console.page(page)
        assert "<script>alert" not in text
        assert HOSTILE in unescape(text)
    lines = console.api(f"{path}/diff")["lines"]
    assert any(each["kind"] == "added" and '"b"' in each["text"] for each in lines)
    assert not any(each["kind"] == "removed" and '"a"' in each["text"] for each in lines)
    assert console.api(f"{path}/diff?from=1&to=1")["is_same"]
    console.done(f"{path}/delete", {"version": "1"})
    assert console.api(path)["versions"] == [2]
    assert console.post(f"{path}/delete", {"confirm": "orders"}).status == 400
    console.done(f"{path}/delete", {"confirm": subject})
    assert subject not in {each["name"] for each in console.api("/schemas")["rows"]}
    (gone,) = [each for each in console.api("/schemas?deleted=1")["rows"] if each["name"] == subject]
    assert gone["is_deleted"]


def test_candidate_is_checked_with_reasons(registry_console: RunningConsole) -> None:
    console = registry_console
    console.done("/schemas/register", {"subject": "checked", "schema": record(a="int")})

    def reasons(schema: str) -> list[str]:
        found: list[str] = console.api(f"/schemas/checked/check?{urlencode({'schema': schema})}")["reasons"]
        return found

    assert reasons(record(a="int", b="int?")) == []
    assert "'b'" in " ".join(reasons(record(a="int", b="int")))
    page = console.page(f"/schemas/checked/check?{urlencode({'schema': record(a='int', b='int')})}")
    assert "It is not compatible" in page
    refused = console.post("/schemas/checked/register", {"schema": record(a="int", b="int")})
    assert refused.status == 409
    assert len(reasons("{")) == 1  # it cannot be read
    assert "It is not compatible" in console.page(f"/schemas/checked/check?{urlencode({'schema': '{'})}")


def test_compatibility_is_set_and_taken_back(registry_console: RunningConsole) -> None:
    console = registry_console
    console.done("/schemas/register", {"subject": "levels", "schema": record(a="int")})
    console.done("/schemas/levels/level", {"level": "NONE"})
    assert (console.api("/schemas/levels")["level"], console.api("/schemas/levels")["is_own_level"]) == ("NONE", True)
    console.done("/schemas/levels/level", {"reset": "1"})
    assert console.api("/schemas/levels")["is_own_level"] is False
    assert console.post("/schemas/levels/level", {"level": "SOME"}).status == 400


def test_unknown_subject_and_a_registry_that_is_gone(registry_console: RunningConsole) -> None:
    assert registry_console.get("/schemas/no-such-subject").status == 404
    with Broker() as broker, running_console(broker.bootstrap_servers, registry_url="http://127.0.0.1:9") as console:
        answer = console.get("/schemas")
        assert answer.status == 503
        assert "does not answer" in answer.text
    with Broker() as broker, running_console(broker.bootstrap_servers) as console:
        assert "Schemas" not in console.page("/")
        assert "--schema-registry" in console.get("/schemas").text
