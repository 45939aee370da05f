"""Who may use the console, and what: logins by a proxy and by OpenID Connect, roles, masked fields, the audit topic."""

import ipaddress
import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from tests.support.servers.console_server import RunningConsole, running_console
from tests.support.servers.openid_provider import CLIENT_ID, CLIENT_SECRET, Provider, openid_provider

from ottla import Consumer, Producer
from ottla.console.access import OpenIdLogin, ProxyLogin, Roles
from ottla.console.access import Provider as Settings
from ottla.console.masking import HIDDEN, How, Masking, Rule
from ottla.schemas import AvroSerializer
from ottla.testing import Broker

ROLES = Roles(frozenset({"admins"}), frozenset({"staff"}))
LOOPBACK = (ipaddress.ip_network("127.0.0.0/8"),)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


# A proxy's header


def as_user(console: RunningConsole, name: str, groups: str) -> RunningConsole:
    return RunningConsole(console.url, {"X-User": name, "X-Groups": groups})


def test_proxy_names_users_and_their_groups(broker: Broker) -> None:
    access = ProxyLogin("X-User", "X-Groups", LOOPBACK, ROLES)
    with running_console(broker.bootstrap_servers, access=access) as console:
        nobody = console.get("/topics")
        assert nobody.status == 401
        assert "has to send one header X-User" in nobody.text
        assert as_user(console, "eve", "others").get("/topics").status == 403
        viewer = as_user(console, "bob", "others, staff")
        assert "bob" in viewer.page("/topics")
        assert "Create a topic" not in viewer.page("/topics")
        refused = viewer.post("/topics/create", {"name": "by-bob"})
        assert refused.status == 403
        assert "bob may only look" in refused.text
        editor = as_user(console, "<b>ada</b>", "admins")
        assert "&lt;b&gt;ada" in editor.page("/topics")
        assert editor.post("/topics/create", {"name": "by-ada"}).status == 303


def test_header_counts_only_from_the_proxy(broker: Broker) -> None:
    access = ProxyLogin("X-User", None, (ipaddress.ip_network("10.0.0.0/8"),), ROLES)
    with running_console(broker.bootstrap_servers, access=access) as console:
        for headers in ({"X-User": "ada"}, {"X-User": "ada", "X-Forwarded-For": "10.0.0.1", "Forwarded": "for=10.0.0.1"}):
            answer = RunningConsole(console.url, headers).get("/topics")
            assert answer.status == 401
            assert "127.0.0.1 is none of the trusted proxies" in answer.text


# OpenID Connect


@pytest.fixture(scope="module")
def running_provider() -> Iterator[Provider]:
    with openid_provider() as running:
        yield running


@pytest.fixture
def provider(running_provider: Provider) -> Iterator[Provider]:
    running = running_provider
    yield running
    running.changed, running.refuses, running.forges = {}, None, False
    running.claims = {"preferred_username": "ada", "groups": ["admins"]}


@pytest.fixture
def console(broker: Broker, provider: Provider) -> Iterator[RunningConsole]:
    access = OpenIdLogin(Settings(provider.url, CLIENT_ID, CLIENT_SECRET), ROLES)
    with running_console(broker.bootstrap_servers, access=access) as running:
        yield running


def log_in(console: RunningConsole, path: str = "/topics?order=-name") -> Any:
    """Follow the redirects from a page to the provider and back; the last answer of the console."""
    answer = console.get(path)
    assert answer.status == 302
    answer = console.get(answer.place)  # the provider
    assert answer.status == 302
    return console.get(answer.place)


def test_openid_login_leads_back_to_the_page(console: RunningConsole, provider: Provider) -> None:
    assert console.get("/api/topics").status == 401
    answer = log_in(console)
    assert (answer.status, answer.place) == (302, "/topics?order=-name")
    page = console.page("/topics")
    assert "ada" in page
    assert "Log out" in page
    assert console.post("/topics/create", {"name": "by-openid"}).status == 303
    assert console.get("/logout").status == 200
    assert console.get("/topics").status == 302


def test_openid_users_have_the_role_of_their_groups(console: RunningConsole, provider: Provider) -> None:
    provider.claims = {"preferred_username": "bob", "groups": ["staff"]}
    assert log_in(console).status == 302
    assert console.post("/topics/create", {"name": "by-bob"}).status == 403
    provider.claims = {"preferred_username": "eve", "groups": "others"}
    assert log_in(RunningConsole(console.url)).status == 403


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"nonce": "another"}, "belongs to another login"),
        ({"aud": "another-client"}, "its audience is"),
        ({"iss": "https://elsewhere"}, "its issuer is"),
        ({"exp": 1}, "it expired"),
    ],
)
def test_tokens_for_others_are_refused(
    console: RunningConsole, provider: Provider, changed: dict[str, Any], words: str
) -> None:
    provider.changed = changed
    answer = log_in(console)
    assert answer.status == 403
    assert words in answer.text
    assert console.get("/topics").status == 302


def test_forged_tokens_and_refused_logins(console: RunningConsole, provider: Provider) -> None:
    provider.forges = True
    answer = log_in(console)
    assert answer.status == 403
    assert "not valid" in answer.text
    provider.forges, provider.refuses = False, "access_denied"
    assert "access_denied" in log_in(console).text


def test_login_of_another_browser_is_refused(console: RunningConsole, provider: Provider) -> None:
    """Somebody else's answer of the provider, sent as a link: the browser has not begun this login."""
    begun = console.get("/topics")
    back = console.get(begun.place)
    other = RunningConsole(console.url)
    assert other.get(back.place).status == 400
    assert console.get(back.place).status == 400  # and a code counts once


def test_login_never_leads_to_another_host(console: RunningConsole, provider: Provider) -> None:
    answer = log_in(console, "//evil.example/topics")
    assert urlsplit(answer.place).netloc == ""
    assert answer.place == "/evil.example/topics"


def test_provider_that_is_gone_is_named(broker: Broker) -> None:
    access = OpenIdLogin(Settings("http://127.0.0.1:9", CLIENT_ID), ROLES)
    with running_console(broker.bootstrap_servers, access=access) as console:
        answer = console.get("/topics")
        assert answer.status == 502
        assert "the OpenID provider at http://127.0.0.1:9" in answer.text


# Read-only clusters, masking, audit


def test_cluster_that_is_only_shown(broker: Broker) -> None:
    servers = {"open": broker.bootstrap_servers, "kept": broker.bootstrap_servers}
    with running_console(servers, read_only=frozenset({"kept"})) as console:
        assert console.post("/clusters/kept/topics/create", {"name": "in-kept"}).status == 403
        assert "Create a topic" not in console.page("/clusters/kept/topics")
        answer = console.post("/topics/create", {"name": "in-open"})
        assert (answer.status, answer.place.partition("?")[0]) == (303, "/topics/in-open")


MASKED = (Rule("orders*", path="$.email"), Rule("orders*", "headers", "$.token"), Rule("orders*", "key", "$", How.HIDE))


def test_masked_fields_are_nowhere(broker: Broker) -> None:
    topic, secret = "orders-masked", "ada@example.com"
    broker.create_topic(topic)
    with Producer(broker.bootstrap_servers) as producer:
        value = json.dumps({"id": 7, "email": secret}).encode()
        producer.send(topic, value, secret.encode(), headers=[("token", secret.encode()), ("trace", b"kept")])
        producer.send(topic, secret.encode())
    with running_console(broker.bootstrap_servers, masking=Masking(MASKED, b"secret")) as console:
        path = f"/topics/{topic}"
        first, second = console.api(f"{path}/records?from=oldest")["rows"]
        assert json.loads(first["value"]["text"]) == {"id": 7, "email": HIDDEN}
        assert (first["key"]["text"], second["value"]["text"]) == (HIDDEN, HIDDEN)
        assert {each["name"]: each["value"] for each in first["headers"]} == {"token": HIDDEN, "trace": "kept"}
        assert [each["offset"] for each in console.api(f"{path}/records?q=value.id%20%3D%3D%207")["rows"]] == [0]
        for search in ('"ada"', 'value.email == "ada@example.com"', 'key == "ada@example.com"', 'headers.token contains "ada"'):
            assert console.api(f"{path}/records?q={quote(search)}")["rows"] == [], search
        for place in ("/records", "/records?value=hex", "/records/0/0", "/records/0/1?value=base64", "/letters"):
            for answer in (console.get(path + place), console.get(f"/api{path}{place}")):
                assert answer.status == 200, answer.text
                assert secret.encode() not in answer.data
                assert secret.encode().hex(" ").encode() not in answer.data
        for kind in ("jsonl", "csv"):
            found = console.get(f"{path}/records/download?format={kind}")
            assert found.status == 200
            assert b"kept" in found.data
            assert secret.encode() not in found.data
        refused = console.post(f"{path}/records/0/0/resend", {"target": "elsewhere"})
        assert refused.status == 403
        assert console.post(f"{path}/records/0/0/resend", {"target": topic}).status == 303
        assert console.get("/sql").status == 404
    with Consumer(broker.bootstrap_servers) as consumer:
        consumer.assign([(topic, 0)])
        consumer.seek_to_beginning()
        records = [record.value for record in (consumer.poll(timeout=30) or [])]
    assert records[-1] == value  # sent again as it is, and not as it was shown


@dataclass
class Customer:
    id: int
    email: str


def test_avro_is_masked_by_the_same_paths_also_live(broker: Broker) -> None:
    topic, secret, url = "orders-avro", "ada@example.com", broker.schema_registry_url
    broker.create_topic(topic)
    masking = Masking(MASKED, b"secret")
    with (
        Producer(broker.bootstrap_servers, value_serializer=AvroSerializer(url, Customer)) as producer,
        running_console(broker.bootstrap_servers, registry_url=url, masking=masking) as console,
    ):
        producer.send(topic, Customer(7, secret)).result(30)
        (row,) = console.api(f"/topics/{topic}/records")["rows"]
        assert json.loads(row["value"]["text"]) == {"id": 7, "email": HIDDEN}
        assert len(console.api(f"/topics/{topic}/records?q=value.id%20%3D%3D%207")["rows"]) == 1
        assert console.api(f"/topics/{topic}/records?q={quote(secret.join(chr(34) * 2))}")["rows"] == []
        with closing(console.events(f"/topics/{topic}/records/tail")) as events:
            for name, data, _ in events:
                assert secret not in json.dumps(data)
                if name == "rows":
                    break
                producer.send(topic, Customer(8, secret)).result(30)
            assert HIDDEN in json.dumps(data, ensure_ascii=False)
    with running_console(broker.bootstrap_servers, masking=masking) as console:  # without the registry it cannot be read
        assert {each["value"]["text"] for each in console.api(f"/topics/{topic}/records")["rows"]} == {HIDDEN}


def audited(broker: Broker, topic: str) -> list[dict[str, Any]]:
    with Consumer(broker.bootstrap_servers) as consumer:
        consumer.assign([(topic, 0)])
        consumer.seek_to_beginning()
        return [json.loads(record.value) for record in (consumer.poll(timeout=30) or [])]


def test_every_change_is_recorded_before_and_after(broker: Broker) -> None:
    access = ProxyLogin("X-User", "X-Groups", LOOPBACK, ROLES)
    with running_console(broker.bootstrap_servers, access=access, audit_topic="audit") as anybody:
        console = as_user(anybody, "ada", "admins")
        console.post("/topics/create", {"name": "audited"})
        console.post("/topics/audited/delete", {"confirm": "not its name"})
        console.post("/users/set", {"name": "bob", "password": "hunter2"})
        as_user(anybody, "bob", "staff").post("/topics/create", {"name": "not-allowed"})
    asked, done, asked_again, failed, *user = audited(broker, "audit")
    assert (asked["phase"], done["phase"], done["outcome"]) == ("asked", "done", "Topic audited was created.")
    assert asked["id"] == done["id"] != asked_again["id"]
    assert (asked["user"], asked["groups"], asked["address"], asked["cluster"]) == ("ada", ["admins"], "127.0.0.1", "test")
    assert (asked["change"], asked["form"]) == ("/topics/create", [["name", "audited"]])
    assert failed["phase"] == "failed"
    assert "nothing was changed" in failed["outcome"]
    assert [each["phase"] for each in user] == ["asked", "done"]
    assert "hunter2" not in json.dumps(user)


def test_nothing_is_changed_if_it_cannot_be_recorded(broker: Broker) -> None:
    with running_console(broker.bootstrap_servers, audit_topic="no topic has this name") as console:
        answer = console.post("/topics/create", {"name": "not-recorded"})
        assert answer.status == 502
        assert "nothing was changed: the audit topic" in answer.text
        assert console.get("/topics/not-recorded").status == 404
