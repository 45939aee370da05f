"""Formatters: Kafka's lines, and JSON."""

import json

import click
import pytest

from ottla.cli.consume.formatters import BadData, CannotShow, Consumed, find_formatter
from ottla.ids import TopicPartition
from ottla.records.record import Record

WHERE = TopicPartition("orders", 2)
RECORDS = [
    Record(10, 1700, b"k", b"v", (("h", b"1"), ("i", None))),
    Record(11, 1701, None, None),
]


def output(properties: dict[str, str], name: str = "default", records: list[Record] = RECORDS, epoch: int = 4) -> bytes:
    return find_formatter(name, properties).format(WHERE, Consumed(records, "CreateTime", epoch))


ALL = {f"print.{part}": "true" for part in ("timestamp", "partition", "offset", "epoch", "headers", "key")}


@pytest.mark.parametrize(
    ("properties", "text"),
    [
        ({}, b"v\nnull\n"),
        ({"print.key": "true"}, b"k\tv\nnull\tnull\n"),
        ({"print.key": " TRUE ", "print.value": "false"}, b"k\nnull\n"),
        ({"print.value": "false"}, b""),
        ({"null.literal": "-", "line.separator": "|"}, b"v|-|"),
        (
            ALL,
            (
                b"CreateTime:1700\tPartition:2\tOffset:10\tEpoch:4\th:1,i:null\tk\tv\n"
                b"CreateTime:1701\tPartition:2\tOffset:11\tEpoch:4\tNO_HEADERS\tnull\tnull\n"
            ),
        ),
        ({"print.headers": "true", "headers.separator": ";", "key.separator": "="}, b"h:1;i:null=v\nNO_HEADERS=null\n"),
        ({"value.deserializer": "hex"}, b"76\nnull\n"),
        ({"print.headers": "true", "header.deserializer": "hex"}, b"h:31,i:null\tv\nNO_HEADERS\tnull\n"),
        ({"print.delivery": "true"}, b"Delivery:NOT_PRESENT\tv\nDelivery:NOT_PRESENT\tnull\n"),
        ({"value.deserializer.some.setting": "x"}, b"v\nnull\n"),
    ],
)
def test_properties_choose_the_parts_of_a_line(properties: dict[str, str], text: bytes) -> None:
    assert output(properties) == text


def test_unknown_epoch_is_not_present() -> None:
    assert output({"print.epoch": "true"}, epoch=-1).startswith(b"Epoch:NOT_PRESENT")


@pytest.mark.parametrize("prefix", ["", "kafka.tools.", "org.apache.kafka.tools.consumer."])
def test_formatters_are_found_by_kafkas_class_names(prefix: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert output({}, f"{prefix}DefaultMessageFormatter") == b"v\nnull\n"
    assert output({}, f"{prefix}NoOpMessageFormatter") == b""
    assert output({}, f"{prefix}LoggingMessageFormatter") == b"v\nnull\n"
    assert capsys.readouterr().err == "CreateTime:1700, key:k, value:v\nCreateTime:1701, key:null, value:null\n"


def test_json() -> None:
    records = [*RECORDS, Record(12, 1702, b"\xff", b"\0\0\0\7")]
    lines = [json.loads(line) for line in output({}, "json", records).splitlines()]
    assert lines[0] == {
        "topic": "orders",
        "partition": 2,
        "offset": 10,
        "timestamp": 1700,
        "timestampType": "CreateTime",
        "leaderEpoch": 4,
        "headers": [{"name": "h", "value": "1"}, {"name": "i", "value": None}],
        "key": "k",
        "value": "v",
    }
    assert (lines[1]["key"], lines[1]["value"]) == (None, None)
    assert lines[2]["key_base64"] == "/w=="
    (numbered,) = output({"value.deserializer": "integer"}, "json", records[2:]).splitlines()
    assert json.loads(numbered)["value"] == 7


def test_record_that_cannot_be_shown_is_named_or_skipped() -> None:
    with pytest.raises(
        BadData, match="the record at offset 10 of partition orders-2 cannot be shown: 1 byte cannot be integer, which has 4"
    ):
        output({"value.deserializer": "integer"})
    for name in ("default", "json"):
        formatter = find_formatter(name, {"value.deserializer": "integer"}, skip_bad=True)
        assert formatter.format(WHERE, Consumed(RECORDS[:1], "CreateTime", 0)) == b""


@pytest.mark.parametrize("name", ["default", "json"])
def test_records_before_one_that_cannot_be_shown_are_printed(name: str) -> None:
    good, bad = Record(10, 1700, None, b"\0\0\0\7"), Record(11, 1700, None, b"x")
    alone = output({"value.deserializer": "integer"}, name, [good])
    with pytest.raises(CannotShow, match="offset 11") as refused:
        output({"value.deserializer": "integer"}, name, [good, bad, good])
    assert (refused.value.before, refused.value.records) == (alone, 2)


def test_unknown_formatters_and_properties_are_refused() -> None:
    with pytest.raises(click.UsageError, match="there is no formatter"):
        find_formatter("com.example.Formatter", {})
    with pytest.raises(click.UsageError, match=r"the formatter has no property print\.keys"):
        find_formatter("default", {"print.keys": "true"})
