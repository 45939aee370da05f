"""Our own statements are recognised; everything else is passed on."""

from __future__ import annotations

import pytest

from ottla.spark.sql import statements
from ottla.spark.sql.errors import SqlError
from ottla.spark.sql.lexer import Unfinished, is_complete, split_statements, tokenize
from ottla.spark.sql.parser import parse, parse_columns
from ottla.spark.sql.statements import (
    NEEDS_SPARK,
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


@pytest.mark.parametrize(
    ("sql", "values"),
    [
        ("SELECT a, 1.5 FROM `my-topic`", ["SELECT", "a", ",", "1.5", "FROM", "my-topic"]),
        ("'it''s' \"a\"\"b\" `c``d`", ["it's", 'a"b', "c`d"]),
        (r"'it\'s' '\\' 'a\nb'", ["it's", "\\", r"a\nb"]),
        ("a -- b ; c\n+ /* d /* nested */ ; */ e", ["a", "+", "e"]),
        ("'--' '/*' \"*/\"", ["--", "/*", "*/"]),
        ("naïve_1 x>=2e-3", ["naïve_1", "x", ">", "=", "2e-3"]),
        ("", []),
    ],
)
def test_tokens_have_no_blanks_comments_and_quotes(sql: str, values: list[str]) -> None:
    assert [token.value for token in tokenize(sql)] == values


def test_tokens_know_where_they_are() -> None:
    sql = "SELECT  'a;b'  FROM x"
    assert [sql[token.start : token.end] for token in tokenize(sql)] == ["SELECT", "'a;b'", "FROM", "x"]


def test_statements_are_cut_at_semicolons_outside_of_quotes_and_comments() -> None:
    cuts = split_statements("SELECT ';' ; -- first;\n\n/* ; */ SET 'a'='b;c';;\n SELECT 2 -- end;")
    assert [(cut.text, cut.line) for cut in cuts] == [("SELECT ';'", 1), ("SET 'a'='b;c'", 3), ("SELECT 2", 4)]


@pytest.mark.parametrize("sql", ["", "  -- nothing", "SELECT 1;", "SELECT 1; SELECT 2 ; ", "SELECT ';';"])
def test_text_with_a_semicolon_at_its_end_is_complete(sql: str) -> None:
    assert is_complete(sql)


@pytest.mark.parametrize("sql", ["SELECT 1", "SELECT 1; SELECT", "SELECT ';", "SELECT 1 /* ;", "SELECT `a;"])
def test_text_that_waits_for_more_is_not_complete(sql: str) -> None:
    assert not is_complete(sql)


@pytest.mark.parametrize(("sql", "words"), [("a\n'b", "the quote ' in line 2"), ("a /* b", "the comment in line 1")])
def test_quote_or_comment_without_end_is_named_with_its_line(sql: str, words: str) -> None:
    with pytest.raises(Unfinished, match=words):
        split_statements(sql)


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


@pytest.mark.parametrize("sql", ["SELECT 1", "INSERT INTO a VALUES (1)", "EXPLAIN SELECT 1"])
def test_queries_need_spark(sql: str) -> None:
    assert isinstance(parse(sql), NEEDS_SPARK)


@pytest.mark.parametrize("sql", ["SET", "SHOW TOPICS", "DESCRIBE a", "DROP STREAM a", "CREATE STREAM a WITH (format='raw')"])
def test_declarations_and_settings_do_not(sql: str) -> None:
    assert not isinstance(parse(sql), NEEDS_SPARK)
