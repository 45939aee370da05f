"""Declarations from CREATE statements."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.spark.sql.declarations import Declaration, declaration_of, from_json, undeclared
from ottla.spark.sql.errors import SqlError
from ottla.spark.sql.parser import parse
from ottla.spark.sql.statements import Column, Create


def declared(sql: str) -> Declaration:
    create = parse(sql)
    assert isinstance(create, Create)
    return declaration_of(create)


def test_json_stream_has_topic_format_columns_and_key() -> None:
    found = declared("CREATE STREAM o (ID BIGINT, amount DOUBLE) WITH (kafka_topic='orders', value_format='JSON', key='id')")
    assert found == Declaration("o", "stream", "orders", "json", (Column("ID", "BIGINT"), Column("amount", "DOUBLE")), "ID")
    assert found.ddl == "`ID` BIGINT, `amount` DOUBLE"


def test_topic_is_the_name_unless_it_is_given() -> None:
    assert declared("CREATE TABLE users (id STRING PRIMARY KEY) WITH (format='json')").topic == "users"


def test_string_stream_has_one_column() -> None:
    assert declared("CREATE STREAM s WITH (format='text')").columns == (Column("value", "STRING"),)
    named = declared("CREATE STREAM s (line STRING, host STRING KEY) WITH (format='string')")
    assert named.value_columns == (Column("line", "STRING"),)
    assert named.key == "host"


def test_avro_stream_keeps_the_schema_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "o.avsc").write_text('{"type": "record", "name": "o", "fields": [{"name": "id", "type": "long"}]}')
    found = declared(f"CREATE STREAM o WITH (format='avro', schema='{tmp_path}/o.avsc')")
    assert found.schema["fields"][0]["name"] == "id"


def test_declaration_survives_json() -> None:
    for sql in (
        "CREATE STREAM o (id BIGINT, at TIMESTAMP) WITH (format='json', key='id', timestamp='at', watermark='5 minutes')",
        "CREATE TABLE r WITH (format='raw')",
    ):
        found = declared(sql)
        assert from_json(found.as_json()) == found


def test_undeclared_topic_has_keys_and_values_as_text() -> None:
    assert {each.name: each.type for each in undeclared("t").columns}["value"] == "STRING"


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("CREATE STREAM s (a INT)", "the format of stream s is missing"),
        ("CREATE STREAM s (a INT) WITH (format='jsn')", "did you mean json?"),
        ("CREATE STREAM s (a INT) WITH (format='json', topik='x')", "did you mean topic?"),
        ("CREATE STREAM s (a INT) WITH (format='json', topic='x', kafka_topic='y')", "given twice"),
        ("CREATE STREAM s (a INT) WITH (format='json', partitions='no')", "a number from 1 on"),
        ("CREATE STREAM s WITH (format='json')", "stream s has no columns"),
        ("CREATE STREAM s (_offset INT) WITH (format='json')", "a column of every record"),
        ("CREATE STREAM s (amount INT) WITH (format='json', key='amout')", "did you mean amount?"),
        ("CREATE STREAM s (a INT) WITH (format='raw')", "leave columns and key out"),
        ("CREATE STREAM s (a INT, b INT) WITH (format='int32')", "the format int32 has one"),
        ("CREATE STREAM s (a STRING) WITH (format='int64')", "the format int64 is BIGINT"),
        ("CREATE STREAM s (a INT) WITH (format='json', schema='x')", "schema is for the format avro"),
        ("CREATE STREAM s WITH (format='avro')", "schema='orders.avsc'"),
        ("CREATE STREAM s WITH (format='avro', schema='/no/such')", "cannot be read"),
        ("CREATE STREAM s (a INT) WITH (format='json', key='a', key_format='float')", "use string"),
        ("CREATE STREAM s (a INT) WITH (format='json', timestamp='a')", "used with watermark"),
        ("CREATE STREAM s (a INT) WITH (format='json', timestamp='a', watermark='1 hour')", "declare the column as TIMESTAMP"),
        ("CREATE TABLE s WITH (format='json') AS SELECT 1", "CREATE STREAM … AS SELECT is"),
    ],
)
def test_wrong_option_is_named_with_what_to_do(sql: str, words: str) -> None:
    with pytest.raises(SqlError) as raised:
        declared(sql)
    assert words in str(raised.value)
