"""Sources and sinks of ottla.yml."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.spark.pipelines.folders import write_pipeline

from ottla.spark.pipelines.connections import with_address
from ottla.spark.pipelines.resolution import prepared
from ottla.spark.pipelines.spec import Connection

OTTLA = """
sources:
  people: {format: csv, path: people.csv, header: true, schema: "name STRING, age INT", streaming: false}
"""


def test_address_of_the_configuration_is_the_default(tmp_path: Path) -> None:
    spec = write_pipeline(tmp_path, {"a.py": ""})
    own = {"kafka.bootstrap.servers": "own:1", "topic": "x"}
    assert with_address(Connection("x", "ottla", {"topic": "x"}), spec)["kafka.bootstrap.servers"] == "localhost:9092"
    assert with_address(Connection("x", "ottla", own), spec) == own
    assert with_address(Connection("x", "csv", {"path": "x"}), spec) == {"path": "x"}


def test_source_that_is_no_stream_is_read_as_a_table(tmp_path: Path, spark: Any) -> None:
    (tmp_path / "people.csv").write_text("name,age\nann,30\nbob,4\n")
    sql = "CREATE MATERIALIZED VIEW adults AS SELECT name FROM people WHERE age > 17"
    with prepared(write_pipeline(tmp_path, {"a.sql": sql}, OTTLA), spark) as resolved:
        assert [row.name for row in resolved.frames["adults"].collect()] == ["ann"]
