"""Pages of groups: lag in records and seconds, status, order, trend; a group with 300 others; hostile names."""

import time
from typing import Any

import pytest
from tests.support.servers.console_server import RunningConsole, running_console

from ottla import Admin, Consumer, Producer
from ottla.testing import Broker

HOSTILE = '<img src=x onerror="alert(1)">'


def fill(broker: Broker, topic: str, groups: dict[str, int], age_s: int = 600) -> None:
    """A topic with 100 records that are `age_s` old, and groups that have read so many."""
    broker.create_topic(topic)
    with Producer(broker.bootstrap_servers) as producer:
        for _ in range(100):
            producer.send(topic, b"x", partition=0, timestamp=int((time.time() - age_s) * 1000))
    with Admin(broker.bootstrap_servers) as admin:
        for group, offset in groups.items():
            admin.alter_consumer_group_offsets(group, {(topic, 0): offset})


def listed(console: RunningConsole, query: str) -> list[Any]:
    """The rows of the list, once all groups were looked at."""
    deadline = time.monotonic() + 60
    while not (found := console.api(f"/groups?{query}"))["is_complete"] or any(
        each["status"] is None for each in found["rows"]
    ):
        assert time.monotonic() < deadline, found
        time.sleep(0.1)
    rows: list[Any] = found["rows"]
    return rows


@pytest.fixture
def fresh(broker: Broker) -> Any:
    """A console that has not looked at any group."""
    with running_console(broker.bootstrap_servers) as running:
        yield running


def test_list_has_lag_status_and_order(broker: Broker, fresh: RunningConsole) -> None:
    fill(broker, "g-lists", {"g-lists-a": 90, "g-lists-b": 0, "g-lists-c": 100})
    rows = listed(fresh, "q=g-lists&order=-lag")
    assert [(each["name"], each["lag"]) for each in rows] == [("g-lists-b", 100), ("g-lists-a", 10), ("g-lists-c", 0)]
    assert 600 <= rows[0]["lag_s"] < 700
    assert rows[2]["lag_s"] == 0
    assert {each["status"] for each in rows} == {"IDLE"}
    assert listed(fresh, "q=g-lists&order=seconds")[0]["name"] == "g-lists-c"
    page = fresh.get("/groups?q=g-lists").text
    assert "10 min" in page
    assert "g-lists-a" in page


def test_first_page_with_many_groups_comes_at_once(broker: Broker, fresh: RunningConsole) -> None:
    fill(broker, "g-many", {f"g-many-{number:03}": number % 100 for number in range(300)})
    began = time.monotonic()
    page = fresh.get("/groups?q=g-many-2")
    assert page.status == 200
    assert time.monotonic() - began < 10
    assert [each["lag"] for each in listed(fresh, "q=g-many-0&order=-lag")][:2] == [100, 99]


def test_page_of_a_group(broker: Broker, console: RunningConsole) -> None:
    fill(broker, "g-page", {"g-page": 90})
    with Consumer(broker.bootstrap_servers, group_id="g-page", enable_auto_commit=False) as consumer:
        consumer.subscribe("g-page")
        assert consumer.poll(60, max_records=1)
        found = console.api("/groups/g-page")
        assert (found["lag"], found["state"], found["lost"], found["error"]) == (10, "Stable", 0, None)
        assert 600 <= found["lag_s"] < 700
        ((row),) = found["rows"]
        assert (row["topic"], row["offset"], row["end"], row["member"]) == ("g-page", 90, 100, "ottla-consumer")
        assert found["history"][-1]["lag"] == 10
        page = console.get("/groups/g-page").text
    assert "records behind" in page
    assert "10 min" in page


def test_group_that_lost_records_says_so(broker: Broker, console: RunningConsole) -> None:
    fill(broker, "g-lost", {"g-lost": 10})
    with Admin(broker.bootstrap_servers) as admin:
        admin.delete_records({("g-lost", 0): 40})
    found = console.api("/groups/g-lost")
    assert (found["lost"], found["lag"]) == (30, 90)
    assert "30 records were deleted before this group has read them" in console.get("/groups/g-lost").text


def test_hostile_names_are_escaped(broker: Broker, console: RunningConsole) -> None:
    fill(broker, "g-hostile", {HOSTILE: 5})
    for path in ("/groups", "/groups/%3Cimg%20src%3Dx%20onerror%3D%22alert(1)%22%3E"):
        page = console.get(path)
        assert page.status == 200, page.text
        assert "<img src=x" not in page.text


def test_group_that_is_not_there(console: RunningConsole) -> None:
    answer = console.get("/groups/absent")
    assert answer.status == 404
    assert "does not exist" in answer.text
