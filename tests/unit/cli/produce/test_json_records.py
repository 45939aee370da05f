"""Records as JSON: what `ottla consume --json` writes is read back as it was, and mistakes are named."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.cli.consume.formatters import Consumed, JsonFormatter
from ottla.cli.produce.lines import JsonReader, Lines, Row
from ottla.ids import TopicPartition
from ottla.records.kernels import Record

BYTES = st.none() | st.binary(max_size=8) | st.text(max_size=8).map(str.encode)
NAMES = st.binary(max_size=4).map(lambda name: name.decode("utf-8", "surrogateescape"))


def read(*lines: bytes) -> list[Row]:
    reader = JsonReader()
    rows = reader.read(Lines(list(lines), "file", 1))
    if reader.failure is not None:
        raise reader.failure
    return rows


@given(BYTES, BYTES, st.lists(st.tuples(NAMES, BYTES), max_size=3), st.integers(0, 2**62), st.integers(0, 9))
def test_records_that_consume_writes_come_back(
    key: bytes | None, value: bytes | None, headers: list[tuple[str, bytes | None]], timestamp: int, partition: int
) -> None:
    record = Record(7, timestamp, key, value, tuple(headers))
    written = JsonFormatter({}).format(TopicPartition("orders", partition), Consumed([record], "CreateTime", 3))
    (row,) = read(written.rstrip(b"\n"))
    assert row == Row(value, key, tuple(headers), timestamp, partition, "orders", 0)


def test_fields_may_be_left_out() -> None:
    assert read(b'{"value": "v"}', b"", b'{"value": null, "timestamp": -1}') == [
        Row(b"v", line=0),
        Row(None, line=2),
    ]


def test_other_values_become_their_json_text() -> None:
    (row,) = read('{"key": 42, "value": {"a": [1, true, "ö"]}}'.encode())
    assert (row.key, row.value) == (b"42", '{"a":[1,true,"ö"]}'.encode())
    assert json.loads(row.value or b"") == {"a": [1, True, "ö"]}


def test_partitions_can_be_ignored_and_headers_added() -> None:
    assert JsonReader((("own", b"1"),)).read(Lines([b'{"value": "v"}'], "file", 1))[0].headers == (("own", b"1"),)
    rows = JsonReader(keeps_partitions=False).read(Lines([b'{"value": "v", "partition": 3}'], "file", 1))
    assert rows[0].partition is None


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"plain", "file, line 2 is not JSON: .* Without --json each line is the value"),
        (b"\xff", "is not UTF-8: give bytes as value_base64"),
        (b"[" * 100_000, "is not JSON"),
        (b'"v"', "is no JSON object"),
        (b'{"vale": "v"}', "has a field 'vale' that records do not have: did you mean value?"),
        (b'{"key": "k"}', "has no value: give"),
        (b'{"value": "v", "value_base64": "dg=="}', "has both value and value_base64"),
        (b'{"value_base64": "?"}', "has a value_base64 that is not base64"),
        (b'{"value_base64": 1}', "has a value_base64 that is not base64"),
        (b'{"value": "\\ud800"}', "half of a surrogate pair in its value"),
        (b'{"value": "v", "partition": -1}', "has a partition that is not a whole number"),
        (b'{"value": "v", "partition": 1.5}', "has a partition that is not a whole number"),
        (b'{"value": "v", "timestamp": true}', "has a timestamp that is not a whole number"),
        (b'{"value": "v", "topic": 3}', "has a topic that is not text"),
        (b'{"value": "v", "headers": {"a": "b"}}', "has headers that are not a list"),
        (b'{"value": "v", "headers": ["a"]}', "has a header that is not of the form"),
        (b'{"value": "v", "headers": [{"name": "a", "vale": "b"}]}', "has a header that is not of the form"),
        (b'{"value": "v", "headers": [{"name": "\\ud800", "value": "b"}]}', "in the name of a header"),
    ],
)
def test_malformed_records_are_refused(line: bytes, said: str) -> None:
    reader = JsonReader()
    assert len(reader.read(Lines([b'{"value": "v"}', line, b'{"value": "w"}'], "file", 1))) == 1
    with pytest.raises(Exception, match=said):
        raise reader.failure or AssertionError("not refused")
