"""Names and options are checked before Spark starts."""

from __future__ import annotations

import pytest

from ottla.spark.sql.catalog import Catalog
from ottla.spark.sql.checking import check_all, resolve, target_of
from ottla.spark.sql.declarations import Declaration
from ottla.spark.sql.errors import SqlError
from ottla.spark.sql.lexer import split_statements
from ottla.spark.sql.settings import Settings
from ottla.spark.sql.statements import Statement

TOPICS = {"orders", "my-users", "a.b", "__consumer_offsets"}
CREATE = "CREATE STREAM o (id INT) WITH (topic='orders', format='json');"


def check(sql: str, catalog: Catalog | None = None) -> list[Statement]:
    return check_all(split_statements(sql), catalog or Catalog(), Settings({"bootstrap.servers": "h:1"}), lambda: TOPICS)


def test_statements_see_what_those_before_them_declare_and_nothing_is_changed() -> None:
    catalog = Catalog()
    assert len(check(f"{CREATE} SELECT * FROM o; DROP STREAM o; {CREATE}", catalog)) == 4
    assert list(catalog) == []


def test_topic_that_a_statement_makes_is_there_for_the_next() -> None:
    check("CREATE STREAM n (id INT) WITH (format='json', partitions=2); INSERT INTO n VALUES (1); SELECT * FROM n")


def test_views_and_tables_of_spark_are_known_after_their_statement() -> None:
    check("CREATE TEMP VIEW v AS SELECT 1; SELECT * FROM v")
    check("USE other; SELECT * FROM anything")
    check("SELECT * FROM parquet.`/tmp/x`")


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT * FROM ordrs", "there is no stream, table or topic ordrs: did you mean orders?"),
        ("SELECT 1;\nSELECT * FROM zzz", "line 2: there is no stream, table or topic zzz: there is a.b, my-users, orders"),
        ("INSERT INTO ordrs VALUES (1)", "did you mean orders?"),
        (f"{CREATE}\nINSERT INTO o (idd) VALUES (1)", "line 2: the stream o has no column idd: did you mean id?"),
        ("SELECT 1;\nSELECT 2;\n  SELECT * FORM orders", "line 3, column 12: FORM is not expected here: did you mean FROM?"),
        ("SELECT 1; PRINT ordrs", "did you mean orders?"),
        ("CREATE STREAM s (id INT) WITH (topic='order', format='json')", "did you mean topic='orders'?"),
        ("CREATE STREAM s (id INT) WITH (topic='zzz', format='json')", "partitions=3 in WITH makes it"),
        (f"{CREATE} {CREATE}", "is declared already"),
        ("DROP STREAM o", "there is no stream o"),
        ("SET 'auto.offset.reset'='x'; SELECT 1", "line 1: auto.offset.reset"),
        ("UNSET 'spark.x'", "spark.x is not set"),
    ],
)
def test_mistake_is_found(sql: str, words: str) -> None:
    with pytest.raises(SqlError) as raised:
        check(sql)
    assert words in str(raised.value)


def test_declaration_whose_topic_is_gone_says_so() -> None:
    catalog = Catalog()
    catalog.add(Declaration("o", "stream", "gone", "raw"))
    with pytest.raises(SqlError, match="declared over the topic gone, which is not there"):
        resolve("SELECT * FROM o", catalog, lambda: TOPICS, lambda name: False)
    with pytest.raises(SqlError, match="which is not there"):
        target_of("o", catalog, lambda: TOPICS)


def test_topics_are_quoted_and_declared_names_go_first() -> None:
    catalog = Catalog()
    catalog.add(Declaration("orders", "table", "my-users", "raw"))
    found = resolve("SELECT * FROM orders JOIN my-users JOIN a.b", catalog, lambda: TOPICS, lambda name: False)
    assert found.sql == "SELECT * FROM orders JOIN `my-users` JOIN `a.b`"
    assert {name: each.format for name, each in found.sources.items()} == {"orders": "raw", "my-users": "text", "a.b": "text"}


def test_cluster_is_not_asked_for_what_needs_no_topic() -> None:
    def topics() -> set[str]:
        raise AssertionError

    check_all(split_statements("SET; SELECT 1; SHOW STREAMS"), Catalog(), Settings({}), topics)
