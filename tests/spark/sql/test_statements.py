"""Which statements start Spark."""

from __future__ import annotations

import pytest

from ottla.spark.sql.parser import parse
from ottla.spark.sql.statements import NEEDS_SPARK


@pytest.mark.parametrize("sql", ["SELECT 1", "INSERT INTO a VALUES (1)", "EXPLAIN SELECT 1"])
def test_queries_need_spark(sql: str) -> None:
    assert isinstance(parse(sql), NEEDS_SPARK)


@pytest.mark.parametrize("sql", ["SET", "SHOW TOPICS", "DESCRIBE a", "DROP STREAM a", "CREATE STREAM a WITH (format='raw')"])
def test_declarations_and_settings_do_not(sql: str) -> None:
    assert not isinstance(parse(sql), NEEDS_SPARK)
