"""Syntax is checked with the grammar in Spark's jar, without a JVM."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ottla.spark.sql.checks import check_statement_syntax
from ottla.spark.sql.errors import SqlSyntaxError
from ottla.spark.sql.grammar import NoGrammar, read_network
from ottla.spark.sql.lexer import split_statements
from ottla.spark.sql.parser import parse
from ottla.spark.sql.syntax import check_syntax, spark_grammar

RIGHT = [
    "SELECT * FROM orders LIMIT 3",
    "select cast(a as array<map<string, array<int>>>), a >> 2, t.1b, 1.5e3, 12L, .5, r'x' from `x-y` t join z using (a)",
    "SELECT window(ts, '1 minute').start, count(*) FROM o GROUP BY window(ts, '1 minute') HAVING count(*) > 1 ORDER BY 1 DESC",
    "WITH a AS (SELECT 1 AS x), b (y) AS (SELECT 2) SELECT * FROM a FULL OUTER JOIN b ON a.x <=> b.y WHERE x BETWEEN 1 AND 2",
    "SELECT /*+ BROADCAST(t) */ * FROM t -- the end\n/* and /* nested */ */",
    "SELECT sum(x) OVER (PARTITION BY a ORDER BY b ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t",
    "SELECT transform(a, x -> x + 1), m['k'], s.f.g, CASE WHEN a THEN b ELSE c END, INTERVAL '5' SECOND FROM t",
    "SELECT * FROM t LATERAL VIEW explode(a) e AS x",
    "SELECT * FROM t PIVOT (sum(x) FOR y IN ('a', 'b'))",
    "FROM t |> WHERE a > 1 |> AGGREGATE count(*) GROUP BY b",
    "SELECT :name, ?, \"text\", 'it''s', 'a\\'b', X'1F', date '2024-01-01', a:b::int FROM t TABLESAMPLE (5 PERCENT)",
    "VALUES (1, 'a'), (2, 'b')",
    "CREATE OR REPLACE TEMPORARY VIEW v AS SELECT 1 UNION ALL SELECT 2",
    "CREATE TABLE t (a INT, b STRUCT<c: ARRAY<INT>>) USING parquet PARTITIONED BY (a)",
    "CREATE STREAMING TABLE t AS SELECT * FROM STREAM s",
    "EXPLAIN EXTENDED SELECT 1",
    "DESCRIBE EXTENDED t",
    "SHOW FUNCTIONS LIKE 'a*'",
    "SET x.y=1",
    "SELECT `größe`, 'ß' FROM t",
    "SELECT " + "(" * 60 + "1" + ")" * 60,
]
WRONG = [
    ("SELEC * FROM orders", "line 1, column 1: SELEC is not expected here: did you mean SELECT?"),
    ("SELECT *\n  FORM orders", "line 2, column 3: FORM is not expected here: did you mean FROM?"),
    ("SELECT a FROM t WHER a > 1", "line 1, column 17: WHER is not expected here: did you mean WHERE?"),
    ("SELECT a FROM t GROUP a", "line 1, column 23: a is not expected here: write GROUP BY"),
    ("SELECT case when a then b els c end", "line 1, column 27: els is not expected here: did you mean ELSE?"),
    ("SELECT count(* FROM t", "line 1, column 16: FROM is not expected here: ) or , could stand there"),
    ("SELECT", "line 1, column 7: the statement ends too early: a name or an expression must stand there"),
    ("CREATE VEW x AS SELECT 1", "line 1, column 8: VEW is not expected here: did you mean VIEW?"),
]


@pytest.mark.parametrize("sql", RIGHT)
def test_what_spark_accepts_is_accepted(sql: str) -> None:
    assert spark_grammar() is not None
    check_syntax(sql)


@pytest.mark.parametrize(("sql", "words"), WRONG)
def test_mistake_is_told_with_place_token_and_remedy(sql: str, words: str) -> None:
    with pytest.raises(SqlSyntaxError) as raised:
        check_syntax(sql)
    assert str(raised.value) == words


def test_spark_agrees(spark: Any) -> None:
    parser = spark._jsparkSession.sessionState().sqlParser()
    for sql in RIGHT:
        parser.parsePlan(sql)
    for sql, _ in WRONG:
        with pytest.raises(Exception, match="PARSE_SYNTAX_ERROR"):
            parser.parsePlan(sql)


def test_place_is_that_in_the_whole_text() -> None:
    text = "SELECT 1;\n  INSERT INTO orders\n  SELECT * FORM orders-v1 EMIT CHANGES"
    cut = split_statements(text)[1]
    with pytest.raises(SqlSyntaxError, match=r"^line 3, column 12: FORM .* FROM\?$"):
        check_statement_syntax(parse(cut.text), cut)
    cut = split_statements("SELECT 1; SELECT x FROM orders-v1 t JOIN a-b.c ON t.x = c.y LIMT 3")[1]
    with pytest.raises(SqlSyntaxError, match=r"^line 1, column 61: LIMT .* LIMIT\?$"):
        check_statement_syntax(parse(cut.text), cut)


@pytest.mark.parametrize(
    "sql",
    ["SELECT $$a'b$$ FORM", "SELEC ${spark.x}", "SELEC " + "a, " * 5000, "SELECT " + "(" * 5000 + "1" + ")" * 5000],
)
def test_what_cannot_be_checked_is_left_to_spark(sql: str) -> None:
    check_syntax(sql)


def test_jar_without_a_grammar_is_no_grammar(tmp_path: Path) -> None:
    (tmp_path / "x.jar").write_bytes(b"PK")
    with pytest.raises(NoGrammar):
        read_network(tmp_path / "x.jar", "SqlBaseParser")
