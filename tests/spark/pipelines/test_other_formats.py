"""Pipelines between topics and other systems: files, the console, PostgreSQL and the rate source. A second run continues."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.spark.pipelines.folders import write_pipeline
from tests.spark.pipelines.test_run import run
from tests.support.servers.postgres_server import PostgresServer

from ottla.spark.pipelines.run import FlowProgress, Run
from ottla.spark.pipelines.spec import Schedule, Spec
from ottla.testing import Broker

OUT = """
sources: {{orders: {{subscribe: {topic}, startingOffsets: earliest}}}}
sinks:
  parquet_files: {{format: parquet, path: out/parquet}}
  json_files: {{format: json, path: out/json}}
  csv_files: {{format: csv, path: out/csv, header: true}}
  screen: {{format: console, numRows: 1}}
"""
OUT_FLOW = """
@dp.append_flow(target="{sink}")
def to_{sink}():
    return spark.readStream.table("orders").selectExpr("CAST(value AS STRING) AS name", "offset")
"""
SOURCES = {
    "lines": '{{format: json, path: data, schema: "n INT"}}',
    "people": '{{format: ottla_postgres, url: "{url}", table: pipeline_people, incrementalColumn: id}}',
    "ticks": "{{format: rate, rowsPerSecond: 100}}",
}
INTO_FLOWS = {
    "lines": 'spark.readStream.table("lines").selectExpr("CAST(n AS STRING) AS value")',
    "people": 'spark.readStream.table("people").selectExpr("CAST(id AS STRING) AS key", "name AS value")',
    "ticks": 'spark.readStream.table("ticks").selectExpr("CAST(value AS STRING) AS value")',
}


@pytest.mark.slow
def test_topic_goes_into_files_once_and_to_the_console(spark: Any, tmp_path: Path, topic: str, shared_broker: Broker) -> None:
    sinks = ("parquet_files", "json_files", "csv_files", "screen")
    files = {f"{sink}.py": OUT_FLOW.format(sink=sink) for sink in sinks}
    spec = write_pipeline(tmp_path, files, OUT.format(topic=topic), shared_broker.bootstrap_servers)
    for number in range(2):
        shared_broker.produce(topic, f"order {number}", partition=0)
        assert run(spec, spark).rows == dict.fromkeys([f"to_{sink}" for sink in sinks], 1)
    expected = [("order 0", 0), ("order 1", 1)]
    for kind in ("parquet", "json", "csv"):
        reader = spark.read.schema("name string, offset long").option("header", "true")
        rows = reader.format(kind).load(str(tmp_path / "out" / kind)).collect()
        assert sorted((row.name, row.offset) for row in rows) == expected, kind


@pytest.mark.slow
def test_files_and_postgres_rows_go_into_topics_once(
    spark: Any, tmp_path: Path, topic: str, shared_broker: Broker, postgres: PostgresServer
) -> None:
    spec = _into(tmp_path, topic, shared_broker, "lines", "people", url=postgres.url)
    postgres.execute("CREATE TABLE pipeline_people (id serial, name text)")
    for number in range(2):
        (tmp_path / "data" / f"{number}.json").write_text(json.dumps({"n": number}) + "\n")
        postgres.execute(f"INSERT INTO pipeline_people (name) VALUES ('person {number}')")
        assert run(spec, spark).rows == {"from_lines": 1, "from_people": 1}
    assert sorted(each.value for each in shared_broker.records(f"{topic}-lines")) == [b"0", b"1"]
    people = sorted((each.key, each.value) for each in shared_broker.records(f"{topic}-people"))
    assert people == [(b"1", b"person 0"), (b"2", b"person 1")]


@pytest.mark.slow
def test_rate_source_goes_into_a_topic(spark: Any, tmp_path: Path, topic: str, shared_broker: Broker) -> None:
    spec = _into(tmp_path, topic, shared_broker, "ticks")

    def stop_with_rows(progress: FlowProgress, made: Run) -> None:
        if progress.rows:
            made.stop()

    count = run(spec, spark, Schedule("every", 0.2), stop_with_rows).rows["from_ticks"]
    values = sorted(int(each.value) for each in shared_broker.records(f"{topic}-ticks"))
    assert count > 0
    assert values == list(range(count))


def _into(folder: Path, topic: str, broker: Broker, *names: str, url: str = "") -> Spec:
    """A pipeline from these sources into topics with their names."""
    (folder / "data").mkdir()
    flow = '@dp.append_flow(target="to_{name}")\ndef from_{name}():\n    return {query}\n'
    ottla = ["sources:", *(f"  {name}: {SOURCES[name].format(url=url)}" for name in names), "sinks:"]
    files = {}
    for name in names:
        broker.create_topic(f"{topic}-{name}")
        ottla.append(f"  to_{name}: {{topic: {topic}-{name}}}")
        files[f"{name}.py"] = flow.format(name=name, query=INTO_FLOWS[name])
    return write_pipeline(folder, files, "\n".join(ottla), broker.bootstrap_servers)
