"""Names and options are checked before Spark starts."""

from __future__ import annotations

import pytest

from ottla.spark.sql.catalog import Catalog
from ottla.spark.sql.checks import check_all, resolve, target_of
from ottla.spark.sql.declarations import Declaration
from ottla.spark.sql.errors import SqlError
from ottla.spark.sql.lexer import split_statements
from ottla.spark.sql.settings import Settings
from ottla.spark.sql.statements import Statement

TOPICS = {"orders", "my-users", "a.b", "__consumer_offsets"}
SALES = "CREATE STREAM s (id INT, amount DOUBLE, shop STRUCT<city: STRING>) WITH (topic='orders', format='json');"
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
    "sql",
    [
        "SELECT amount amuont, amount AS amont FROM s ORDER BY amuont, amont",
        "SELECT current_date, date '2026-01-01', interval 5 minute, cast(id AS DOUBLE) FROM s",
        "SELECT shop.ctiy, s.amuont, _offset FROM s",  # not read here: Spark tells
        "SELECT amuont(id) FROM s",
        "SELECT transform(array(id), idd -> idd + 1) FROM s",
        "WITH t AS (SELECT amount AS amuont FROM s) SELECT amuont FROM t",
        "SELECT amuont FROM s JOIN (SELECT 1 AS amuont)",
        "SELECT amuont FROM s LATERAL VIEW explode(array(1)) e AS amuont",
        "SELECT extract(year FROM _timestamp) FROM s",
        "SELECT CASE WHEN id > 1 THEN amount END amout, id / 2 idd FROM s GROUP BY ALL HAVING idd > 1",
        "SELECT max(amount) OVER (PARTITION BY id ORDER BY amount) amonut FROM s",
        "SELECT `amuont` FROM s, (SELECT 1 AS amuont)",
        "DECLARE amuont = 5; SELECT amuont FROM s",
        "SELECT id FROM s WHERE amount IN (SELECT amount FROM s)",
        "SELECT ids FROM (SELECT id AS ids FROM s)",
        "FROM s SELECT amount |> WHERE amount > 1",
    ],
)
def test_right_names_are_let_through(sql: str) -> None:
    check(f"{SALES} {sql}")


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT * FROM ordrs", "there is no stream, table or topic ordrs: did you mean orders?"),
        ("SELECT 1;\nSELECT * FROM zzz", "line 2: there is no stream, table or topic zzz: there is a.b, my-users, orders"),
        ("INSERT INTO ordrs VALUES (1)", "did you mean orders?"),
        (f"{CREATE}\nINSERT INTO o (idd) VALUES (1)", "line 2: the stream o has no column idd: did you mean id?"),
        ("SELECT 1;\nSELECT 2;\n  SELECT * FORM orders", "line 3, column 12: FORM is not expected here: did you mean FROM?"),
        ("SELECT 1; PRINT ordrs", "did you mean orders?"),
        (f"{SALES}\nSELECT id,\n  amuont * 2 FROM s", "line 3, column 3: there is no column amuont: did you mean amount?"),
        (f"{SALES} SELECT count(*) FROM s x WHERE amout > 3", "line 1, column 137: there is no column amout: did you mean"),
        (f"{SALES} INSERT INTO orders SELECT shpo FROM s", "there is no column shpo: did you mean shop?"),
        ("SELECT vlaue FROM orders", "line 1, column 8: there is no column vlaue: did you mean value?"),
        ("SELECT 1; CREATE STREAM x WITH (format='json') AS SELECT 1", "line 1: CREATE STREAM … AS SELECT runs only in"),
        ("INSERT INTO orders SELECT value FROM orders EMIT CHANGES", "a continuous INSERT runs only in the shell"),
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
