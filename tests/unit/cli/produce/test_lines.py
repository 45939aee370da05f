"""Parsing of lines into keys, values and headers."""

import click
import pytest

from ottla.cli.produce.lines import LineReader, build_format


def rows(text: bytes, **properties: str) -> list[tuple[object, ...]]:
    reader = LineReader(build_format({name.replace("_", "."): value for name, value in properties.items()}))
    made = reader.rows(text.split(b"\n"), 7)
    if reader.failure is not None:
        raise reader.failure
    return [row[1:] for row in made]


def test_values() -> None:
    assert rows(b"a\n\n\xff\xfe") == [(None, b"a", ()), (None, b"", ()), (None, b"\xff\xfe", ())]


def test_keys() -> None:
    assert rows(b"k\tv\tw\n\t", parse_key="true") == [(b"k", b"v\tw", ()), (b"", b"", ())]
    assert rows(b"k::v", parse_key="TRUE", key_separator="::") == [(b"k", b"v", ())]


def test_headers() -> None:
    assert rows(b"a:1,b:2\tk\tv", parse_key="true", parse_headers="true") == [(b"k", b"v", (("a", b"1"), ("b", b"2")))]
    assert rows(b"a:1:2\tv", parse_headers="true") == [(None, b"v", (("a", b"1:2"),))]


def test_nulls() -> None:
    made = rows(b"-\t-\t-\na:-\tk\tv\n", parse_key="true", parse_headers="true", null_marker="-", ignore_error="true")
    assert made == [(None, None, ()), (b"k", b"v", (("a", None),)), (None, b"", ())]


@pytest.mark.parametrize(
    ("text", "properties", "said"),
    [
        (b"k\tv\nbad", {"parse_key": "true"}, r"line 2 has no key.separator \('\\t'\): 'bad'"),
        (b"bad", {"parse_headers": "true"}, "line 1 has no headers.delimiter"),
        (b"h\tv", {"parse_headers": "true"}, "a header without headers.key.separator"),
        (b"-:1\tv", {"parse_headers": "true", "null_marker": "-"}, "names cannot be null"),
        (b"x" * 100, {"parse_key": "true"}, "x…'"),
    ],
)
def test_malformed_lines_are_refused(text: bytes, properties: dict[str, str], said: str) -> None:
    from ottla.cli.produce.lines import BadLine

    with pytest.raises(BadLine, match=said):
        rows(text, **properties)


def test_rows_before_a_malformed_line_are_returned() -> None:
    reader = LineReader(build_format({"parse.key": "true"}))
    assert len(reader.rows([b"a\t1", b"b\t2", b"bad", b"c\t3"], 7)) == 2
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
