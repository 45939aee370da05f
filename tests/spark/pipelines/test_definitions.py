"""Python and SQL files become a graph."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.spark.pipelines.folders import write_pipeline

from ottla.spark.pipelines.errors import PipelineError
from ottla.spark.pipelines.resolution import load_graph

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
