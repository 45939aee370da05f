"""Words of ksqlDB and Flink."""

from __future__ import annotations

import uuid

import pytest
from tests.spark.sql.conftest import Sql

from ottla.spark.sql.catalog import Catalog
from ottla.spark.sql.checks import check_statement_syntax, resolve
from ottla.spark.sql.declarations import declaration_of
from ottla.spark.sql.errors import SqlError
from ottla.spark.sql.lexer import split_statements
from ottla.spark.sql.parser import parse
from ottla.spark.sql.statements import Create, Describe, Passed, Print, Select, Show

WINDOWS = [
    ("TUMBLING (SIZE 1 MINUTE)", "window(_timestamp, '1 minute')"),
    ("HOPPING (SIZE 30 SECONDS, ADVANCE BY 10 SECONDS)", "window(_timestamp, '30 seconds', '10 seconds')"),
    ("SESSION (5 MINUTES)", "session_window(_timestamp, '5 minutes')"),
]


@pytest.mark.parametrize(("clause", "call"), WINDOWS)
def test_window_of_ksqldb_becomes_one_of_spark(clause: str, call: str) -> None:
    sql = f"SELECT a, WINDOWSTART, WINDOWEND AS e, count(*) FROM t WINDOW {clause} WHERE a > 1 GROUP BY a EMIT CHANGES"
    statement = parse(sql)
    assert isinstance(statement, Select)
    check_statement_syntax(statement, split_statements(sql)[0])
    query = statement.query
    assert query.is_live
    name = call.split("(")[0]
    made = resolve(query.sql, Catalog(), lambda: {"t"}, lambda name: False, query.window).sql
    assert " ".join(made.split()) == (
        f"SELECT a, {name}.start AS WINDOWSTART, {name}.end AS e, count(*) FROM t WHERE a > 1 GROUP BY {call}, a"
    )


def test_statements_of_ksqldb_and_flink_are_understood() -> None:
    assert parse("PRINT 'my-topic' FROM BEGINNING LIMIT 3") == Print("my-topic", True, 3)
    assert parse("PRINT orders") == Print("orders")
    assert parse("SHOW ALL TOPICS") == Show("TOPICS")
    assert parse("DESCRIBE EXTENDED orders") == parse("DESCRIBE orders EXTENDED") == Describe("orders")
    assert parse("EXPLAIN SELECT * FROM orders EMIT CHANGES") == Passed("EXPLAIN SELECT * FROM orders")
    create = parse(
        "CREATE STREAM o (id INT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) "
        "WITH (kafka_topic='orders', value_format='JSON')"
    )
    assert isinstance(create, Create)
    made = declaration_of(create)
    assert (made.timestamp, made.watermark, [each.name for each in made.columns]) == ("ts", "5 second", ["id", "ts"])


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT * FROM t WINDOW TUMBLING (SIZE 1 MINUTE)", "needs GROUP BY"),
        ("SELECT a FROM t WINDOW TUMBLING (SIZE x) GROUP BY a", "such as 5 MINUTES"),
        ("SELECT a FROM t WINDOW HOPPING (SIZE 1 HOUR) GROUP BY a", "ADVANCE BY 1 MINUTE"),
        ("SELECT a FROM t WINDOW TUMBLING (SIZE 1 HOUR, GRACE PERIOD 1 DAY) GROUP BY a", "watermark='10 minutes'"),
        ("SELECT * FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MINUTE))", "GROUP BY window(ts, '1 minute')"),
        ("SELECT count(*) FROM t GROUP BY HOP(ts, INTERVAL '1' MINUTE, INTERVAL '1' HOUR)", "GROUP BY window(ts, "),
        ("SELECT * FROM t EMIT FINAL", "EMIT CHANGES"),
        ("PAUSE q", "TERMINATE"),
        ("RUN SCRIPT 'x.sql'", "ottla sql -f"),
        ("SHOW PROPERTIES", "SET alone"),
        ("CREATE SINK CONNECTOR x WITH (a='b')", "ottla pipeline"),
        ("CREATE STREAM s (ts TIMESTAMP, WATERMARK FOR ts AS now()) WITH (format='json')", "INTERVAL '5' SECOND"),
    ],
)
def test_what_is_not_there_names_what_to_write(sql: str, words: str) -> None:
    with pytest.raises(SqlError) as raised:
        parse(sql)
    assert words in str(raised.value)


def test_options_of_flink_name_what_to_write() -> None:
    create = parse("CREATE TABLE t (id INT) WITH ('connector'='kafka', 'topic'='orders', 'format'='json')")
    assert isinstance(create, Create)
    with pytest.raises(SqlError, match="the connector kafka is a STREAM here"):
        declaration_of(create)


def test_windows_print_and_explain_on_spark(sql: Sql) -> None:
    name = f"dialects-{uuid.uuid4().hex[:8]}"
    sql.broker.create_topic(name, partitions=1)
    sql.send(name, *[("k", f'{{"a": "x", "ts": "2024-01-01T00:0{minute}:30Z"}}') for minute in (0, 0, 1, 7)])
    sql(
        f"CREATE STREAM w (a STRING, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) "
        f"WITH (kafka_topic='{name}', value_format='json')"
    )
    rows = sql("SELECT a, minute(WINDOWSTART) AS m, count(*) AS n FROM w WINDOW TUMBLING (SIZE 1 MINUTE) GROUP BY a ORDER BY m")
    assert rows == [("x", 0, 2), ("x", 1, 1), ("x", 7, 1)]
    rows = sql("SELECT a, count(*) AS n, minute(WINDOWEND) AS m FROM w WINDOW SESSION (2 MINUTES) GROUP BY a ORDER BY m")
    assert [row[:2] for row in rows] == [("x", 3), ("x", 1)]
    assert sql(f"PRINT {name} FROM BEGINNING LIMIT 1")[0][4].startswith('{"a"')
    assert sql.screen.columns == ["timestamp", "partition", "offset", "key", "value"]
    assert "ottla" in sql("EXPLAIN SELECT a FROM w EMIT CHANGES")[0][0]
