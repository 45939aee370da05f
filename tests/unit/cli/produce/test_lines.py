"""Parsing of lines into keys, values and headers."""

import click
import pytest

from ottla.cli.produce import lines as module
from ottla.cli.produce.lines import BadInput, LineReader, Lines, build_format


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
