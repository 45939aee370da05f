"""Sending from the console: one record, many, copies, dead letters; and downloads, which can be sent again."""

import contextlib
import csv
import importlib.util
import io
import json

import pyarrow.parquet
import pytest
from tests.console.test_records import address, orders
from tests.support.servers.console_server import RunningConsole

from ottla import Producer
from ottla.errors import TopicExistsError
from ottla.testing import Broker

MULTIPART = "multipart/form-data; boundary=XX"


def test_one_record_is_sent_as_it_was_typed(console: RunningConsole, broker: Broker) -> None:
    broker.create_topic("typed", partitions=3)
    form = {
        "key": "258",
        "key_form": "int32",
        "value": '{"a": 1}\r\n',
        "value_form": "json",
        "headers": "source: shop\r\nempty:",
        "partition": "2",
    }
    answer = console.post("/topics/typed/send", form)
    assert (answer.status, answer.headers["location"].partition("?")[0]) == (303, "/topics/typed/records/2/0")
    (record,) = broker.records("typed")
    assert (record.key, record.value, record.partition) == (b"\0\0\1\2", b'{"a": 1}\n', 2)
    assert list(record.headers) == [("source", b"shop"), ("empty", b"")]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"value": "{", "value_form": "json"}, "the value is no json"),
        ({"key": "x", "key_form": "int64"}, "the key is no int64"),
        ({"headers": "nothing"}, "has no colon"),
        ({"partition": "7"}, "partition 7 of refusing does not exist: the topic has 1"),
        ({"csrf": "stale"}, "the form is too old"),
    ],
)
def test_record_that_cannot_be_sent_says_why(console: RunningConsole, broker: Broker, change: dict[str, str], why: str) -> None:
    with contextlib.suppress(TopicExistsError):
        broker.create_topic("refusing")
    form = {"key": "", "value": "v", "value_form": "text", **change}
    if "csrf" in form:
        answer = console.raw("/topics/refusing/send", b"csrf=stale&value=v")
    else:
        answer = console.post("/topics/refusing/send", form)
    assert answer.status in (400, 403, 502)
    assert why in answer.text
    assert console.api("/topics/refusing/records")["total"] == 0


def test_lines_of_a_download_can_be_sent_again(console: RunningConsole, broker: Broker) -> None:
    broker.create_topic("source", partitions=2)
    broker.create_topic("copy", partitions=2)
    rows = [
        (b"k", b'{"a":[1,"x"]}', [("h", b"v"), ("raw", b"\xff\0"), ("null", None)]),
        (None, b'text, with "quotes"\nand lines', []),
        (b"\0\0\0\1", b"\xff\xfe", []),
        (b"tombstone", None, []),
        ("ключ".encode(), b"", []),
    ]
    with Producer(broker.bootstrap_servers) as producer:
        for number, (key, value, headers) in enumerate(rows):
            producer.send("source", value, key, headers=headers, partition=number % 2)
    lines = console.get("/topics/source/records/download").data
    boundary = b"--XX\r\nContent-Disposition: form-data; name="
    fields = {b"kind": b"jsonl", b"keep": b"1", b"csrf": console.token().encode()}
    body = b"".join(boundary + b'"' + name + b'"\r\n\r\n' + value + b"\r\n" for name, value in fields.items())
    body += boundary + b'"file"; filename="a.jsonl"\r\nContent-Type: text/plain\r\n\r\n' + lines + b"\r\n--XX--\r\n"
    answer = console.raw("/topics/copy/send-many", body, **{"Content-Type": MULTIPART})
    assert answer.status == 303, answer.text

    def parts(topic: str) -> list[tuple[object, ...]]:
        return sorted((each.partition, each.offset, each.key, each.value, list(each.headers)) for each in broker.records(topic))

    assert parts("copy") == parts("source")


def test_wrong_line_is_named_and_nothing_is_sent(console: RunningConsole, broker: Broker) -> None:
    broker.create_topic("lines")
    answer = console.post("/topics/lines/send-many", {"kind": "jsonl", "lines": '{"value": "a"}\n\n{"value": '})
    assert answer.status == 400
    assert "nothing was sent: line 3:" in answer.text
    assert console.post("/topics/lines/send-many", {"kind": "text", "lines": "a\r\nb\r\n"}).status == 303
    assert [each.value for each in broker.records("lines")] == [b"a", b"b"]


def test_record_is_sent_again_to_another_topic(console: RunningConsole, broker: Broker) -> None:
    broker.create_topic("again")
    broker.create_topic("elsewhere")
    with Producer(broker.bootstrap_servers) as producer:
        producer.send("again", b"\xff\0", b"\xfe", headers=[("h", b"\xff")])
    answer = console.post("/topics/again/records/0/0/resend", {"target": "elsewhere"})
    assert answer.status == 303
    (record,) = broker.records("elsewhere")
    assert (record.key, record.value, list(record.headers)) == (b"\xfe", b"\xff\0", [("h", b"\xff")])
    filled = console.api("/topics/again/send?copy=0:0")["filled"]
    assert (filled["key_form"], filled["key"], filled["value"]) == ("hex", "fe", "ff 00")
    assert json.loads(filled["headers"]) == [{"name": "h", "hex": "ff"}]


def test_dead_letters_go_back_after_a_dry_run(console: RunningConsole, broker: Broker) -> None:
    for topic in ("origin", "dead"):
        broker.create_topic(topic, partitions=2)
    with Producer(broker.bootstrap_servers) as producer:
        for number in range(10):
            origin = b"gone" if number == 9 else b"origin"
            headers = [
                ("own", b"1"),
                ("__connect.errors.topic", origin),
                ("__connect.errors.partition", b"1"),
                ("__connect.errors.exception.class.name", b"KeyError" if number % 2 else b"TimeoutError"),
            ]
            producer.send("dead", f"v{number}".encode(), headers=headers, partition=number % 2)
        producer.send("dead", b"no letter", partition=0)
    dry = console.api("/topics/dead/letters")
    assert (dry["seen"], dry["ready"], dry["without_origin"]) == (11, 9, 1)
    assert dry["origins"] == [{"topic": "origin", "count": 9, "exists": True}, {"topic": "gone", "count": 1, "exists": False}]
    assert {each["name"]: each["count"] for each in dry["errors"]} == {"KeyError": 5, "TimeoutError": 5}
    assert broker.records("origin") == []
    with Producer(broker.bootstrap_servers) as producer:  # after the dry run: it stays
        producer.send("dead", b"late", headers=[("__connect.errors.topic", b"origin")], partition=0).result(timeout=30)
    q = 'headers["__connect.errors.exception.class.name"] == "TimeoutError"'
    console.post("/topics/dead/letters", {"ends": dry["ends"], "q": q})
    assert {each.value for each in broker.records("origin")} == {b"v0", b"v2", b"v4", b"v6", b"v8"}
    assert {each.partition for each in broker.records("origin")} == {1}
    answer = console.post("/topics/dead/letters", {"ends": dry["ends"], "delete": "1"})
    assert "9+letters+were+sent+back%3B+2+stay+here" in answer.headers["location"]
    assert console.api("/topics/dead/records")["total"] == 12


def test_letters_that_were_all_sent_back_are_deleted_on_request(console: RunningConsole, broker: Broker) -> None:
    broker.create_topic("back")
    broker.create_topic("back.dead")
    with Producer(broker.bootstrap_servers) as producer:
        for number in range(3):
            producer.send("back.dead", f"{number}".encode(), headers=[("__connect.errors.topic", b"back")])
    ends = console.api("/topics/back.dead/letters")["ends"]
    assert console.post("/topics/back.dead/letters", {"ends": ends, "delete": "1"}).status == 303
    assert [each.value for each in broker.records("back")] == [b"0", b"1", b"2"]
    assert console.api("/topics/back.dead/records")["total"] == 0


def test_downloads_are_whole(console: RunningConsole, broker: Broker) -> None:
    orders(broker, "whole", count=3_000, partitions=3)
    lines = [json.loads(line) for line in console.get("/topics/whole/records/download?format=jsonl").text.splitlines()]
    assert sorted(each["value"]["total"] for each in lines) == list(range(3_000))
    answer = console.get(address("whole", "/download", format="csv", q="value.total < 10", **{"from": "oldest"}))
    assert answer.headers["content-disposition"] == 'attachment; filename="whole.csv"'
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert sorted(json.loads(each["value"])["total"] for each in rows) == list(range(10))
    table = pyarrow.parquet.read_table(io.BytesIO(console.get("/topics/whole/records/download?format=parquet").data))
    assert sorted(json.loads(each)["total"] for each in table["value"].to_pylist()) == list(range(3_000))
    assert table["headers"].to_pylist()[0][0]["name"] == "source"


def test_cells_of_a_csv_are_no_formulas(console: RunningConsole, broker: Broker) -> None:
    broker.create_topic("formulas")
    with Producer(broker.bootstrap_servers) as producer:
        for value in (b"=HYPERLINK(1)", b"-12.5", b"@x"):
            producer.send("formulas", value, partition=0)
    rows = csv.DictReader(io.StringIO(console.get("/topics/formulas/records/download?format=csv").text))
    assert [each["value"] for each in rows] == ["'=HYPERLINK(1)", "-12.5", "'@x"]


def test_parquet_without_pyarrow_is_a_sentence(
    console: RunningConsole, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.create_topic("no-arrow")
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "pyarrow" else found(name, *rest))
    answer = console.get("/topics/no-arrow/records/download?format=parquet")
    assert answer.status == 400
    assert "pip install" in answer.text
