"""Queries are analysed in the order of their dependencies; mistakes are one sentence."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from tests.spark.pipelines.folders import write_pipeline

from ottla.spark.pipelines.errors import PipelineError
from ottla.spark.pipelines.resolution import load_graph, prepared, wishes_of

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


PYTHON = """
@dp.temporary_view
def numbers():
    return spark.readStream.format("rate").load()

@dp.table(name="kept", partition_cols=["a"], format="json", schema="a INT")
def keep():
    return spark.readStream.table("numbers")

dp.create_sink("out", "console", {"numRows": "1"})

@dp.append_flow(target="out", name="show", spark_conf={"x": "y"})
def shown():
    return spark.readStream.table("numbers")
"""
SQL = "CREATE MATERIALIZED VIEW total AS SELECT count(*) AS n FROM kept;"


def test_files_define_outputs_and_flows(tmp_path: Path, spark: Any) -> None:
    spec = write_pipeline(tmp_path, {"a.py": PYTHON, "b.sql": SQL}, "sinks: {topic: {topic: x}}")
    graph = load_graph(spec, spark)
    outputs = {name: (each.kind, each.format, each.place) for name, each in graph.outputs.items()}
    assert outputs == {
        "numbers": ("view", None, "transformations/a.py line 5"),
        "kept": ("table", "json", "transformations/a.py line 9"),
        "out": ("sink", "console", "transformations/a.py line 13"),
        "total": ("materialized view", None, "transformations/b.sql line 1"),
        "topic": ("sink", "ottla", "ottla.yml"),
    }
    assert (graph.outputs["kept"].partition_columns, graph.outputs["kept"].schema) == (("a",), "a INT")
    assert graph.outputs["topic"].options == {"kafka.bootstrap.servers": "localhost:9092", "topic": "x"}
    assert [(each.name, each.target, dict(each.configuration)) for each in graph.flows.values()] == [
        ("numbers", "numbers", {}),
        ("kept", "kept", {}),
        ("show", "out", {"x": "y"}),
        ("total", "total", {}),
    ]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("1/0", r"transformations/a.py line 4: ZeroDivisionError: division by zero"),
        ("def (", r"transformations/a.py line 4: SyntaxError: "),
        ("dp.create_sink(5, 'x')", r"transformations/a.py line 4: .*`name` should be"),
        (
            (
                "from pyspark.sql.functions import col\ndp.create_streaming_table('t')\n"
                "dp.create_auto_cdc_flow('t', 's', ['k'], 'n')"
            ),
            "needs a table format with MERGE",
        ),
    ],
)
def test_error_in_a_file_names_its_line(tmp_path: Path, spark: Any, text: str, sentence: str) -> None:
    with pytest.raises(PipelineError, match=sentence):
        load_graph(write_pipeline(tmp_path, {"a.py": text}), spark)


FLOW = """\
from pricing_of_this_test import RATE
@dp.materialized_view
def rates():
    import pricing_of_this_test
    return spark.range(pricing_of_this_test.RATE)
"""


def test_pipeline_ships_what_its_files_name(tmp_path: Path) -> None:
    yml = "packages: [requests]\nsinks: {rows: {format: ottla_postgres, table: t}}\n"
    spec = write_pipeline(tmp_path, {"flows.py": "FORMAT = 'ottla_iceberg'\n"}, yml)
    wishes = wishes_of(spec)
    assert wishes.formats == ("ottla_iceberg", "ottla_postgres")
    assert wishes.packages == ("requests",)
    assert wishes.folder == tmp_path


def test_packages_must_be_names(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="packages must be a list of names such as"):
        write_pipeline(tmp_path, {"flows.py": ""}, "packages: requests\n")


def test_files_import_the_modules_of_their_folder(tmp_path: Path, spark: Any) -> None:
    spec = write_pipeline(tmp_path, {"flows.py": FLOW})
    (tmp_path / "pricing_of_this_test.py").write_text("RATE = 3\n")
    with prepared(spec, spark) as resolved:
        assert resolved.frames["rates"].count() == 3
    assert "pricing_of_this_test" not in sys.modules
    assert str(tmp_path) not in sys.path
