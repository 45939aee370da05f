"""The column list of CREATE STREAM and CREATE TABLE: names, types, and which column is the record's key. Pure."""

from __future__ import annotations

from ottla.errors.texts import near_words
from ottla.spark.sql.errors import SqlError
from ottla.spark.sql.lexer import Token, split_at_commas
from ottla.spark.sql.statements import Column

TYPES = frozenset(
    {
        "BOOLEAN",
        "TINYINT",
        "BYTE",
        "SMALLINT",
        "SHORT",
        "INT",
        "INTEGER",
        "BIGINT",
        "LONG",
        "FLOAT",
        "REAL",
        "DOUBLE",
        "DECIMAL",
        "DEC",
        "NUMERIC",
        "STRING",
        "VARCHAR",
        "CHAR",
        "BINARY",
        "DATE",
        "TIMESTAMP",
        "TIMESTAMP_NTZ",
        "TIMESTAMP_LTZ",
        "ARRAY",
        "MAP",
        "STRUCT",
        "VARIANT",
    }
)
RENAMED = {"BYTES": "BINARY", "TEXT": "STRING", "BOOL": "BOOLEAN"}
"""Words of ksqlDB and others for types of Spark."""


def parse_columns(sql: str, tokens: list[Token]) -> tuple[Column, ...]:
    """The columns between the parentheses; `tokens` are those inside of them."""
    found: list[Column] = []
    for part in split_at_commas(tokens):
        column = _column(sql, part)
        if any(each.name.lower() == column.name.lower() for each in found):
            raise SqlError(f"the column {column.name} is declared twice: give each column its own name")
        found.append(column)
    keys = [each.name for each in found if each.is_key]
    if len(keys) > 1:
        raise SqlError(f"{' and '.join(keys)} are both KEY: a record has one key, so one column can be it")
    return tuple(found)


def _column(sql: str, tokens: list[Token]) -> Column:
    if not tokens or not tokens[0].is_identifier:
        shown = sql[tokens[0].start : tokens[-1].end] if tokens else "nothing"
        raise SqlError(f"a column is a name and a type, such as id BIGINT; {shown} is none")
    name, rest = tokens[0].value, tokens[1:]
    is_key = bool(rest) and rest[-1].is_word("KEY")
    if is_key:
        rest = rest[:-1]
        if rest and rest[-1].is_word("PRIMARY"):
            rest = rest[:-1]
    if not rest:
        raise SqlError(f"the column {name} has no type: write {name} STRING or {name} BIGINT, for example")
    return Column(name, _type(sql, name, rest), is_key)


def _type(sql: str, column: str, tokens: list[Token]) -> str:
    first = tokens[0].value.upper()
    if first == "VARCHAR" and len(tokens) == 1:
        return "STRING"
    chosen = RENAMED.get(first, first)
    if chosen not in TYPES:
        near = near_words(first, [*TYPES, *RENAMED])
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(TYPES))}"
        raise SqlError(f"the column {column} has the type {tokens[0].value}, which there is not: {hint}")
    rest = sql[tokens[0].end : tokens[-1].end]
    return (chosen + rest).strip()
