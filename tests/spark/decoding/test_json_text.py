"""JSON to structs: which texts are good, and the reason that each bad one gets."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.spark import decode
from ottla.spark.decoding.json_text import parsed_schema
from ottla.spark.errors import SparkOptionError

SCHEMA = "a long not null, b double, s struct<t:long>, l array<int>"
GOOD: list[tuple[bytes | None, Any]] = [
    (b'{"a":1,"b":2.5}', (1, 2.5, None, None)),
    (b' {"a": 1, "s": {"t": 5}, "l": [1, 2], "more": "}{"}\r\n', (1, None, (5,), [1, 2])),
    (b'{"a":1,"b":null}', (1, None, None, None)),
    (None, None),
]
BAD: list[tuple[bytes, str]] = [
    (b'{"a":"x","b":2}', "a is the string x: it must be bigint"),
    (b'{"a":1.5,"b":"y"}', "a is the fraction 1.5: it must be bigint; b is the string y: it must be double"),
    (b'{"a":99999999999999999999}', "a is the number 99999999999999999999: it must be bigint"),
    (b'{"a":1,"s":{"t":"x"}}', 's is the object {"t":"x"}: it must be struct<t:bigint>'),
    (b'{"a":1,"l":[1,"x"]}', 'l is the array [1,"x"]: it must be array<int>'),
    (b'{"b":1}', "a is missing"),
    (b'{"a":null}', "a is missing"),
    (b"", "the value is empty: there is no JSON in it"),
    (b" \n", "the value is empty: there is no JSON in it"),
    (b"123", "the value is no JSON object: 123"),
    (b'[{"a":1}]', 'the value is no JSON object: [{"a":1}]'),
    (b'{"a":1', 'the value is not valid JSON: {"a":1'),
    (b"{'a':1}", "the value is not valid JSON: {'a':1}"),
    (b'{"a":1} tail', 'the value has text after its JSON object: {"a":1} tail'),
    (b'{"a":1} {"a":2}', 'the value has text after its JSON object: {"a":1} {"a":2}'),
    (b'{"a":1,"c":"\xff"}', "the value is not valid UTF-8"),
    (b"x" * 100, "the value is not valid JSON: " + "x" * 40 + "…"),
]


def test_good_texts_become_structs_and_bad_ones_get_their_reason(spark: Any) -> None:
    texts = [text for text, _ in [*GOOD, *BAD]]
    rows = spark.createDataFrame([(number, text) for number, text in enumerate(texts)], "number int, value binary")
    found = {row.number: row for row in decode(rows, value="json", schema=SCHEMA).collect()}
    plain = [None if row.value is None else tuple(row.value) for _, row in sorted(found.items())]
    assert plain == [value for _, value in GOOD] + [None] * len(BAD)
    assert [found[number]._error for number in range(len(GOOD))] == [None] * len(GOOD)
    errors = [found[len(GOOD) + number]._error for number in range(len(BAD))]
    assert [error.reason for error in errors] == [reason for _, reason in BAD]
    assert [(error.field, error.key, bytes(error.value)) for error in errors] == [("value", None, text) for text, _ in BAD]


def test_a_schema_that_is_none_is_refused(spark: Any) -> None:
    with pytest.raises(SparkOptionError, match="schema is no list of columns such as 'order_id long, amount double'"):
        parsed_schema("order_id lng,,", "schema")
    with pytest.raises(SparkOptionError, match="key_schema must be columns"):
        parsed_schema(5, "key_schema")
