"""Parsing of lines into keys, values and headers."""

import asyncio
import json
import os
from collections.abc import Sequence
from pathlib import Path

import click
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.cases.examples import examples

from ottla.cli.consume.formatters import Consumed, JsonFormatter
from ottla.cli.produce import lines as module
from ottla.cli.produce.lines import (
    BadInput,
    Columns,
    Input,
    JsonReader,
    LineReader,
    Lines,
    Row,
    build_format,
    parse_delimiter,
    unescape,
)
from ottla.ids import TopicPartition
from ottla.records.kernels import Record


def rows(text: bytes, **properties: str) -> list[tuple[object, ...]]:
    reader = LineReader(build_format({name.replace("_", "."): value for name, value in properties.items()}))
    made = reader.read(Lines(text.split(b"\n"), "file", 1))
    if reader.failure is not None:
        raise reader.failure
    return [(key, value, headers) for value, key, headers in made.each()]


def test_values() -> None:
    assert rows(b"a\n\n\xff\xfe") == [(None, b"a", ()), (None, b"", ()), (None, b"\xff\xfe", ())]


def test_keys() -> None:
    assert rows(b"k\tv\tw\n\t", parse_key="true") == [(b"k", b"v\tw", ()), (b"", b"", ())]
    assert rows(b"k::v", parse_key="TRUE", key_separator="::") == [(b"k", b"v", ())]
    assert rows(b"v\nk\tv", parse_key="true", ignore_error="true") == [(None, b"v", ()), (b"k", b"v", ())]


def test_headers() -> None:
    assert rows(b"a:1,b:2\tk\tv", parse_key="true", parse_headers="true") == [(b"k", b"v", (("a", b"1"), ("b", b"2")))]
    assert rows(b"a:1:2\tv", parse_headers="true") == [(None, b"v", (("a", b"1:2"),))]


def test_header_names_keep_their_bytes() -> None:
    ((_, _, headers),) = rows(b"\xff:1\tv", parse_headers="true")
    assert headers == (("\udcff", b"1"),)


def test_own_headers_come_behind_those_of_the_line() -> None:
    own = (("own", b"1"),)
    plain = LineReader(build_format({}), own).read(Lines([b"a"], "file", 1))
    assert list(plain.each()) == [(b"a", None, own)]
    parsed = LineReader(build_format({"parse.headers": "true", "null.marker": "-"}), own)
    made = parsed.read(Lines([b"h:1\tv", b"h:1\tw", b"-\tx"], "file", 1))
    assert made.headers == [(("h", b"1"), *own), (("h", b"1"), *own), own]
    assert made.headers[0] is made.headers[1], "the same text is parsed and packed once"


def test_headers_that_all_differ_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KNOWN_HEADERS_MAX", 3)
    reader = LineReader(build_format({"parse.headers": "true"}))
    made = reader.read(Lines([b"h:%d\tv" % number for number in range(10)], "file", 1))
    assert made.headers == [(("h", b"%d" % number),) for number in range(10)]
    assert len(reader._known_headers) <= 3


def test_nulls() -> None:
    made = rows(b"-\t-\t-\na:-\tk\tv\n", parse_key="true", parse_headers="true", null_marker="-", ignore_error="true")
    assert made == [(None, None, ()), (b"k", b"v", (("a", None),)), (None, b"", ())]
    assert rows(b"-\t-\nk\tv", parse_key="true", null_marker="-") == [(None, None, ()), (b"k", b"v", ())]


@pytest.mark.parametrize(
    ("text", "properties", "said"),
    [
        (b"k\tv\nbad", {"parse_key": "true"}, r"file, line 2 has no key.separator \('\\t'\): 'bad'"),
        (b"k\tv\nbad", {"parse_key": "true", "null_marker": "-"}, r"file, line 2 has no key.separator"),
        (b"bad", {"parse_headers": "true"}, "file, line 1 has no headers.delimiter"),
        (b"h\tv", {"parse_headers": "true"}, "a header without headers.key.separator"),
        (b"-:1\tv", {"parse_headers": "true", "null_marker": "-"}, "names cannot be null"),
        (b"x" * 100, {"parse_key": "true"}, "x…'"),
    ],
)
def test_malformed_lines_are_refused(text: bytes, properties: dict[str, str], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        rows(text, **properties)


@pytest.mark.parametrize("extra", [{}, {"null.marker": "-"}])
def test_records_before_a_malformed_line_are_returned(extra: dict[str, str]) -> None:
    reader = LineReader(build_format({"parse.key": "true", **extra}))
    made = reader.read(Lines([b"a\t1", b"b\t2", b"bad", b"c\t3"], "file", 1))
    assert len(made.values) == 2
    assert reader.failure is not None


@pytest.mark.parametrize(
    "properties",
    [
        {"parse.keys": "true"},
        {"key.separator": ""},
        {"headers.delimiter": ","},
        {"headers.separator": ":"},
        {"headers.key.separator": "\t"},
        {"null.marker": "\t"},
        {"null.marker": ","},
        {"null.marker": ":"},
    ],
)
def test_invalid_formats_are_refused(properties: dict[str, str]) -> None:
    with pytest.raises(click.UsageError):
        build_format(properties)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        (None, b"\n"),
        (r"\n", b"\n"),
        (r"\r\n", b"\r\n"),
        (r"\0", b"\0"),
        (r"\x1eZ", b"\x1eZ"),
        (r"\\n", b"\\n"),
        ("::", b"::"),
        ("→", "→".encode()),
        ("\udcff", b"\xff"),
    ],
)
def test_escapes(text: str | None, meant: bytes) -> None:
    assert parse_delimiter(text) == meant


@pytest.mark.parametrize("text", ["", "\\", r"\q", r"\x1", r"\xzz"])
def test_empty_and_unknown_escapes_are_refused(text: str) -> None:
    with pytest.raises(click.UsageError, match="--delimiter"):
        parse_delimiter(text)


def test_flag_is_named() -> None:
    with pytest.raises(click.UsageError, match="--key-separator has an unknown escape"):
        unescape("\\q", "--key-separator")


def read_all(source: Input) -> list[Lines]:
    async def run() -> list[Lines]:
        found = []
        while (some := await source.next_lines()) is not None:
            assert some.lines
            found.append(some)
        return found

    return asyncio.run(run())


def read_pieces(pieces: Sequence[bytes], delimiter: bytes | None = b"\n", limit: int = 1000) -> list[bytes]:
    """The lines, if the pieces arrive one by one, each after the one before was processed."""
    reading, writing = os.pipe()

    async def run() -> list[bytes]:
        loop = asyncio.get_running_loop()
        left = list(pieces)

        def feed() -> None:
            if left:
                os.write(writing, left.pop(0))
                loop.call_later(0, feed)
            else:
                os.close(writing)

        loop.call_soon(feed)
        source = Input(["-"], reading, delimiter, limit)
        lines: list[bytes] = []
        while (some := await source.next_lines()) is not None:
            lines += some.lines
        return lines

    try:
        return asyncio.run(run())
    finally:
        os.close(reading)


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(st.lists(st.sampled_from([b"a", b"bc", b"\n", b"\r\n"]), min_size=1).map(b"".join), max_size=6),
    st.sampled_from([b"\n", b"\r\n", b"\n\n", b"a"]),
)
def test_lines_are_the_same_at_any_piece_size(pieces: list[bytes], delimiter: bytes) -> None:
    expected = b"".join(pieces).split(delimiter)
    if expected[-1] == b"":
        expected.pop()
    assert read_pieces(pieces, delimiter) == expected


def test_carriage_return_belongs_to_its_line() -> None:
    assert read_pieces([b"dos\r\n", b"old mac\rline\n"]) == [b"dos\r", b"old mac\rline"]


def test_whole_input_is_one_record() -> None:
    assert read_pieces([b"a\nb", b"\n"], None) == [b"a\nb\n"]
    assert read_pieces([], None) == [b""]


def test_records_without_end_are_refused_at_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PIECE_BYTES", 4)
    with pytest.raises(BadInput, match=r"standard input, line 2 is larger than a record can be, which is 10 bytes"):
        read_pieces([b"a\n", b"x" * 11], limit=10)
    with pytest.raises(BadInput, match=r"standard input is larger"):
        read_pieces([b"x" * 11], None, limit=10)


def test_files_are_read_one_after_the_other(tmp_path: Path) -> None:
    names = []
    for name, content in (("a", b"1\n2"), ("empty", b""), ("b", b"3\n4\n")):
        (tmp_path / name).write_bytes(content)
        names.append(str(tmp_path / name))
    with open(tmp_path / "a", "rb") as opened:
        os.lseek(opened.fileno(), 2, os.SEEK_SET)
        source = Input([*names, "-"], opened.fileno())
        assert source.size_bytes == 8
        found = read_all(source)
    assert [line for each in found for line in each.lines] == [b"1", b"2", b"3", b"4", b"2"]
    assert [each.place(0) for each in found] == [
        f"{names[0]}, line 1",
        f"{names[0]}, line 2",
        f"{names[2]}, line 1",
        "standard input, line 1",
    ]
    assert source.read_bytes == 8


def test_large_files_and_no_input(tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_bytes(b"line\n" * 200_000)
    source = Input([str(file)], None)
    assert sum(len(each.lines) for each in read_all(source)) == 200_000
    with open(os.devnull, "rb") as nothing:
        source = Input(["-"], nothing.fileno())
        assert read_all(source) == []
        assert source.size_bytes is None


def test_places_name_records_and_whole_files(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"a,b")
    (first, second) = read_all(Input([str(file)], None, b","))
    assert (first.place(0), second.place(0)) == (f"{file}, record 1", f"{file}, record 2")
    (whole,) = read_all(Input([str(file)], None, None))
    assert whole.place(0) == str(file)


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


def test_rows_of_columns() -> None:
    assert Columns([b"a", None]).rows() == [Row(b"a"), Row(None)]
    assert Columns([b"a", b"b"], [b"k", None]).rows() == [Row(b"a", b"k"), Row(b"b")]
    assert Columns([b"a"], None, [(("h", b"1"),)]).rows() == [Row(b"a", None, (("h", b"1"),))]
