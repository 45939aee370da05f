"""Names and options are checked before Spark starts."""

from __future__ import annotations

import pytest
from tests.spark.sql.conftest import Sql

from ottla.spark.sql.catalog import Catalog
from ottla.spark.sql.checks import check_all, find_references, quote_names, resolve, target_of
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


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("SELECT * FROM orders", ["orders"]),
        ("SELECT * FROM orders o JOIN `my-users` AS u ON o.id = u.id LEFT JOIN x USING (id)", ["orders", "my-users", "x"]),
        ("SELECT a, b FROM x, y z, w WHERE a IN (1, 2) GROUP BY a, b", ["x", "y", "w"]),
        ("SELECT * FROM (SELECT * FROM a, b) c, d ORDER BY e, f", ["a", "b", "d"]),
        ("SELECT * FROM orders-v1 WHERE 1 = 1", ["orders-v1"]),
        ("SELECT * FROM orders.eu-1", ["orders.eu-1"]),
        ("SELECT extract(year FROM t), trim(BOTH 'x' FROM s) FROM a", ["a"]),
        ("SELECT a IS DISTINCT FROM b FROM c", ["c"]),
        ("SELECT * FROM range(5), a", ["a"]),
        ("WITH x AS (SELECT * FROM a), y (n) AS (SELECT * FROM x) SELECT * FROM y JOIN b", ["a", "b"]),
        ("SELECT 'FROM x' FROM y -- FROM z", ["y"]),
        ("SELECT * FROM VALUES (1), (2)", []),
        ("SELECT (SELECT max(i) FROM b), c FROM d", ["b", "d"]),
        ("SELECT * FROM a UNION ALL SELECT * FROM b", ["a", "b"]),
        ("SELECT * FROM a, LATERAL explode(l) t", ["a"]),
        ("SELECT 1", []),
    ],
)
def test_names_are_those_after_from_and_join(sql: str, names: list[str]) -> None:
    assert find_references(sql).names == names


def test_metadata_columns_are_found_in_any_case() -> None:
    assert find_references("SELECT _Offset, `_key`, '_error' FROM a WHERE a._timestamp > 1").metadata == {
        "_offset",
        "_key",
        "_timestamp",
    }


def test_names_of_topics_that_are_no_identifiers_get_backticks() -> None:
    sql = "SELECT * FROM orders-v1 JOIN a.b JOIN `c-d` JOIN e"
    quoted = quote_names(sql, find_references(sql).tables, lambda name: name != "x.y")
    assert quoted == "SELECT * FROM `orders-v1` JOIN `a.b` JOIN `c-d` JOIN e"


ANALYSIS_CREATE = (
    "CREATE STREAM orders (id BIGINT, amount DOUBLE, shop STRUCT<city: STRING>, tags ARRAY<STRING>, at TIMESTAMP) "
    "WITH (topic='{topic}', format='json', timestamp='at', watermark='1 minute');\n"
    "CREATE TABLE names (id BIGINT, name STRING) WITH (topic='{topic}', format='json', key='id', key_format='int64');\n"
)


def analyse(sql: Sql, text: str) -> None:
    cuts = split_statements(text)
    runner = sql.runner
    statements = check_all(cuts, runner.catalog, runner.settings, runner.cluster.topics)
    runner.analyse(list(zip(statements, cuts, strict=True)))


def test_right_statements_pass_and_nothing_has_been_done(sql: Sql, topic: str) -> None:
    text = ANALYSIS_CREATE.format(topic=topic) + (
        "CREATE STREAM made (city STRING, total DOUBLE) WITH (topic='analysed', format='json', partitions=1);\n"
        "SET 'spark.sql.caseSensitive'='true'; UNSET 'spark.sql.caseSensitive';\n"
        "INSERT INTO made SELECT shop.city, sum(amount) FROM orders GROUP BY shop.city;\n"
        "CREATE TEMP VIEW v AS SELECT id, amount * 2 AS twice FROM orders WHERE _offset > 3;\n"
        "WITH w AS (SELECT v.id, twice FROM v) SELECT w.*, n.name, tag FROM w JOIN names n USING (id)"
        "  JOIN (SELECT id AS i, explode(tags) AS tag FROM orders) x ON x.i = w.id;\n"
        "SELECT window(at, '5 minutes').start, count(*) FROM orders GROUP BY 1;\n"
        "SELECT WINDOWSTART, count(*) FROM orders WINDOW TUMBLING (SIZE 1 MINUTE) GROUP BY id;\n"
        "SELECT transform(tags, t -> upper(t)), sum(amount) OVER (ORDER BY id) FROM orders LATERAL VIEW posexplode(tags) p;\n"
        "DECLARE least = 5; SELECT id FROM orders WHERE amount > least;\n"
        "SELECT * FROM (SELECT id, shop.city c FROM orders) PIVOT (count(id) FOR c IN ('Oslo'));\n"
        "EXPLAIN SELECT * FROM orders; DROP STREAM orders; SELECT count(*) FROM names"
    )
    analyse(sql, text)
    assert sql.runner.catalog.find("orders") is None
    assert "analysed" not in sql.runner.cluster.topics()
    assert not sql.runner.spark.catalog.tableExists("v")
    assert sql.screen.notes == []


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (
            "SELECT n.name\nFROM orders o JOIN names n ON o.idd = n.id",
            "line 4, column 31: there is no column o.idd: did you mean id?",
        ),
        ("SELECT id FROM orders WHERE zzz > 3", "line 3, column 29: there is no column zzz: there is "),
        ("SELECT shop.ctiy FROM orders", "line 3, column 8: there is no field ctiy: did you mean city?"),
        ("SELECT smu(amount) FROM orders", "line 3, column 8: there is no function smu"),
        ("SELECT id, sum(amount) FROM orders", "line 3, column"),
        ("INSERT INTO names SELECT id FROM orders", "line 3, column 1: INSERT INTO names has 1 values in a row for 2 columns"),
        (
            "CREATE TEMP VIEW v AS SELECT id FROM orders;\nSELECT v.amount FROM v",
            "line 4, column 8: there is no column v.amount",
        ),
        ("CREATE TABLE t (a INT) USING parquet;\nSELECT idd, _offset, 1 FROM orders, t", "let through"),
        ("CREATE TABLE t (a INT) USING parquet;\nSELECT * FROM t", "let through"),
    ],
)
def test_mistake_names_its_place(sql: Sql, topic: str, wrong: str, words: str) -> None:
    if words == "let through":
        analyse(sql, ANALYSIS_CREATE.format(topic=topic) + wrong)
        return
    with pytest.raises(SqlError) as raised:
        analyse(sql, ANALYSIS_CREATE.format(topic=topic) + wrong)
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)
