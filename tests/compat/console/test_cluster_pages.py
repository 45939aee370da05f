"""The console's pages about the cluster itself: transactions, nodes, settings, quorum, moves, access without an authorizer."""

import json
from collections.abc import Callable
from urllib.parse import quote

import pytest
from tests.support.servers.console_server import RunningConsole, eventually
from tests.support.servers.kafka_server import KafkaServer

from ottla import Admin, Producer

NewName = Callable[[str], str]
HOSTILE = "<script>alert(1)</script>\"'&"

PAGES = (
    "/",
    "/topics",
    "/groups",
    "/transactions",
    "/transactions?open=1",
    "/hanging-transactions",
    "/hanging-transactions?topic=",
    "/nodes",
    "/nodes/all",
    "/nodes/all?all=1",
    "/quorum",
    "/log-dirs",
    "/reassignments",
    "/reassignments/plan",
    "/reassignments/plan?brokers=",
    "/acls",
    "/users",
    "/quotas",
    "/tokens",
    "/pipelines",
)


@pytest.mark.parametrize("path", PAGES)
def test_every_page_is_there_as_html_and_json(console: RunningConsole, cluster: KafkaServer, path: str) -> None:
    page = console.page(path)
    assert "<h1>" in page
    assert isinstance(console.api(path), dict)


def test_open_transaction_is_shown_and_aborted(console: RunningConsole, cluster: KafkaServer, new_name: NewName) -> None:
    name, topic = new_name("transactional") + HOSTILE, new_name("topic")
    path = f"/transactions/{quote(name, safe='')}"
    with Admin(cluster.bootstrap) as admin:
        admin.create_topics({topic: 1})
    producer = Producer(cluster.bootstrap, transactional_id=name)
    try:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"v").result(30)
        (row,) = [each for each in console.api("/transactions?open=1")["rows"] if each["name"] == name]
        assert (row["state"], row["partitions"]) == ("Ongoing", 1)
        assert row["age_s"] < 60
        assert "<script>alert" not in console.page("/transactions?open=1")
        assert "<script>alert" not in console.page(path)
        assert console.api(path)["partitions"] == [{"topic": topic, "partition": 0}]
        assert console.post(f"{path}/abort", {"confirm": "something else"}).status == 400
        assert "was aborted" in console.done(f"{path}/abort", {"confirm": name})
        assert console.api(path)["is_open"] is False
    finally:
        producer.close(0)
    assert console.get("/transactions/no-such-id").status == 404


def test_settings_of_a_broker_are_set_and_taken_back(console: RunningConsole, cluster: KafkaServer) -> None:
    (node,) = [each["id"] for each in console.api("/nodes")["rows"]]
    path, name = f"/nodes/{node}", "log.cleaner.threads"

    def value() -> tuple[str, str]:
        (row,) = [each for each in console.api(f"{path}?all=1")["rows"] if each["name"] == name]
        assert row["documentation"]
        return row["value"], row["source"]

    before = value()
    console.done(f"{path}/settings", {"setting": name, "value": "2"})
    eventually(value, lambda found: found == ("2", "set for this broker"))
    console.page(path)
    console.done(f"{path}/settings", {"setting": name, "reset": "1"})
    eventually(value, lambda found: found == before)
    refused = console.post(f"{path}/settings", {"setting": name, "value": HOSTILE})
    assert refused.status == 502
    assert "<script>alert" not in refused.text


def test_what_is_not_default_comes_first(console: RunningConsole, cluster: KafkaServer) -> None:
    (node,) = [each["id"] for each in console.api("/nodes")["rows"]]
    shown = console.api(f"/nodes/{node}")
    assert {"offsets.topic.num.partitions"} <= {each["name"] for each in shown["rows"]}
    assert all(not each["is_default"] for each in shown["rows"])
    assert len(shown["rows"]) < shown["total"]
    assert {each["name"] for each in console.api(f"/nodes/{node}?q=log.cleaner")["rows"]} >= {"log.cleaner.threads"}


def test_quorum_and_directories(console: RunningConsole, cluster: KafkaServer) -> None:
    quorum = console.api("/quorum")
    (row,) = quorum["rows"]
    assert (row["role"], row["lag"], quorum["problems"]) == ("leader", 0, [])
    (directory,) = console.api("/log-dirs")["rows"]
    assert directory["error"] is None
    assert directory["usable"] > 0


def test_cluster_without_authorizer_says_so(console: RunningConsole, cluster: KafkaServer) -> None:
    assert console.api("/acls")["absent"].startswith("This cluster has no authorizer")
    assert "This cluster has no authorizer" in console.page("/acls")
    assert console.api("/tokens")["absent"]


def test_users_and_quotas_are_set_and_removed(console: RunningConsole, cluster: KafkaServer, new_name: NewName) -> None:
    name = new_name("user") + HOSTILE
    console.done("/users/set", {"name": name, "password": "s3cret", "mechanism": "SCRAM-SHA-256", "iterations": "4096"})
    (row,) = eventually(lambda: [each for each in console.api("/users")["rows"] if each["name"] == name], bool)
    assert row["credentials"] == [{"mechanism": "SCRAM-SHA-256", "iterations": 4096}]
    assert "<script>alert" not in console.page("/users")
    console.done("/quotas/set", {"user": name, "client_id": "<default>", "quota": "producer_byte_rate", "limit": "1048576"})
    (quota,) = eventually(lambda: [each for each in console.api("/quotas")["rows"] if each["user"] == name], bool)
    assert quota["limits"] == {"producer_byte_rate": 1048576.0}
    assert quota["text"] == f"user {name}, every other client"
    assert "<script>alert" not in console.page("/quotas")
    console.done("/quotas/remove", {"user": name, "client_id": "<default>", "quota": "producer_byte_rate"})
    console.done("/users/delete", {"name": name, "mechanism": "SCRAM-SHA-256"})
    eventually(lambda: {each["name"] for each in console.api("/users")["rows"]}, lambda found: name not in found)
    eventually(lambda: {each["user"] for each in console.api("/quotas")["rows"]}, lambda found: name not in found)


def test_json_bodies_are_forms_with_lists_and_flags(console: RunningConsole, cluster: KafkaServer, new_name: NewName) -> None:
    group, other, topic = new_name("group"), new_name("group"), new_name("topic")
    with Admin(cluster.bootstrap) as admin:
        admin.create_topics({topic: 2})
        admin.alter_consumer_group_offsets(group, {(topic, 0): 0, (topic, 1): 0}).raise_first()

        def send(path: str, body: object) -> int:
            data = json.dumps(body).encode()
            headers = {"Content-Type": "application/json", "X-CSRF-Token": console.token()}
            return console.raw(f"/api/groups/{group}{path}", data, **headers).status

        assert send("/move", {"target": other, "delete_source": False, "topic": [topic]}) == 200
        assert admin.list_consumer_group_offsets([group])[group], "false is not true"
        assert send("/delete-offsets", {"topic": [f"{topic}:0", f"{topic}:1"]}) == 200
        assert not admin.list_consumer_group_offsets([group])[group]
        assert send("/move", [1]) == 400
        assert console.raw(f"/api/groups/{group}/move", b"{", **{"Content-Type": "application/json"}).status == 400


@pytest.mark.parametrize(
    ("path", "form", "text"),
    [
        ("/users/set", {"name": "a", "password": ""}, "the password is empty"),
        ("/users/set", {"name": "a", "password": "b", "mechanism": "PLAIN"}, "the mechanism is"),
        ("/quotas/set", {"quota": "producer_byte_rate", "limit": "1"}, "name a user"),
        ("/quotas/set", {"user": "a", "quota": "speed", "limit": "1"}, "is no quota"),
        ("/quotas/set", {"user": "a", "quota": "producer_byte_rate", "limit": "fast"}, "must be a number"),
        ("/reassignments/start", {"plan": "{}"}, "the plan must look like"),
        ("/reassignments/start", {"plan": '{"partitions": []}'}, "there is nothing to move"),
        ("/acls/add", {"principal": ""}, "is missing"),
    ],
)
def test_mistakes_in_forms_say_what_to_write(
    console: RunningConsole, cluster: KafkaServer, path: str, form: dict[str, str], text: str
) -> None:
    answer = console.post(f"/api{path}", form)
    assert answer.status == 400
    assert text in answer.json()["error"]
