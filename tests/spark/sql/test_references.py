"""What a query reads."""

from __future__ import annotations

import pytest

from ottla.spark.sql.checks import find_references, quote_names


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
