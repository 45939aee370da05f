"""SQL files: statements and what they define."""

from __future__ import annotations

import pytest

from ottla.spark.pipelines.errors import PipelineError
from ottla.spark.pipelines.sql_files import Statement, parse_sql, split_statements


def test_semicolons_in_quotes_and_comments_do_not_split() -> None:
    text = '-- a; b\nSELECT \';\' AS `x;y`, "\\";";\n/* c;\nd */ SELECT 2\n;;'
    assert list(split_statements(text)) == [(2, 'SELECT \';\' AS `x;y`, "\\";"'), (4, "SELECT 2")]


def test_statements_of_a_pipeline() -> None:
    text = """
    CREATE OR REFRESH STREAMING TABLE IF NOT EXISTS db.`orders` (id INT, price DECIMAL(10, 2)) USING json
      PARTITIONED BY (id) COMMENT 'as x' AS SELECT * FROM STREAM raw;
    create streaming table target;
    CREATE MATERIALIZED VIEW totals AS SELECT CAST(1 AS INT) AS n;
    CREATE TEMPORARY VIEW v AS (SELECT 1 AS x);
    CREATE FLOW f AS INSERT INTO target BY NAME SELECT * FROM STREAM v
    """
    assert parse_sql(text, "a.sql") == [
        Statement(
            "streaming table", "db.orders", 2, "SELECT * FROM STREAM raw", None, "json", "id INT, price DECIMAL(10, 2)", ["id"]
        ),
        Statement("streaming table", "target", 4),
        Statement("materialized view", "totals", 5, "SELECT CAST(1 AS INT) AS n"),
        Statement("temporary view", "v", 6, "(SELECT 1 AS x)"),
        Statement("flow", "f", 7, "SELECT * FROM STREAM v", "target"),
    ]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("\nINSERT INTO x SELECT 1", "a.sql line 2: a pipeline has no statement INSERT INTO x SELECT …"),
        ("CREATE TABLE x AS SELECT 1", "it may create a streaming table, a materialized view, a temporary view or a flow"),
        ("CREATE MATERIALIZED VIEW x", "a.sql line 1: materialized view x has no query: add AS SELECT …"),
    ],
)
def test_other_statements_are_refused(text: str, sentence: str) -> None:
    with pytest.raises(PipelineError) as raised:
        parse_sql(text, "a.sql")
    assert sentence in str(raised.value)


def test_syntax_is_checked_with_spark_s_grammar_before_anything_runs() -> None:
    text = (
        "CREATE TEMPORARY VIEW a AS SELECT 1;\n\n/* two\nlines */\nCREATE MATERIALIZED VIEW b AS\n/* 3\n\n*/ SELECT *\n  FORM a"
    )
    with pytest.raises(PipelineError, match=r"^t\.sql line 9, column 3: FORM is not expected here: did you mean FROM\?$"):
        parse_sql(text, "t.sql")
