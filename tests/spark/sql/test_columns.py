"""Column lists."""

from __future__ import annotations

import pytest

from ottla.spark.sql.errors import SqlError
from ottla.spark.sql.lexer import tokenize
from ottla.spark.sql.parser import parse_columns
from ottla.spark.sql.statements import Column


def columns(sql: str) -> tuple[Column, ...]:
    return parse_columns(sql, tokenize(sql))


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("id BIGINT", (Column("id", "BIGINT"),)),
        ("id bigint key, `a b` string", (Column("id", "BIGINT", True), Column("a b", "STRING"))),
        ("p DECIMAL(10, 2), b INT", (Column("p", "DECIMAL(10, 2)"), Column("b", "INT"))),
        ("l array<struct<a: int, b: string>>", (Column("l", "ARRAY<struct<a: int, b: string>>"),)),
        ("m MAP<STRING, INT>, t TIMESTAMP", (Column("m", "MAP<STRING, INT>"), Column("t", "TIMESTAMP"))),
        ("v VARCHAR, b BYTES, c VARCHAR(3)", (Column("v", "STRING"), Column("b", "BINARY"), Column("c", "VARCHAR(3)"))),
        ("key STRING", (Column("key", "STRING"),)),
        ("", ()),
    ],
)
def test_columns_have_names_types_and_a_key(sql: str, expected: tuple[Column, ...]) -> None:
    assert columns(sql) == expected


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("id", "the column id has no type"),
        ("id BIGNT", "did you mean BIGINT?"),
        ("id INT, ID STRING", "declared twice"),
        ("a INT KEY, b INT KEY", "a and b are both KEY"),
        ("id INT,", "a column is a name and a type"),
        ("5 INT", "5 INT is none"),
    ],
)
def test_mistake_in_columns_is_named(sql: str, words: str) -> None:
    with pytest.raises(SqlError, match="(?s)" + words.replace("?", r"\?")):
        columns(sql)
