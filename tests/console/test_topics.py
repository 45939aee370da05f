"""The topics pages, without a browser: list, one topic, changes with their confirmation."""

import pytest
from tests.support.servers.console_server import RunningConsole, running_console

from ottla import Consumer, Producer
from ottla.testing import Broker


def test_list_has_sizes_records_and_lag(broker: Broker) -> None:
    broker.create_topic("listed", partitions=2)
    with Producer(broker.bootstrap_servers) as producer:
        for number in range(10):
            producer.send("listed", b"x" * 100, partition=number % 2)
    with Consumer(broker.bootstrap_servers, group_id="listing", auto_offset_reset="earliest") as consumer:
        consumer.subscribe(["listed"])
        seen = 0
        while seen < 10:
            seen += len(consumer.poll(timeout=30))
        consumer.commit()
    with Producer(broker.bootstrap_servers) as producer:
        for _ in range(3):
            producer.send("listed", b"y", partition=0)
    with running_console(broker.bootstrap_servers) as fresh:  # its first look at groups is of now
        for _ in range(100):
            (row,) = fresh.api("/topics?q=listed&order=-lag")["rows"]
            if row["records"] == 13 and row["size"] and row["lag"] == 3:
                break
            fresh.api("/groups")  # waits for that look
        else:
            raise AssertionError(row)
        page = fresh.api("/topics/listed")
    assert [(each["name"], each["lag"]) for each in page["readers"]] == [("listing", 3)]
    assert all(each["replicas"][0]["disk"]["path"] for each in page["partitions"])


def test_search_order_and_pages_of_the_list(console: RunningConsole, broker: Broker) -> None:
    for number in range(120):
        broker.create_topic(f"many-{number:03}")
    console.post("/topics/many-000/settings", {"setting": "retention.ms", "value": "-1"})  # a change: the list is new
    found = console.api("/topics?q=MANY-")
    assert (found["table"]["matching"], found["table"]["pages"], len(found["rows"])) == (120, 2, 100)
    assert [each["name"] for each in console.api("/topics?q=many-&page=2")["rows"]] == [f"many-{n:03}" for n in range(100, 120)]
    assert console.api("/topics?q=many-&order=-name")["rows"][0]["name"] == "many-119"
    assert console.api("/topics?q=many-&page=99")["table"]["page"] == 2
    assert "No topic matches." in console.get("/topics?q=nothing-like-this").text


@pytest.mark.parametrize("action", ["delete", "purge"])
def test_what_destroys_needs_the_name(console: RunningConsole, broker: Broker, action: str) -> None:
    name = f"confirmed-{action}"
    broker.create_topic(name)
    with Producer(broker.bootstrap_servers) as producer:
        producer.send(name, b"x")
    answer = console.post(f"/topics/{name}/{action}", {"confirm": "confirmed"})
    assert (answer.status, "nothing was changed" in answer.text) == (400, True)
    assert len(broker.records(name)) == 1
    assert console.post(f"/topics/{name}/{action}", {"confirm": name}).status == 303
    if action == "delete":
        assert console.get(f"/topics/{name}").status == 404
    else:
        assert console.api(f"/topics/{name}/records")["total"] == 0


def test_topic_with_settings_is_made_changed_and_cloned(console: RunningConsole) -> None:
    form = {"name": "first", "partitions": "3", "replication_factor": "1", "settings": "cleanup.policy = compact\n"}
    assert console.post("/topics/create", form).status == 303
    assert console.post("/topics/first/settings", {"setting": "retention.ms", "value": "12345"}).status == 303
    assert console.post("/topics/first/clone", {"target": "second"}).status == 303
    own = {each["name"]: each["value"] for each in console.api("/topics/second")["settings"] if not each["is_default"]}
    assert own == {"cleanup.policy": "compact", "retention.ms": "12345"}
    assert all(each["documentation"] for each in console.api("/topics/second")["settings"])
    console.post("/topics/second/settings", {"setting": "retention.ms", "reset": "1"})
    settings = {each["name"]: each for each in console.api("/topics/second")["settings"]}
    assert settings["retention.ms"]["is_default"]


@pytest.mark.parametrize(
    ("path", "form", "why"),
    [
        ("/topics/create", {"name": "a b"}, "a b"),
        ("/topics/create", {"name": "ok", "partitions": "x"}, "whole number"),
        ("/topics/create", {"name": "ok", "settings": "cleanup.policy"}, "has no value: write name=value"),
        ("/topics/create", {"name": "ok", "settings": "no.such=1"}, "no.such"),
        ("/topics/none/partitions", {"total": "4"}, "none"),
    ],
)
def test_change_that_is_not_possible_says_why(console: RunningConsole, path: str, form: dict[str, str], why: str) -> None:
    answer = console.post(path, form)
    assert answer.status in (400, 404, 502)
    assert why in answer.text
