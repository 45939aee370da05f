"""All statements of a text are analysed by Spark before the first is run: nothing is declared, made, read or written."""

from __future__ import annotations

import pytest
from tests.spark.sql.conftest import Sql

from ottla.spark.sql.checks import check_all
from ottla.spark.sql.errors import SqlError
from ottla.spark.sql.lexer import split_statements

CREATE = (
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
    text = CREATE.format(topic=topic) + (
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
        analyse(sql, CREATE.format(topic=topic) + wrong)
        return
    with pytest.raises(SqlError) as raised:
        analyse(sql, CREATE.format(topic=topic) + wrong)
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)
