r"""Properties files: every example was read or written by java.util.Properties."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.config.java_properties import format_properties, parse_properties

READ = [
    (b"a=1\nb : 2\nc 3\n d\t=\t4 \n#no=1\n!no=2\ne\n\n", {"a": "1", "b": "2", "c": "3", "d": "4 ", "e": ""}),
    (b"a\\ b=c\\\n   d\n", {"a b": "cd"}),
    (b"a\\=b=c\\:d\n", {"a=b": "c:d"}),
    (b"k=\\u00e4\\u20AC\\q\\t|\n", {"k": "ä€q\t|"}),
    (b"a=1\\\\\nb=2\n", {"a": "1\\", "b": "2"}),
    (b"a=1\\\r\n  x\r\nb==2\rc=:3\n", {"a": "1x", "b": "=2", "c": ":3"}),
    (b"a=1\na=2\n", {"a": "2"}),
    (b"x=1\\", {"x": "1"}),
    (b"=v\n:w\n", {"": "w"}),
    (b"a=b\\\n#c\n", {"a": "b#c"}),
    (b"a=b\\\n\nc=d\n", {"a": "b", "c": "d"}),
    (b"a\\\nb=c\n", {"ab": "c"}),
    (b"k=\\uD83D\\uDE00\n", {"k": "😀"}),
    (b"k=\xe4\n", {"k": "ä"}),
]
WRITTEN = [
    ("plain", b"plain=plain\n"),
    (" lead", b"\\ lead=\\ lead\n"),
    ("  two", b"\\ \\ two=\\  two\n"),
    ("a=b:c#d!e", b"a\\=b\\:c\\#d\\!e=a\\=b\\:c\\#d\\!e\n"),
    ("t\tn\nr\rf\f", b"t\\tn\\nr\\rf\\f=t\\tn\\nr\\rf\\f\n"),
    ("back\\slash", b"back\\\\slash=back\\\\slash\n"),
    ("ä€😀", b"\\u00E4\\u20AC\\uD83D\\uDE00=\\u00E4\\u20AC\\uD83D\\uDE00\n"),
    ("a b ", b"a\\ b\\ =a b \n"),
]


@pytest.mark.parametrize(("data", "expected"), READ)
def test_reads_as_java_does(data: bytes, expected: dict[str, str]) -> None:
    assert parse_properties(data) == expected


@pytest.mark.parametrize(("text", "expected"), WRITTEN)
def test_writes_as_java_does(text: str, expected: bytes) -> None:
    assert format_properties({text: text}) == expected


def test_comments_come_first() -> None:
    assert format_properties({"a": "1"}, ["", "now"]) == b"#\n#now\na=1\n"


@pytest.mark.parametrize("data", [b"k=\\u00zz\n", b"k=\\u12\n", b"a=1\nk=\\u"])
def test_a_broken_unicode_escape_names_its_line(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"line \d has a \\u"):
        parse_properties(data)


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), st.text(st.characters(exclude_categories=["Cs"]))))
def test_round_trip(properties: dict[str, str]) -> None:
    assert parse_properties(format_properties(properties)) == properties


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused_with_a_line(data: bytes) -> None:
    message = "line"
    try:
        parse_properties(data)
    except ValueError as refused:
        message = str(refused)
    assert "line" in message
