"""Declarations as DataFrames: the formats that the tests of `running` do not use."""

from __future__ import annotations

import io
from typing import Any

import pytest

from ottla import Producer
from ottla.spark.sql.declarations import Declaration
from ottla.spark.sql.errors import SqlError
from ottla.spark.sql.frames import records
from ottla.spark.sql.statements import Column

SCHEMA = '{"type": "record", "name": "o", "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": "string"}]}'


def test_numbers_avro_raw_and_headers_are_read(sql: Any, topic: str, tmp_path: Any) -> None:
    import json

    import fastavro

    made = io.BytesIO()
    fastavro.schemaless_writer(made, fastavro.parse_schema(json.loads(SCHEMA)), {"id": 7, "name": "ann"})
    with Producer(sql.broker.bootstrap_servers) as producer:
        producer.send(topic, made.getvalue(), key=(5).to_bytes(8, "big"), headers=[("h", b"1")]).result(30)
    (tmp_path / "o.avsc").write_text(SCHEMA)
    sql(f"CREATE STREAM a WITH (topic='{topic}', format='avro', schema='{tmp_path}/o.avsc')")
    sql(f"CREATE STREAM r WITH (topic='{topic}', format='raw')")
    sql(f"CREATE STREAM k (id BIGINT KEY, v BINARY) WITH (topic='{topic}', format='bytes', key_format='int64')")
    rows = sql(
        "SELECT a.id, a.name, hex(r.key), size(r.headers), k.id, a._headers[0].key "
        "FROM a, r, k WHERE a._offset = r.offset AND a._partition = r.partition"
    )
    assert rows == [(7, "ann", "0000000000000005", 1, 5, "h")]


def rows(df: Any) -> list[tuple[Any, ...]]:
    return [tuple(bytes(each) if isinstance(each, bytearray) else each for each in row) for row in df.collect()]


def test_numbers_are_big_endian_and_raw_columns_keep_their_names(spark: Any) -> None:
    df = spark.sql("SELECT -2 AS a, 'x' AS b")
    number = Declaration("n", "stream", "n", "int32", (Column("v", "INT"), Column("k", "STRING")), "k")
    text = Declaration("t", "stream", "t", "text", ())
    wide = spark.sql("SELECT 'v' AS value, 1 AS partition, 'k' AS key")
    made = {"number": records(df, number, ()), "text": records(df, text, ()), "raw": records(wide, text, ())}
    assert made["raw"].columns == ["value", "partition", "key"]
    assert rows(made["number"].unionByName(made["text"].selectExpr("key", "binary(value) AS value"))) == [
        ("x", b"\xff\xff\xff\xfe"),
        ("-2", b"x"),
    ]
    for declaration, columns, words in (
        (Declaration("a", "stream", "a", "avro", schema={}), (), "is only read"),
        (Declaration("f", "stream", "f", "float64", (Column("a", "DOUBLE"), Column("b", "STRING")), "b"), (), "only read"),
        (text, ("key", "offset"), "offset cannot be written"),
        (number, ("v",), "2 values in a row for 1 columns"),
    ):
        with pytest.raises(SqlError, match=words):
            records(df, declaration, columns)
    with pytest.raises(SqlError, match="3 columns, and records have"):
        records(spark.sql("SELECT 1, 2, 3"), text, ())


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_number_that_does_not_fit_the_keys_format_is_refused(spark: Any, ansi: str) -> None:
    """Its upper bytes were cut off: the record got the key of another."""
    declaration = Declaration("n", "stream", "n", "json", (Column("k", "BIGINT"), Column("v", "INT")), "k", "int32")
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        fits = spark.sql("SELECT * FROM VALUES (-2L, 1), (2147483647L, 1), (NULL, 1) AS t (k, v)")
        found = [key for key, _ in rows(records(fits, declaration, ()))]
        assert found == [b"\xff\xff\xff\xfe", b"\x7f\xff\xff\xff", None]
        with pytest.raises(Exception, match="4294967297 does not fit into INT"):
            records(spark.sql("SELECT 4294967297L, 1"), declaration, ()).collect()
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")
