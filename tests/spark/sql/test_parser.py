"""Our own statements are recognised; everything else is passed on."""

from __future__ import annotations

import pytest

from ottla.spark.sql import statements
from ottla.spark.sql.errors import SqlError
from ottla.spark.sql.parser import parse
from ottla.spark.sql.statements import (
    Column,
    Create,
    Describe,
    Drop,
    Insert,
    Passed,
    Query,
    Select,
    Set,
    Show,
    Statement,
    Terminate,
    Unset,
)

ORDERS = (Column("id", "BIGINT"), Column("amount", "DOUBLE"))
OPTIONS = {"topic": "orders", "format": "json"}


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (
            "CREATE STREAM orders (id BIGINT, amount DOUBLE) WITH (topic='orders', format='json')",
            Create("stream", "orders", ORDERS, OPTIONS),
        ),
        (
            "create or replace table orders (id bigint primary key, amount DOUBLE) with (TOPIC = 'orders', FORMAT=\"json\")",
            Create("table", "orders", (Column("id", "BIGINT", True), ORDERS[1]), OPTIONS, is_replacing=True),
        ),
        (
            "CREATE STREAM IF NOT EXISTS s WITH (format='raw', partitions=3)",
            Create("stream", "s", (), {"format": "raw", "partitions": "3"}, if_not_exists=True),
        ),
        (
            "CREATE STREAM big WITH (format='json') AS SELECT * FROM orders EMIT CHANGES",
            Create("stream", "big", (), {"format": "json"}, query=Query("SELECT * FROM orders", True)),
        ),
        ("DROP STREAM orders", Drop("stream", "orders")),
        ("drop table if exists `my-t`", Drop("table", "my-t", True)),
        ("SHOW STREAMS", Show("STREAMS")),
        ("LIST topics", Show("TOPICS")),
        ("DESCRIBE orders", Describe("orders")),
        ("DESC orders-v1.eu", Describe("orders-v1.eu")),
        ("SET 'auto.offset.reset'='earliest'", Set("auto.offset.reset", "earliest")),
        ("SET 'auto.offset.reset' = 'earliest'", Set("auto.offset.reset", "earliest")),
        ("set spark.sql.shuffle.partitions = 4", Set("spark.sql.shuffle.partitions", "4")),
        ("SET 'kafka.client.id'", Set("kafka.client.id")),
        ("SET", Set()),
        ("UNSET 'auto.offset.reset'", Unset("auto.offset.reset")),
        ("UNSET spark.x", Unset("spark.x")),
        ("INSERT INTO orders VALUES (1, 2.5), (2, ';')", Insert("orders", (), Query("VALUES (1, 2.5), (2, ';')"))),
        ("INSERT INTO orders (id, `amount`) SELECT 1, 2", Insert("orders", ("id", "amount"), Query("SELECT 1, 2"))),
        ("INSERT INTO orders (SELECT 1, 2)", Insert("orders", (), Query("(SELECT 1, 2)"))),
        ("INSERT INTO a-b.c SELECT 1 EMIT CHANGES", Insert("a-b.c", (), Query("SELECT 1", True))),
        ("TERMINATE query_1", Terminate("query_1")),
        ("SELECT 1", Select(Query("SELECT 1"))),
        ("SELECT * FROM t LIMIT 3", Select(Query("SELECT * FROM t LIMIT 3"))),
        ("SELECT * FROM t EMIT CHANGES", Select(Query("SELECT * FROM t", True))),
        ("SELECT * FROM t emit changes LIMIT 3", Select(Query("SELECT * FROM t", True, 3))),
        ("SELECT * FROM t LIMIT 3 EMIT CHANGES", Select(Query("SELECT * FROM t", True, 3))),
        ("WITH x AS (SELECT 1) SELECT * FROM x", Select(Query("WITH x AS (SELECT 1) SELECT * FROM x"))),
        ("SELECT 'EMIT CHANGES'", Select(Query("SELECT 'EMIT CHANGES'"))),
        ("EXPLAIN SELECT 1", Passed("EXPLAIN SELECT 1")),
        ("SHOW FUNCTIONS", Passed("SHOW FUNCTIONS")),
        ("DESCRIBE FUNCTION abs", Passed("DESCRIBE FUNCTION abs")),
        ("CREATE TABLE t (a INT) USING parquet", Passed("CREATE TABLE t (a INT) USING parquet")),
        ("CREATE TABLE t AS SELECT 1", Passed("CREATE TABLE t AS SELECT 1")),
        ("CREATE OR REPLACE TEMP VIEW v AS SELECT 1", Passed("CREATE OR REPLACE TEMP VIEW v AS SELECT 1", "v")),
        ("SET TIME ZONE 'UTC'", Passed("SET TIME ZONE 'UTC'")),
    ],
)
def test_statement(sql: str, expected: Statement) -> None:
    assert parse(sql) == expected


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("CREATE STREAM", "the name of the stream is missing"),
        ("CREATE STREAM s (id BIGINT WITH (format='json')", "a parenthesis has no end"),
        ("CREATE STREAM s (id BIGINT) WITH format='json'", "WITH has no options in parentheses"),
        ("CREATE STREAM s (id BIGINT) WITH (format=json)", "format in WITH needs quotes: format='json'"),
        ("CREATE STREAM s (id BIGINT) WITH (format)", "WITH takes name='value'"),
        ("CREATE STREAM s (id BIGINT) WITH (format='json', format='raw')", "format is given twice"),
        ("CREATE STREAM s (id BIGINT) WITH (format='json') please", "'please' is left"),
        ("DROP STREAM a DELETE TOPIC", "ottla topics delete"),
        ("SHOW STREEMS", "did you mean SHOW STREAMS"),
        ("SHOW", "SHOW needs a word"),
        ("SET 'auto.offset.reset'=", "has no value"),
        ("UNSET", "UNSET needs the name"),
        ("UNSET 'a'='b'", "UNSET takes only a name"),
        ("INSERT OVERWRITE orders VALUES (1)", "cannot empty a topic"),
        ("INSERT INTO orders", "neither VALUES nor SELECT"),
        ("INSERT INTO orders (1) VALUES (1)", "are names with commas"),
        ("SELECT 1 EMIT FINAL", "EMIT FINAL is not there"),
        ("-- nothing", "there is no statement"),
    ],
)
def test_mistake_is_one_sentence(sql: str, words: str) -> None:
    with pytest.raises(SqlError) as raised:
        parse(sql)
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("sql", "is_local"),
    [
        ("CREATE TEMP VIEW v AS SELECT 1", True),
        ("CREATE OR REPLACE TEMPORARY VIEW v AS SELECT 1", True),
        ("CREATE VIEW v AS SELECT 1", False),
        ("CREATE OR REPLACE GLOBAL TEMP VIEW v AS SELECT 1", False),
        ("CREATE TEMPORARY FUNCTION f AS 'x'", False),
        ("CREATE TABLE t (a INT) USING parquet", False),
        ("DECLARE x = 5", True),
        ("SET TIME ZONE 'UTC'", True),
        ("EXPLAIN SELECT 1", True),
        ("CACHE TABLE t", False),
        ("INSERT INTO t SELECT 1", True),
        ("SELECT 1 EMIT CHANGES", False),
        ("SET spark.sql.ansi.enabled=false", False),
        ("SET 'auto.offset.reset'='earliest'", True),
    ],
)
def test_statement_that_leaves_nothing_behind_in_spark(sql: str, is_local: bool) -> None:
    assert statements.is_local(parse(sql)) is is_local
