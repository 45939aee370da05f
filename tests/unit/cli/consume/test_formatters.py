"""Formatters: Kafka's lines, and JSON."""

import json
import struct

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.cli.consume.formatters import (
    TIMESTAMP_TYPES,
    BadData,
    CannotShow,
    Consumed,
    as_text,
    find_deserializer,
    find_formatter,
    group_records,
)
from ottla.client.consumer.record import ConsumerRecord
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


JAVA = "org.apache.kafka.common.serialization."


def shown(name: str, data: bytes) -> str:
    deserializer = find_deserializer(name, "value.deserializer")
    assert deserializer is not None
    return as_text(deserializer(data))


@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        ("string", "schön".encode(), "schön"),
        ("string", b"\xff", "\ufffd"),
        ("bytes", b"a\\b\x00\xff ", "a\\x5Cb\\x00\\xFF "),
        ("integer", b"\xff\xff\xff\xfe", "-2"),
        ("long", b"\0\0\0\0\0\0\0\7", "7"),
        ("short", b"\0\7", "7"),
        ("boolean", b"\1", "true"),
        ("uuid", b"01234567-89AB-cdef-0123-456789abcdef", "01234567-89ab-cdef-0123-456789abcdef"),
        ("hex", b"\x00\xff", "00ff"),
        ("base64", b"\x00\xff", "AP8="),
        ("HEX", b"\x0a", "0a"),
        (f"{JAVA}IntegerDeserializer", b"\0\0\0\1", "1"),
        (f"{JAVA}DoubleDeserializer", struct.pack(">d", 0.1), "0.1"),
    ],
)
def test_value_is_shown_as_its_type(name: str, data: bytes, text: str) -> None:
    assert shown(name, data) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (0.001, "0.001"),
        (0.00099, "9.9E-4"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (12345678.9, "1.23456789E7"),
        (-1e300, "-1.0E300"),
        (1.5e-10, "1.5E-10"),
        (123456789012345680.0, "1.2345678901234568E17"),
        (float("inf"), "Infinity"),
        (float("-inf"), "-Infinity"),
        (float("nan"), "NaN"),
    ],
)
def test_numbers_as_java_prints_them(value: float, text: str) -> None:
    assert shown("double", struct.pack(">d", value)) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_doubles_read_back(value: float) -> None:
    assert float(as_text(value)) == value


@given(st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_floats_read_back(value: float) -> None:
    data = struct.pack(">f", value)
    assert struct.pack(">f", float(shown("float", data))) == data


def test_deserializers_are_found_by_short_and_java_names() -> None:
    assert find_deserializer(f"{JAVA}ByteArrayDeserializer", "x") is None
    for name in ("com.example.AvroDeserializer", "nothing"):
        with pytest.raises(click.UsageError, match=r"value\.deserializer: there is no deserializer"):
            find_deserializer(name, "value.deserializer")


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 2)), min_size=1, max_size=20))
def test_groups_share_what_is_printed_once(shared: list[tuple[int, int]]) -> None:
    epoch = 0
    records: list[ConsumerRecord[bytes | None, bytes | None]] = []
    for offset, (timestamp_type, step) in enumerate(shared):
        epoch += step  # epochs never go down
        records.append(ConsumerRecord("orders", 0, offset, timestamp_type=timestamp_type, leader_epoch=epoch))
    groups = list(group_records(records))
    assert [record.offset for group in groups for record in group.records] == list(range(len(records)))
    for group in groups:
        assert {TIMESTAMP_TYPES[record.timestamp_type] for record in group.records} == {group.timestamp_type}  # type: ignore[union-attr]
        assert {record.leader_epoch for record in group.records} == {group.leader_epoch}  # type: ignore[union-attr]
