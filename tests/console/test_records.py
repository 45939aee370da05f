"""The records pages, without a browser: places, searches, live tails."""

import json
import threading
import time
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from tests.support.servers.console_server import RunningConsole, running_console

from ottla import Producer
from ottla.testing import Broker, Cluster


def address(topic: str, end: str = "", **query: object) -> str:
    return f"/topics/{quote(topic, safe='')}/records{end}?{urlencode({name: str(each) for name, each in query.items()})}"


def orders(broker: Broker, topic: str, count: int = 100, partitions: int = 2, first_ms: int = 1_000_000) -> None:
    """Records with `total` from 0 on, in turn on the partitions."""
    broker.create_topic(topic, partitions, {"retention.ms": -1})  # the timestamps are of 1970
    with Producer(broker.bootstrap_servers) as producer:
        for number in range(count):
            value = {"order": {"id": f"o-{number}", "items": [{"sku": f"s{number % 3}"}]}, "total": number}
            headers = [("source", b"shop" if number % 2 else b"web")]
            producer.send(
                topic,
                json.dumps(value).encode(),
                f"k{number % 10}".encode(),
                partition=number % partitions,
                headers=headers,
                timestamp=first_ms + number,
            )


@pytest.fixture(scope="module")
def topic(broker: Broker) -> str:
    orders(broker, "orders")
    return "orders"


def offsets(found: Any) -> list[tuple[int, int]]:
    return [(each["partition"], each["offset"]) for each in found["rows"]]


def test_newest_records_come_first(console: RunningConsole, topic: str) -> None:
    found = console.api(address(topic, limit=3))
    assert [each["timestamp"] for each in found["rows"]] == [1_000_099, 1_000_098, 1_000_097]
    assert found["total"] == 100


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"from": "oldest", "limit": 3}, [(0, 0), (1, 0), (0, 1)]),
        ({"from": "oldest", "partition": 1, "limit": 2}, [(1, 0), (1, 1)]),
        ({"from": "offset", "offset": 49}, [(0, 49), (1, 49)]),
        ({"from": "time", "time": 1_000_098}, [(0, 49), (1, 49)]),
        ({"from": "time", "time": "1970-01-01T00:16:40.098"}, [(0, 49), (1, 49)]),
    ],
)
def test_records_from_a_place(
    console: RunningConsole, topic: str, query: dict[str, object], expected: list[tuple[int, int]]
) -> None:
    assert offsets(console.api(address(topic, **query))) == expected


@pytest.mark.parametrize("place", ["newest", "oldest"])
@pytest.mark.parametrize(
    ("expression", "totals"),
    [
        ("value.total > 97", {98, 99}),
        ('value.order.id == "o-42"', {42}),
        ('value.order.items[*].sku == "s1" and value.total < 6', {1, 4}),
        ('key == "k7" and value.total <= 20', {7, 17}),
        ('headers.source == "shop" and value.total < 4', {1, 3}),
        ("offset == 3", {6, 7}),
        ('value matches "o-9[89]"', {98, 99}),
        ('"o-55"', {55}),
        ("value == null", set()),
    ],
)
def test_search_finds_what_the_expression_says(
    console: RunningConsole, topic: str, expression: str, totals: set[int], place: str
) -> None:
    found = console.api(address(topic, q=expression, **{"from": place}))
    assert {each["timestamp"] - 1_000_000 for each in found["rows"]} == totals
    assert found["searched"] == found["searched_of"] == 100
    assert not found["is_unfinished"]


@pytest.mark.parametrize("place", ["newest", "oldest"])
def test_pages_follow_each_other_without_gaps(console: RunningConsole, topic: str, place: str) -> None:
    seen, at = [], ""
    for _ in range(50):
        found = console.api(address(topic, q="offset >= 0", limit=7, at=at, **{"from": place}))
        seen += offsets(found)
        at = found["next_at"]
        if at is None:
            break
    assert sorted(seen) == [(partition, offset) for partition in (0, 1) for offset in range(50)]


@pytest.mark.parametrize("place", ["newest", "oldest"])
def test_large_records_come_a_few_at_a_time(console: RunningConsole, broker: Broker, place: str) -> None:
    name = f"heavy-{place}"
    broker.create_topic(name, partitions=2)
    with Producer(broker.bootstrap_servers) as producer:
        for number in range(30):
            producer.send(name, b"x" * 900_000, partition=number % 2)
    seen, at, most = set(), "", 0
    for _ in range(50):
        found = console.api(address(name, limit=100, at=at, **{"from": place}))
        most = max(most, len(found["rows"]))
        seen |= set(offsets(found))
        at = found["next_at"]
        if at is None:
            break
    assert seen == {(partition, offset) for partition in (0, 1) for offset in range(15)}
    assert most < 25


def test_many_partitions_are_read_within_the_time_of_a_page(console: RunningConsole, broker: Broker) -> None:
    broker.create_topic("wide", partitions=300)
    now_ms = int(time.time() * 1000)
    with Producer(broker.bootstrap_servers) as producer:
        for number in range(900):
            producer.send("wide", str(number).encode(), partition=number % 300, timestamp=now_ms - 1_000 + number)
    rows = console.api(address("wide", limit=5))["rows"]
    assert [each["value"]["text"] for each in rows] == ["899", "898", "897", "896", "895"]
    found = console.api(address("wide", q='"17"', **{"from": "oldest"}))
    assert "17" in {each["value"]["text"] for each in found["rows"]}


def test_error_in_an_expression_names_its_column(console: RunningConsole, topic: str) -> None:
    for path in ("/api" + address(topic, q="value.total >"), address(topic, "/search", q="value.total >")):
        answer = console.get(path)
        assert answer.status == 400
        assert "column 14: expected a value after" in answer.text
    page = console.get(address(topic, q="value.total >"))
    assert page.status == 200
    assert "column 14" in page.text


def test_search_streams_rows_and_progress(console: RunningConsole, topic: str) -> None:
    events = list(console.events("/api" + address(topic, "/search", q="value.total >= 90", **{"from": "oldest"})))
    rows = [each for name, data, _ in events if name == "rows" for each in data["rows"]]
    assert sorted(each["timestamp"] - 1_000_000 for each in rows) == list(range(90, 100))
    progress = [data for name, data, _ in events if name == "progress"]
    assert progress[-1]["records"] == progress[-1]["of"] == 100
    assert progress[-1]["matched"] == 10
    assert events[-1][0] == "end"


def test_search_stream_stops_at_its_limit(console: RunningConsole, topic: str) -> None:
    events = list(console.events("/api" + address(topic, "/search", q="value.total >= 0", limit=5)))
    assert sum(len(data["rows"]) for name, data, _ in events if name == "rows") == 5


def test_tail_shows_new_records_and_goes_on_after_a_lost_connection(console: RunningConsole, broker: Broker) -> None:
    orders(broker, "tailed", count=10, partitions=1)
    path = "/api" + address("tailed", "/tail")
    stream = console.events(path)
    assert next(stream)[0] == "begin"
    with Producer(broker.bootstrap_servers) as producer:
        producer.send("tailed", b"first").result(timeout=30)
        name, data, place = next(stream)
        assert (name, [each["value"]["text"] for each in data["rows"]], place) == ("rows", ["first"], "0:11")
        stream.close()
        producer.send("tailed", b"missed").result(timeout=30)
        again = console.events(path, {"Last-Event-ID": place})
        assert next(again)[0] == "begin"
        assert [each["value"]["text"] for each in next(again)[1]["rows"]] == ["missed"]
        again.close()


def test_tail_from_an_offset_shows_everything_in_order(console: RunningConsole, broker: Broker) -> None:
    orders(broker, "replayed", count=70, partitions=1)
    seen: list[int] = []
    for name, data, _ in console.events("/api" + address("replayed", "/tail", offset=5, **{"from": "offset"})):
        seen += [each["offset"] for each in data["rows"]] if name == "rows" else []
        if len(seen) >= 65:
            break
    assert seen == list(range(5, 70))


def test_tail_of_a_fast_topic_is_a_sample_that_says_how_much_it_skipped(console: RunningConsole, broker: Broker) -> None:
    broker.create_topic("fast")
    shown = skipped = 0
    over = threading.Event()

    def produce() -> None:
        with Producer(broker.bootstrap_servers) as producer:
            while not over.is_set():
                producer.send_many("fast", [b"x" * 100] * 5_000)
                producer.flush()

    thread = threading.Thread(target=produce)
    thread.start()
    try:
        for name, data, _ in console.events("/api" + address("fast", "/tail")):
            if name == "rows":
                shown, skipped = shown + len(data["rows"]), skipped + data["skipped"]
                assert len(data["rows"]) <= 20
            if skipped > 20_000:
                break
    finally:
        over.set()
        thread.join()
    assert shown < skipped


@pytest.mark.slow
def test_tail_goes_on_at_a_new_leader() -> None:
    with Cluster(nodes=3) as cluster:
        cluster.create_topic("moved", partitions=1, replication_factor=3)
        with running_console(cluster.bootstrap_servers) as console, Producer(cluster.bootstrap_servers) as producer:
            stream = console.events("/api" + address("moved", "/tail"))
            assert next(stream)[0] == "begin"
            producer.send("moved", b"before").result(timeout=60)
            assert [each["value"]["text"] for each in next(stream)[1]["rows"]] == ["before"]
            cluster.leader("moved").kill()
            producer.send("moved", b"after").result(timeout=60)
            assert [each["value"]["text"] for each in next(stream)[1]["rows"]] == ["after"]
            stream.close()


def test_topic_that_does_not_exist_is_not_found(console: RunningConsole) -> None:
    for end in ("", "/0/0", "/search?q=offset+%3E+1"):
        answer = console.get(f"/topics/no-such-topic/records{end}")
        assert answer.status == (200 if "search" in end else 404)
        assert "no-such-topic" in answer.text


def test_record_is_shown_in_full(console: RunningConsole, topic: str) -> None:
    found = console.api(f"/topics/{topic}/records/1/2")
    assert json.loads(found["record"]["value"]["text"])["total"] == 5
    assert found["record"]["headers"] == [{"name": "source", "value": "shop"}]
    assert found["batch"]["compression"] == "none"
    missing = console.get(f"/topics/{topic}/records/1/2000")
    assert missing.status == 404
    assert "partition 1 has 0 to 49" in missing.text
