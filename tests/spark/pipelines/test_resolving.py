"""Queries are analysed in the order of their dependencies; mistakes are one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.spark.pipelines.folders import write_pipeline

from ottla.spark.pipelines.errors import PipelineError
from ottla.spark.pipelines.resolution import prepared

IN_REVERSE = """
CREATE MATERIALIZED VIEW total AS SELECT count(*) AS n FROM shop_db.kept;
CREATE STREAMING TABLE shop_db.kept AS SELECT value FROM STREAM numbers;
CREATE TEMPORARY VIEW numbers AS SELECT * FROM STREAM rates;
"""
RATES = "sources: {rates: {format: rate, rowsPerSecond: 1}}"


def test_order_of_definition_does_not_matter(tmp_path: Path, spark: Any) -> None:
    spec = write_pipeline(tmp_path, {"a.sql": IN_REVERSE}, RATES)
    with prepared(spec, spark) as resolved:
        assert list(resolved.frames) == ["rates", "numbers", "shop_db.kept", "total"]
        assert spark.table("shop_db.kept").columns == ["value"]
        assert spark.conf.get("kafka.bootstrap.servers") == "localhost:9092"
    assert not spark.catalog.tableExists("shop_db.kept")
    assert not spark.catalog.tableExists("numbers")
    assert spark.conf.get("kafka.bootstrap.servers", None) is None


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        (
            "a.sql",
            "CREATE STREAMING TABLE t AS SELECT * FROM STREAM orderz",
            "a.sql line 1: the flow t reads orderz, which is no table or view of the pipeline; there are rates, t",
        ),
        (
            "a.sql",
            "CREATE MATERIALIZED VIEW a AS SELECT * FROM b; CREATE MATERIALIZED VIEW b AS SELECT * FROM a",
            "the flows a, b read each other in a circle: one of them must not read a",
        ),
        (
            "a.sql",
            "CREATE STREAMING TABLE t AS SELECT * FROM STREAM t",
            "the flow t reads t, which only it writes: a flow cannot read its own output",
        ),
        (
            "a.sql",
            "CREATE STREAMING TABLE t AS SELECT nope FROM STREAM rates",
            "a.sql line 1, column 36: the flow t cannot be analysed: there is no column nope: there is value, timestamp",
        ),
        (
            "a.sql",
            "CREATE STREAMING TABLE t AS\n  /* times */ SELECT timestmap\n  FROM STREAM rates",
            "a.sql line 2, column 22: the flow t cannot be analysed: there is no column timestmap: did you mean timestamp?",
        ),
        ("a.sql", "CREATE STREAMING TABLE t AS SELECT 1 AS x", "writes to the table t but reads no stream"),
        ("a.sql", "CREATE MATERIALIZED VIEW t AS SELECT * FROM STREAM rates", "the materialized view t reads a stream"),
        ("a.py", "@dp.table\ndef t():\n    return 5", "the flow t returns int: it must return a DataFrame"),
        ("a.py", "@dp.table\ndef t():\n    return spark.tabel('x')", "the flow t cannot be analysed: "),
    ],
)
def test_mistake_is_one_sentence(tmp_path: Path, spark: Any, name: str, text: str, sentence: str) -> None:
    with pytest.raises(PipelineError) as raised, prepared(write_pipeline(tmp_path, {name: text}, RATES), spark):
        pass
    assert sentence in str(raised.value)
    assert "\n" not in str(raised.value)
    assert not spark.catalog.tableExists("rates")
