"""The language of searches: what matches, what errors say, and that needles never pass over a record that matches."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.console.expression import DEPTH_MAX, ExpressionError, parse
from ottla.console.formats import Candidate, Reader
from ottla.records.kernels import Record

VALUE = {"a": {"b": [1, 2, {"c": "x"}]}, "total": 5, "name": "Zoë", "flag": True, "none": None, "date": "2026-01-31", "12": 7}


def matches(expression: str, value: Any = VALUE, key: bytes | None = b"k1", headers: Any = (), reader: Any = None) -> bool:
    data = value if value is None or isinstance(value, bytes) else json.dumps(value).encode()
    record = Record(7, 1_700_000_000_000, key, data, tuple(headers))
    return parse(expression).test(Candidate(record, 3, reader))


@pytest.mark.parametrize(
    "expression",
    [
        "value.total == 5",
        "5 == value.total",
        "value.total != 6",
        "value.total >= 5 and value.total < 5.5",
        "4 < value.total",
        'value.a.b[2].c == "x"',
        'value["a"]["b"][-1]["c"] == "x"',
        "value.a.b[*] == 2",
        "value.a.b contains 2",
        'value.a.b[*].c contains "x"',
        'value.name == "Zoë"',
        "value.name == 'Zo\\u00eb'",
        'value.name matches "(?i)^zo"',
        "value.flag == true",
        "value.none == null and value.absent == null",
        "value.absent != 1",
        'value.date > "2026-01"',
        "value.12 == 7",
        'key == "k1" and key contains "1" and key matches "k[0-9]"',
        'key in ["k0", "k1"]',
        "partition in [1, 3]",
        'not (key == "k2" or offset > 7)',
        "not not offset == 7",
        'timestamp > "2023-11-14" and timestamp < "2023-11-15T00:00Z"',
        "timestamp == 1700000000000",
        "size > 10",
        '"total"',
    ],
)
def test_expression_matches(expression: str) -> None:
    assert matches(expression)
    assert not matches(f"not ({expression})")


@pytest.mark.parametrize(
    "expression",
    ['value.total == "5"', "value.flag == 1", 'value.total > "4"', "value.a == 1", "value.a.b[9] == 1", "value.absent > 0"],
)
def test_comparison_of_different_kinds_is_false(expression: str) -> None:
    assert not matches(expression)


def test_headers() -> None:
    headers = [("source", b"shop"), ("n", b"12"), ("source", b"web"), ("x y", None), ("raw", b"\xff")]
    for expression in (
        'headers.source == "web"',
        "headers.n > 11",
        'headers["x y"] == null',
        "headers.absent == null",
        'headers contains "sho"',
        'headers contains "sour"',
        'headers.source matches "^w"',
    ):
        assert matches(expression, headers=headers), expression


def test_null_and_text_that_is_no_json() -> None:
    assert matches("value == null", value=None)
    assert not matches("value == null", value=b"")
    assert matches('value == "plain"', value=b"plain")
    assert matches("value.x == null", value=b"{broken")
    assert matches("value == 12", value=b"12")
    assert not matches("value.x == 1", value=b"[" * 100_000)


def test_forms_that_are_not_text_are_searched_as_they_are_shown() -> None:
    reader = Reader("t", "int32", "auto")
    assert matches("key == 258", key=b"\0\0\1\2", reader=reader)
    assert matches('key == "258" and key > 257', key=b"\0\0\1\2", reader=reader)


@pytest.mark.parametrize(
    ("expression", "column", "text"),
    [
        ("value.total >", 14, "expected a value after >, found the end"),
        ("total > 5", 1, "there is no field total"),
        ('key == "a', 8, "without its closing quote"),
        ("key = 1", 5, "'=' was not expected"),
        ("(key == 1", 10, "closing parenthesis"),
        ('key matches "("', 13, "regular expression (RE2)"),
        ("key matches 1", 13, "regular expression in quotes"),
        ("key in 1", 8, "a list such as"),
        ("key == [1]", 8, "a list can only follow in"),
        ("offset.a == 1", 1, "offset is a number"),
        ("headers.a.b == 1", 1, "a header has no parts"),
        ('timestamp > "soon"', 13, "a time such as"),
        ("1 == 2", 1, "both sides are constants"),
        ("key == 1 key", 10, "expected and, or, or the end, found key"),
        ("value. == 1", 8, "a name after the dot"),
        ("(" * 200 + "key == 1", DEPTH_MAX + 2, "are open"),
        ("not " * 200 + "key == 1", 4 * (DEPTH_MAX + 2) + 1, "are open"),
        ("key == 1" + " " * 5_000, 4_000, "characters"),
    ],
)
def test_error_names_the_column_and_what_was_expected(expression: str, column: int, text: str) -> None:
    with pytest.raises(ExpressionError, match=r"^column \d+: ") as raised:
        parse(expression)
    assert text in str(raised.value)
    assert raised.value.column == column


texts = st.text(st.sampled_from('ab/"\\é\n<\ufffd'), min_size=1, max_size=4)


@given(texts, texts, st.booleans(), st.sampled_from(["==", "contains", ">=", "in"]))
def test_needles_are_in_every_record_that_matches(wanted: str, name: str, is_ascii: bool, sign: str) -> None:
    quoted, path = json.dumps(wanted), json.dumps(name)
    data = json.dumps({name: wanted}, ensure_ascii=is_ascii).encode()
    right = f"[{quoted}]" if sign == "in" else quoted
    for expression in (f"value[{path}] {sign} {right}", f"value contains {quoted} or value[{path}] == {quoted}", quoted):
        search = parse(expression)
        record = Record(0, 0, wanted.encode(), data, ((name, wanted.encode()),))
        if search.test(Candidate(record, 0, None)) and search.needles is not None:
            held = data + b"|" + wanted.encode() + b"|" + name.encode()
            assert any(each in held for each in search.needles)
        if expression != quoted:
            assert search.test(Candidate(record, 0, None))


@given(st.text(st.sampled_from("key value.a[*] == <(\"'x1,]) and not in matches contains null \\"), max_size=40))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    try:
        search = parse(text)
    except ExpressionError:
        return
    search.test(Candidate(Record(0, 0, b"k", b'{"a": [1]}', ()), 0, None))
